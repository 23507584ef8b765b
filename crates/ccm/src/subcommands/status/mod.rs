//! `openstack-ccm status`: who leads, which version, its controllers, whether the nodes honour `ipMode: Proxy`, and how the load
//! balancers of the cluster are published. It reads the Lease, Nodes, Services and Pods with the rights of whoever asks; what these do not allow is said
//! and left out.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `leader` | what the Lease says |
//! | `nodes` | versions, and the verdicts on service proxies |
//! | `publication` | what the Services say |

pub mod args;
mod leader;
pub(crate) mod nodes;
mod publication;

use std::fmt::Display;

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use openstack_ccm_canary::observed_pod::ObservedPod;

use crate::args::LeaseArgs;
use crate::error_text::said_once;
use crate::subcommands::output::print_line;
use args::StatusArgs;
use leader::LeaseHolder;
use publication::Publication;

/// Whether somebody holds a Lease and renews it.
pub(crate) async fn is_at_work(client: &Client, lease: &LeaseArgs) -> anyhow::Result<bool> {
    Ok(leader(client, lease).await?.is_some_and(|leader| leader.works()))
}

/// Whether openstack-ccm holds a Lease and renews it.
pub(crate) async fn is_openstack_ccm(client: &Client, lease: &LeaseArgs) -> anyhow::Result<bool> {
    Ok(leader(client, lease).await?.is_some_and(|leader| leader.works() && leader.is_openstack_ccm()))
}

async fn leader(client: &Client, lease: &LeaseArgs) -> anyhow::Result<Option<LeaseHolder>> {
    let (namespace, name) = (&lease.leader_elect_resource_namespace, &lease.leader_elect_resource_name);
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(name).await;
    let lease = lease.with_context(|| format!("the Lease {namespace}/{name} cannot be read"))?;
    Ok(lease.map(|lease| LeaseHolder::of(&lease, Timestamp::now())))
}

/// Writes what is to be seen to standard output.
///
/// # Errors
/// Nobody leads, the Lease cannot be read, or standard output is closed.
pub async fn run(arguments: &StatusArgs) -> anyhow::Result<()> {
    let client = arguments.person.client().await?;
    let LeaseArgs { leader_elect_resource_namespace: namespace, leader_elect_resource_name: name } =
        &arguments.lease;
    let leader = leader(&client, &arguments.lease).await?;
    match &leader {
        None => line("Leader", format_args!("nobody: there is no Lease {namespace}/{name}"))?,
        Some(leader) => {
            line("Leader", leader)?;
            if let Some(host) = leader.host() {
                pod(&client, namespace, host).await?;
            }
            line("Version", leader.version())?;
            line("Controllers", leader.controllers())?;
        }
    }
    cluster(&client, &arguments.canary_namespace).await?;
    services(&client).await?;
    let works = leader.is_some_and(|leader| leader.works());
    anyhow::ensure!(works, "there is no leader: the log and /readyz?verbose of a pod say why");
    Ok(())
}

/// The pod that leads, and how to read its log.
async fn pod(client: &Client, namespace: &str, host: &str) -> anyhow::Result<()> {
    let pods = Api::<ObservedPod>::namespaced(client.clone(), namespace);
    match leader::pod(&pods, host).await {
        Ok(Some((pod, node))) => {
            line("Pod", format_args!("{namespace}/{pod} on node {node}"))?;
            line("Log", format_args!("kubectl -n {namespace} logs {pod}"))
        }
        Ok(None) => line("Pod", format_args!("none in {namespace} for the host {host}")),
        Err(error) => line("Pod", unreadable(error)),
    }
}

/// Versions of the API server and of the nodes, and what is held of the nodes' service proxies: they decide what the cluster
/// can honour.
async fn cluster(client: &Client, canary_namespace: &str) -> anyhow::Result<()> {
    match client.apiserver_version().await {
        Ok(version) => line("API server", version.git_version)?,
        Err(error) => line("API server", unreadable(error))?,
    }
    let nodes = match Api::<Node>::all(client.clone()).list(&ListParams::default()).await {
        Ok(nodes) => nodes.items,
        Err(error) => return line("Nodes", unreadable(error)),
    };
    line("Nodes", nodes::versions(&nodes))?;
    let (pods, obstacle) = canary(client, canary_namespace).await;
    let verdicts = nodes::verdicts(&nodes, &pods, Timestamp::now());
    line("ipMode Proxy", nodes::summary(&verdicts))?;
    for more in nodes::unfit(&verdicts).into_iter().chain(obstacle) {
        line("", more)?;
    }
    Ok(())
}

/// The canary's pods, or why they are not known.
async fn canary(client: &Client, namespace: &str) -> (Vec<ObservedPod>, Option<String>) {
    if namespace.is_empty() {
        return (Vec::new(), None);
    }
    match Api::<ObservedPod>::namespaced(client.clone(), namespace).list(&ListParams::default()).await {
        Ok(pods) => (pods.items, None),
        Err(error) => (Vec::new(), Some(format!("the canary's pods in {namespace}: {}", unreadable(error)))),
    }
}

async fn services(client: &Client) -> anyhow::Result<()> {
    let services = match Api::<Service>::all(client.clone()).list(&ListParams::default()).await {
        Ok(services) => services.items,
        Err(error) => return line("Services", unreadable(error)),
    };
    let publications = Publication::of_all(&services);
    line("Services", publication::summary(&publications))?;
    for waiting in publications.iter().filter(|publication| publication.is_waiting()) {
        let name = &waiting.name;
        line(
            "",
            format_args!(
                "{name} has no address yet: kubectl -n {} describe service {}",
                name.namespace, name.name
            ),
        )?;
    }
    Ok(())
}

fn unreadable(error: kube::Error) -> String {
    format!("cannot be read: {}", said_once(&anyhow::Error::new(error)))
}

fn line(what: &str, text: impl Display) -> anyhow::Result<()> {
    print_line(format_args!("{what:<12} {text}"))
}
