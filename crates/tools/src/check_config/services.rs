//! Checks the Services of a cluster with the service controller's own parser.

use anyhow::Context as _;
use k8s_openapi::api::core::v1 as k8s;
use kube::{Api, Client};
use openstack_ccm_controllers::PAGE_SIZE;
use openstack_ccm_controllers::service::checked_facts;
use openstack_ccm_core::notice::Severity;
use openstack_ccm_provider_openstack::config::Config;
use openstack_ccm_provider_openstack::load_balancer::annotations::use_of;
use openstack_ccm_provider_openstack::load_balancer::settings::{Faults, Settings};
use openstack_ccm_runtime::listed::{self, Interest};
use openstack_ccm_runtime::watch::{Reading, list_all};

use super::Section;

/// Reports every fault and warning of the Services of type LoadBalancer with this `class`, or without a class if it is absent.
/// Returns how many Services there are.
pub(super) async fn check(
    client: Client,
    class: Option<&str>,
    config: &Config,
    findings: &mut Section,
) -> anyhow::Result<usize> {
    let reading = Reading { page: PAGE_SIZE, interest: Interest::in_annotations(use_of) };
    let services = list_all::<listed::Service, k8s::Service>(Api::all(client), reading).await;
    let mut services = services.context("the Services of the cluster cannot be listed")?;
    services.retain(|service| is_ours(service, class));
    for service in &services {
        one(service, config, findings)?;
    }
    Ok(services.len())
}

fn is_ours(service: &k8s::Service, class: Option<&str>) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
        && spec.and_then(|spec| spec.load_balancer_class.as_deref()) == class
}

fn one(service: &k8s::Service, config: &Config, findings: &mut Section) -> anyhow::Result<()> {
    let metadata = &service.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let subject = format!("{}/{}", part(&metadata.namespace), part(&metadata.name));
    let facts = match checked_facts(service) {
        Ok(facts) => facts,
        Err(failure) => return findings.error(&subject, failure),
    };
    let (settings, notices) = Settings::read(&facts, config);
    for error in settings.err().iter().flat_map(Faults::messages) {
        findings.error(&subject, error)?;
    }
    for notice in notices.iter().filter(|notice| notice.severity == Severity::Warning) {
        findings.warning(&subject, format_args!("{}: {}", notice.reason, notice.message))?;
    }
    Ok(())
}
