//! Gathers nodes, Services, policies, the leader, and whether the API server keeps `ipMode`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::{Api, Client};
use openstack_ccm_advertise::canary::pods_of_canary;
use openstack_ccm_advertise::cluster::{Cluster, ServerSupport};
use openstack_ccm_advertise::metrics::AdvertiseMetrics;
use openstack_ccm_advertise::node::{Cause, Fitness, NodeVerdict, Source, Verdict, Version, judge};
use openstack_ccm_advertise::server::{Intervals, ServerDetection};
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_doctor::facts::{Basis, ClusterFacts, Looked, NodeFact};
use openstack_ccm_doctor::leftovers::LeftoverFacts;
use openstack_ccm_manager::args::feature_gates::FeatureGates;
use openstack_ccm_manager::error_text::said_once;
use prometheus_client::registry::Registry;

use super::backend::config_maps_of;
use super::reading::{all, is_forbidden, said};
use super::service_proxy::{self, ServiceProxies};
use super::{is_load_balancer, key_of, names, policies, workloads};
use crate::doctor::args::WalkArgs;
use crate::status;

/// The field manager of openstack-ccm.
const FIELD_MANAGER: &str = "openstack-ccm";
/// Timeout of the dry-run write that shows whether the API server keeps `ipMode`.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Lists the Services to look at, and, where the user's rights allow it, all Services of the cluster.
async fn services(
    client: &Client,
    arguments: &WalkArgs,
) -> anyhow::Result<(Vec<Service>, Looked<Vec<Service>>)> {
    let problem = "the Services of the cluster cannot be read";
    match all(&Api::<Service>::all(client.clone())).await {
        Ok(services) => Ok((services.clone(), Ok(services))),
        Err(error) if is_forbidden(&error) => {
            // For the Services of a namespace the rights in that namespace are enough.
            let cause = said(error);
            let namespaces = arguments.namespaces(client.default_namespace())?;
            anyhow::ensure!(!namespaces.is_empty(), "{problem}: {cause}");
            let mut services = Vec::new();
            for namespace in namespaces {
                let here = all(&Api::<Service>::namespaced(client.clone(), &namespace)).await;
                services.extend(here.with_context(|| format!("the Services of {namespace} cannot be read"))?);
            }
            Ok((services, Err(cause)))
        }
        Err(error) => Err(error).context(problem),
    }
}

/// The facts about the cluster, with the state that decides how an address would be published.
pub(super) struct Known {
    pub(super) facts: ClusterFacts,
    pub(super) services: Vec<Service>,
    /// The verdicts on API server and nodes, or why the API server's is not known.
    pub(super) held: Looked<Cluster>,
}

pub(super) async fn gather(client: &Client, arguments: &WalkArgs) -> anyhow::Result<Known> {
    let time = Timestamp::now();
    let (services, of_cluster) = services(client, arguments).await?;
    let nodes = async { all(&Api::<Node>::all(client.clone())).await.map_err(said) };
    let policies = async { all(&Api::<NetworkPolicy>::all(client.clone())).await.map_err(said) };
    let controller = status::controller(client, &arguments.lease, &arguments.controller.cluster_name);
    let (nodes, keeps_mode, policies, foreign_policies, dns, names, controller, workloads) = tokio::join!(
        nodes,
        keeps_mode(client, &services),
        policies,
        policies::foreign(client),
        names::dns(client),
        names::served(client),
        controller,
        workloads::gather(client),
    );
    let (verdicts, proxies) =
        tokio::join!(verdicts(client, arguments, &nodes, time), service_proxy::gather(client, &workloads));
    let data_plane = match &verdicts {
        Ok(verdicts) => judge(verdicts.iter().map(|(name, verdict)| (name.as_str(), verdict))),
        Err(_) => Fitness::Fit,
    };
    let gate = FeatureGates::merged(&arguments.controller.feature_gates).load_balancer_ip_mode;
    let support = |keeps: bool| if keeps { ServerSupport::Keeps } else { ServerSupport::Drops };
    let held = keeps_mode.clone().map(|keeps| Cluster { gate, server: support(keeps), data_plane });
    let facts = ClusterFacts {
        time,
        keeps_mode,
        nodes: verdicts.map(|verdicts| node_facts(verdicts, nodes.as_deref().unwrap_or_default(), &proxies)),
        services: of_cluster,
        policies,
        foreign_policies,
        client: arguments.from,
        dns,
        names,
        controller: controller.map_err(|error| said_once(&error)),
        workloads,
    };
    Ok(Known { facts, services, held })
}

/// Returns all nodes, each with the verdict if a client may run on it.
fn node_facts(
    verdicts: Vec<(String, NodeVerdict)>,
    nodes: &[Node],
    proxies: &ServiceProxies,
) -> Vec<NodeFact> {
    let mut held: BTreeMap<String, NodeVerdict> = verdicts.into_iter().collect();
    let mut facts: Vec<NodeFact> = nodes.iter().map(|node| node_fact(node, &mut held, proxies)).collect();
    facts.sort_by(|one, other| one.name.cmp(&other.name));
    facts
}

fn node_fact(
    node: &Node,
    verdicts: &mut BTreeMap<String, NodeVerdict>,
    proxies: &ServiceProxies,
) -> NodeFact {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref()).into_iter().flatten();
    let mut conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let name = node.metadata.name.clone().unwrap_or_default();
    let own = proxies.of(&name);
    let known = NodeFact {
        addresses: addresses.filter_map(|address| address.address.parse().ok()).collect(),
        ready: conditions
            .find(|condition| condition.type_ == "Ready")
            .map(|condition| condition.status == "True"),
        dead: true,
        honours: false,
        source: String::new(),
        basis: Basis::Guessed,
        cause: String::new(),
        node_port_addresses: own.map_or(Ok(Vec::new()), |words| words.node_port_addresses.clone()),
        name,
    };
    let Some(held) = verdicts.remove(&known.name) else { return known };
    let (held, basis, source) = judged(held, own.and_then(|words| words.verdict.as_ref()));
    let honours = held.verdict == Verdict::Fit;
    NodeFact {
        dead: false,
        honours,
        source: source.to_owned(),
        basis,
        cause: held.cause.to_string(),
        ..known
    }
}

/// Chooses between what is known of a node and what its kube-proxy shows of itself.
fn judged(held: NodeVerdict, own: Option<&NodeVerdict>) -> (NodeVerdict, Basis, &'static str) {
    let source = held.source.as_str();
    match (held.source, &held.cause) {
        (Source::Canary | Source::KubeProxy, _) => (held, Basis::Measured, source),
        // They take the traffic of pods, or no client is there.
        (_, Cause::Replacement(_) | Cause::Windows | Cause::VirtualNode | Cause::NotReported) => {
            (held, Basis::Shown, source)
        }
        _ if own.is_some() => (own.cloned().unwrap_or(held), Basis::Shown, "the pod of kube-proxy"),
        // kube-proxy is in the same binary.
        (_, Cause::NewKubelet(version) | Cause::OldKubelet(version)) if version.contains("+k3s") => {
            (held, Basis::Shown, source)
        }
        _ => (held, Basis::Guessed, source),
    }
}

/// Returns the verdict on each node, as in `status`.
async fn verdicts(
    client: &Client,
    arguments: &WalkArgs,
    nodes: &Looked<Vec<Node>>,
    now: Timestamp,
) -> Looked<Vec<(String, NodeVerdict)>> {
    let nodes = nodes.as_deref().map_err(Clone::clone)?;
    let namespace = &arguments.controller.service_proxies.canary.canary_namespace;
    let namespace = if namespace.is_empty() { openstack_ccm_canary::NAMESPACE } else { namespace };
    // Without a canary the verdict is by versions and images, and its source says so.
    let pods = pods_of_canary(client, namespace).await.unwrap_or_default();
    Ok(status::nodes::verdicts(nodes, &pods, now))
}

/// Returns whether the API server keeps `ipMode`: always from 1.32 on, never before 1.29. Between them only a dry-run write shows
/// it, which a user with read-only rights may not make.
async fn keeps_mode(client: &Client, services: &[Service]) -> Looked<bool> {
    let version = client.apiserver_version().await.map_err(said)?;
    match Version::parse(&version.git_version) {
        Some(version) if version >= Version(1, 32, 0) => return Ok(true),
        Some(version) if version < Version(1, 29, 0) => return Ok(false),
        _ => {}
    }
    let Some(candidate) = services.iter().find(|service| is_load_balancer(service)) else {
        return Err(
            "the cluster has no Service of type LoadBalancer with which to test the API server".to_owned()
        );
    };
    let writer = StatusWriter::new(client.clone(), CALL_TIMEOUT, FIELD_MANAGER);
    let intervals = Intervals { probe: CALL_TIMEOUT, version: CALL_TIMEOUT };
    let metrics = AdvertiseMetrics::registered(&mut Registry::default());
    let detection = ServerDetection::new(client.clone(), writer, None, intervals, metrics);
    match detection.server(&key_of(candidate)).await {
        ServerSupport::Keeps => Ok(true),
        ServerSupport::Drops => Ok(false),
        ServerSupport::Unknown => Err(format!(
            "version {} does not tell whether the API server stores ipMode, and the dry-run write that \
             would tell was refused (patch of services/status with dryRun=All)",
            version.git_version
        )),
    }
}

/// ConfigMaps of service proxies.
const SERVICE_PROXIES: [&str; 3] = ["kube-proxy", "antrea-config", "cilium-config"];

pub(super) async fn leftovers(client: &Client) -> LeftoverFacts {
    let namespaces = async { all(&Api::<Namespace>::all(client.clone())).await.map_err(said) };
    let maps = config_maps_of(client, SERVICE_PROXIES.map(|name| format!("kube-system/{name}")));
    let (namespaces, maps) = tokio::join!(namespaces, maps);
    let name = |namespace: Namespace| namespace.metadata.name.unwrap_or_default();
    let texts = |(map, data): (String, Looked<BTreeMap<String, String>>)| {
        Ok::<_, String>(data?.into_values().map(|text| (map.clone(), text)).collect::<Vec<_>>())
    };
    let service_proxies = maps.into_iter().map(texts).collect::<Looked<Vec<_>>>().map(|all| all.concat());
    LeftoverFacts { namespaces: namespaces.map(|all| all.into_iter().map(name).collect()), service_proxies }
}
