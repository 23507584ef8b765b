//! `openstack-ccm hand-back`: shows what OCCM will change for each Service when it takes over again, and, on request, writes the
//! status that OCCM will write.
//!
//! OCCM is not available for a dry run, so `judge` is a list of its known differences, tested against its observable behaviour.
//! The flags are in `args`; `addresses` looks up in the cloud which addresses may be published.

pub mod addresses;
pub mod args;
pub mod judge;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use openstack_ccm_controllers::PAGE_SIZE;
use openstack_ccm_manager::args::LeaseArgs;
use openstack_ccm_openstack_api::dry_run::ReadOnly;
use openstack_ccm_openstack_api::transport::Transport;
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::load_balancer::annotations::use_of;
use openstack_ccm_runtime::listed::{self, Interest};
use openstack_ccm_runtime::watch::{Reading, list_all};
use serde_json::json;

use crate::cloud::log_in;
use crate::help::{EXIT_FOUND, EXIT_NEEDS_A_PERSON};
use crate::output::{Form, print};
use crate::status::is_at_work;
use addresses::CloudAddresses;
use args::HandBackArgs;
use judge::{Return, Severity};

/// Writes OCCM's changes to standard output, and with `--apply` the status of Services.
///
/// # Errors
/// The configuration or the Services cannot be read, openstack-ccm is running, a status cannot be written, or standard
/// output is closed.
pub async fn run(arguments: &HandBackArgs) -> anyhow::Result<ExitCode> {
    let provider = OpenStackProvider::load(&arguments.config.cloud_config)?;
    let client = arguments.person.client().await?;
    if arguments.apply {
        refuse_beside_controller(&client, &arguments.lease).await?;
    }
    let reading = Reading { page: PAGE_SIZE, interest: Interest::in_annotations(use_of) };
    let services = list_all::<listed::Service, Service>(Api::all(client.clone()), reading).await;
    let services = services.context("the Services of the cluster cannot be listed")?;
    let between = |transport: Arc<dyn Transport>, _: Option<&str>| -> Arc<dyn Transport> {
        Arc::new(ReadOnly::new(transport))
    };
    let openstack = log_in(&provider, &arguments.person, between).await?;
    let cloud = CloudAddresses::read(&openstack, arguments.cluster_name.as_deref()).await?;
    let section = &provider.config().load_balancer;
    let returns: Vec<(&Service, Return)> = services
        .iter()
        .filter_map(|service| {
            let back = Return::of(service, section, |address| cloud.is_of(address, service))?;
            let back = if cloud.serves(service) { back } else { back.without_load_balancer() };
            Some((service, back))
        })
        .filter(|(_, back)| back.is_news())
        .collect();
    let breaks = returns.iter().filter(|(_, back)| back.severity() == Severity::Fails).count();
    let text = match arguments.output {
        Form::Text => text(&returns, breaks),
        form => {
            let changes: Vec<&Return> = returns.iter().map(|(_, back)| back).collect();
            form.document(&json!({"version": 1, "services": changes}))?
        }
    };
    print(text)?;
    if arguments.apply {
        for (service, back) in &returns {
            apply(&client, service, back).await?;
        }
    }
    Ok(match (breaks, returns.len()) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(EXIT_FOUND),
        _ => ExitCode::from(EXIT_NEEDS_A_PERSON),
    })
}

fn text(returns: &[(&Service, Return)], breaks: usize) -> String {
    if returns.is_empty() {
        return "OCCM will change nothing.\n".to_owned();
    }
    let mut text: String = returns.iter().map(|(_, back)| format!("{back}\n")).collect();
    text.push_str(&format!(
        "{} with the rollback, {breaks} of them will fail.\n",
        if returns.len() == 1 {
            "1 Service changes".to_owned()
        } else {
            format!("{} Services change", returns.len())
        }
    ));
    text
}

async fn refuse_beside_controller(client: &Client, lease: &LeaseArgs) -> anyhow::Result<()> {
    let (namespace, name) = (&lease.leader_elect_resource_namespace, &lease.leader_elect_resource_name);
    anyhow::ensure!(
        !is_at_work(client, lease).await?,
        "a controller holds the Lease {namespace}/{name} and would overwrite the status again: first stop this controller, for example \
         with kubectl -n kube-system patch daemonset openstack-cloud-controller-manager --patch \
         '{{\"spec\":{{\"template\":{{\"spec\":{{\"nodeSelector\":{{\"stopped\":\"true\"}}}}}}}}}}'"
    );
    Ok(())
}

/// Writes the status that OCCM will write, if it differs.
async fn apply(client: &Client, service: &Service, back: &Return) -> anyhow::Result<()> {
    let Some(entry) = &back.entry else { return Ok(()) };
    let metadata = &service.metadata;
    let (namespace, name) =
        (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
    let patch = json!({"metadata": {"uid": metadata.uid}, "status": {"loadBalancer": {"ingress": [entry]}}});
    let parameters =
        PatchParams { field_manager: Some("openstack-ccm".to_owned()), ..PatchParams::default() };
    let services = Api::<Service>::namespaced(client.clone(), &namespace);
    let written = services.patch_status(&name, &parameters, &Patch::Merge(&patch)).await;
    written.map(drop).with_context(|| format!("the status of {namespace}/{name} cannot be written"))
}
