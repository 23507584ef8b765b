//! The facts, gathered once: from Kubernetes with the rights of whoever asks, and from the cloud through the controllers on a
//! dry run. What cannot be read is a fact too.
//!
//! | module | gathers |
//! | --- | --- |
//! | `reading` | lists, and why one could not be read |
//! | `cluster` | nodes, Services, policies, what the API server keeps |
//! | `names` | how name servers are configured, and the names that are served |
//! | `workloads` | pod templates |
//! | `path` | what the way to an application needs, and how it would be published |
//! | `backend` | the application, and what configures it |
//! | `cloud` | the load balancer, and what the controller would do |
//! | `doors` | what the security groups of the nodes let in |

mod backend;
mod cloud;
mod cluster;
mod doors;
mod names;
mod path;
mod reading;
mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_doctor::facts::{CloudFacts, ClusterFacts, Looked, ServiceFacts};
use openstack_ccm_doctor::leftovers::LeftoverFacts;
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::Config;

use super::args::WalkArgs;
use crate::subcommands::output::Progress;
use cluster::Known;
use reading::said;

/// All that was gathered.
pub(super) struct Gathered {
    pub(super) cluster: ClusterFacts,
    pub(super) services: Vec<ServiceFacts>,
    pub(super) leftovers: Option<LeftoverFacts>,
    /// Why the cloud could not be looked at although it should have been.
    pub(super) cloud_trouble: Option<String>,
}

impl Gathered {
    /// What of Kubernetes could not be read.
    pub(super) fn unreadable(&self) -> Vec<&str> {
        let ClusterFacts { nodes, services, policies, dns, names, workloads, .. } = &self.cluster;
        let of_services =
            self.services.iter().flat_map(|one| [one.slices.as_ref().err(), one.backend.as_ref().err()]);
        [
            nodes.as_ref().err(),
            services.as_ref().err(),
            policies.as_ref().err(),
            dns.as_ref().err(),
            names.as_ref().err(),
            workloads.as_ref().err(),
        ]
        .into_iter()
        .chain(of_services)
        .flatten()
        .map(String::as_str)
        .collect()
    }
}

/// Gathers everything.
///
/// # Errors
/// The Services cannot be read, or one that is named is not there.
pub(super) async fn gather(
    client: &Client,
    arguments: &WalkArgs,
    progress: &mut Progress,
) -> anyhow::Result<Gathered> {
    progress.report("reading the cluster");
    let known = cluster::gather(client, arguments).await?;
    let chosen = choose(&known, arguments)?;
    let provider = provider(arguments);
    progress.report("looking at the cloud");
    let (mut clouds, cloud_trouble) = look_at_cloud(&provider, arguments, &chosen).await;
    let default = Arc::new(Config::default());
    let config = provider.as_ref().map_or(&default, |provider| provider.config());
    let mut services = Vec::new();
    for service in chosen {
        let key = key_of(&service);
        progress.report(format_args!("reading {key}"));
        let path = path::of(&service, config);
        services.push(ServiceFacts {
            wanted: path::wanted(&service, &path, &known.held),
            path: path.map(|read| read.fact),
            slices: slices(client, &key).await,
            cloud: clouds.remove(&key).unwrap_or_else(|| Err("nobody looked".to_owned())),
            backend: backend::of(client, &service).await,
            dials: None,
            service,
        });
    }
    let leftovers = match arguments.leftovers {
        true => Some(cluster::leftovers(client).await),
        false => None,
    };
    Ok(Gathered { cluster: known.facts, services, leftovers, cloud_trouble })
}

fn key_of(service: &Service) -> ServiceKey {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    ServiceKey::new(part(&service.metadata.namespace), part(&service.metadata.name))
}

fn is_load_balancer(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
}

fn choose(known: &Known, arguments: &WalkArgs) -> anyhow::Result<Vec<Service>> {
    if arguments.all {
        // Those of the canary stand for themselves.
        let canary = openstack_ccm_canary::CLASS;
        let is_canary = |service: &&Service| {
            service.spec.as_ref().and_then(|spec| spec.load_balancer_class.as_deref()) == Some(canary)
        };
        let all = known.services.iter().filter(|service| is_load_balancer(service));
        return Ok(all.filter(|service| !is_canary(service)).cloned().collect());
    }
    let mut chosen = Vec::new();
    for key in &arguments.services {
        let service = known.services.iter().find(|service| key_of(service) == *key);
        let service = service.ok_or_else(|| anyhow::anyhow!("there is no Service {key}"))?;
        anyhow::ensure!(is_load_balancer(service), "the Service {key} is not of type LoadBalancer");
        chosen.push(service.clone());
    }
    Ok(chosen)
}

type Provider = Result<OpenStackProvider, NoProvider>;

/// Why there is no cloud to look at.
enum NoProvider {
    /// Nobody wants it.
    NotAsked(&'static str),
    /// The configuration cannot be used.
    Broken(String),
}

fn provider(arguments: &WalkArgs) -> Provider {
    if arguments.no_cloud {
        return Err(NoProvider::NotAsked("--no-cloud"));
    }
    let files = &arguments.controller.config.cloud_config;
    if files.is_empty() {
        return Err(NoProvider::NotAsked("no --cloud-config is given"));
    }
    OpenStackProvider::load(files).map_err(|errors| NoProvider::Broken(errors.to_string()))
}

/// The cloud of each Service, and why it could not be looked at although it should have been.
async fn look_at_cloud(
    provider: &Provider,
    arguments: &WalkArgs,
    services: &[Service],
) -> (BTreeMap<ServiceKey, Looked<CloudFacts>>, Option<String>) {
    let keys: Vec<ServiceKey> = services.iter().map(key_of).collect();
    let all = |cause: &str| keys.iter().map(|key| (key.clone(), Err(cause.to_owned()))).collect();
    if keys.is_empty() {
        return (BTreeMap::new(), None);
    }
    match provider {
        Err(NoProvider::NotAsked(cause)) => (all(cause), None),
        Err(NoProvider::Broken(cause)) => (all(cause), Some(cause.clone())),
        Ok(provider) => match cloud::gather(provider, arguments, services).await {
            Ok(facts) => (facts, None),
            Err(error) => {
                let cause = crate::error_text::said_once(&error);
                (all(&cause), Some(cause))
            }
        },
    }
}

async fn slices(client: &Client, key: &ServiceKey) -> Looked<Vec<EndpointSlice>> {
    let api = Api::<EndpointSlice>::namespaced(client.clone(), &key.namespace);
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={}", key.name));
    api.list(&of_service).await.map(|list| list.items).map_err(said)
}
