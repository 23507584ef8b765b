//! Gathers the facts once: from Kubernetes with the rights of the user, and from the cloud through a dry run of the controllers. A
//! fact that cannot be read is represented too.
//!
//! | module | gathers |
//! | --- | --- |
//! | `reading` | lists of objects, and why one could not be read |
//! | `cluster` | nodes, Services, policies, whether the API server keeps `ipMode` |
//! | `names` | the configuration of DNS servers, and the hostnames that Ingresses serve |
//! | `workloads` | pod templates |
//! | `service_proxy` | what kube-proxy shows of itself |
//! | `path` | the requirements of the path to an application, and how its address would be published |
//! | `backend` | the application, and the objects that configure it |
//! | `network` | floating IPs, ports and security groups |
//! | `cloud` | the load balancer, and what the controller would change |
//! | `policies` | policies of kinds that network plugins define |
//! | `of_service` | Events, slices, and the controller of a Service |

mod backend;
mod cloud;
mod cluster;
mod names;
mod network;
mod of_service;
mod path;
mod policies;
mod reading;
mod service_proxy;
mod workloads;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{Api, Client};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::{CloudFacts, ClusterFacts, Looked, ServiceFacts};
use openstack_ccm_doctor::leftovers::LeftoverFacts;
use openstack_ccm_manager::args::duration;
use openstack_ccm_manager::error_text::said_once;
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::Config;

use super::args::WalkArgs;
use crate::from_cluster;
use crate::output::Progress;
use crate::plan::MAX_SINGLE_SERVICES;
use crate::plan::rehearsal::Chosen;
use backend::Applications;
use cloud::READS;
use cluster::Known;
pub(super) use of_service::Names;
use of_service::{Lists, hosts, served_by};
use reading::is_not_there;

pub(super) struct Gathered {
    pub(super) cluster: ClusterFacts,
    pub(super) services: Vec<ServiceFacts>,
    pub(super) leftovers: Option<LeftoverFacts>,
    /// What the user asked for and does not exist.
    pub(super) absent: Vec<String>,
}

/// Gathers all facts.
///
/// # Errors
/// The Services cannot be read, or a named Service does not exist.
pub(super) async fn gather(
    client: &Client,
    arguments: &WalkArgs,
    names: &Names<'_>,
    progress: &mut Progress,
) -> anyhow::Result<Gathered> {
    progress.report("reading the cluster");
    let known = cluster::gather(client, arguments).await?;
    let (chosen, absent) = choose(client, &known, arguments).await?;
    let provider = provider(client, arguments).await?;
    progress.report("waiting for the cloud");
    let nodes: Vec<IpAddr> =
        known.facts.nodes.iter().flatten().flat_map(|node| node.addresses.clone()).collect();
    let mut clouds = match &provider {
        Ok(provider) => cloud::gather(provider, arguments, &chosen, &nodes).await,
        Err(_) => BTreeMap::new(),
    };
    let default = Arc::new(Config::default());
    let config = provider.as_ref().map_or(&default, |provider| provider.config());
    let many = chosen.len() > MAX_SINGLE_SERVICES;
    let lists = Lists::new(client, many).await;
    let applications = Applications::new(client, many).await;
    let class = arguments.controller.load_balancer_class.as_deref();
    progress.report("reading the Services");
    let read = |(service, cloud): (Service, Looked<CloudFacts>)| {
        let (lists, applications, known, nodes) = (&lists, &applications, &known, &nodes);
        async move {
            let key = key_of(&service);
            let path = path::of(&service, config, nodes);
            let (slices, events, hosts) = tokio::join!(
                lists.slices(&key),
                lists.events(&key, known.facts.time),
                hosts(&service, names),
            );
            let backend = applications.of(&service, &slices).await;
            ServiceFacts {
                wanted: path::wanted(&service, &path, &known.held),
                path: path.map(|read| read.fact),
                slices,
                events,
                served_by: served_by(&service, class),
                hosts,
                cloud,
                cloud_asked: !arguments.no_cloud,
                backend,
                dials: None,
                service,
            }
        }
    };
    let with_cloud = chosen.into_iter().map(|service| {
        let missing = || Err(provider.as_ref().err().cloned().unwrap_or_default());
        let cloud = clouds.remove(&key_of(&service)).unwrap_or_else(missing);
        (service, cloud)
    });
    let services = stream::iter(with_cloud).map(read).buffered(READS).collect().await;
    let leftovers = match arguments.leftovers {
        true => Some(cluster::leftovers(client).await),
        false => None,
    };
    Ok(Gathered { cluster: known.facts, services, leftovers, absent })
}

fn key_of(service: &Service) -> ServiceKey {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    ServiceKey::new(part(&service.metadata.namespace), part(&service.metadata.name))
}

fn is_load_balancer(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
}

/// Returns the Services to look at, and what does not exist of what the user asked for.
async fn choose(
    client: &Client,
    known: &Known,
    arguments: &WalkArgs,
) -> anyhow::Result<(Vec<Service>, Vec<String>)> {
    // The canary's Services are not an application's.
    let is_canary = |service: &Service| {
        let class = service.spec.as_ref().and_then(|spec| spec.load_balancer_class.as_deref());
        class == Some(openstack_ccm_canary::CLASS)
    };
    let all = known.services.iter().filter(|service| is_load_balancer(service) && !is_canary(service));
    let (mut chosen, mut absent) = (Vec::new(), Vec::new());
    match arguments.chosen(client.default_namespace())? {
        None => {}
        Some(Chosen::All) => chosen.extend(all.cloned()),
        Some(Chosen::In(namespace)) => {
            chosen.extend(all.filter(|service| *key_of(service).namespace == *namespace).cloned());
            if chosen.is_empty() {
                let read = Api::<Namespace>::all(client.clone()).get(&namespace).await;
                let is_gone = read.is_err_and(|error| is_not_there(&error));
                anyhow::ensure!(!is_gone, "there is no namespace {namespace}");
                absent.push(format!("the namespace {namespace} has no Service of type LoadBalancer"));
            }
        }
        Some(Chosen::Named(names)) => {
            for key in &names {
                match known.services.iter().find(|service| key_of(service) == *key) {
                    None => absent.push(format!("there is no Service {key}")),
                    Some(service) if is_load_balancer(service) => chosen.push(service.clone()),
                    Some(_) => absent.push(format!("the Service {key} is not of type LoadBalancer")),
                }
            }
            anyhow::ensure!(!chosen.is_empty(), "{}", absent.join("; "));
        }
    }
    Ok((chosen, absent))
}

/// Waits for an answer for so long; `who` shall give it.
async fn within<T, E: Display>(
    limit: Duration,
    who: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Looked<T> {
    match tokio::time::timeout(limit, work).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("{who} did not answer within {}", duration::format(limit))),
    }
}

/// The provider, or why no facts about the cloud can be gathered.
type Provider = Result<OpenStackProvider, String>;

/// Reads the configuration.
///
/// # Errors
/// A file was named that is not there.
async fn provider(client: &Client, arguments: &WalkArgs) -> anyhow::Result<Provider> {
    let WalkArgs { lease, from_cluster, .. } = arguments;
    let files = &arguments.controller.config.cloud_config;
    if arguments.no_cloud {
        return Ok(Err("--no-cloud".to_owned()));
    }
    if files.is_empty() && !from_cluster {
        return Ok(Err("no --cloud-config or --from-cluster".to_owned()));
    }
    for file in files {
        let problem = || format!("--cloud-config={}: the file cannot be read", file.display());
        std::fs::File::open(file).with_context(problem)?;
    }
    let read = from_cluster::provider(client, lease, files, *from_cluster).await;
    Ok(read.map_err(|error| one_line(&said_once(&error))))
}

/// Joins the lines of a message.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
