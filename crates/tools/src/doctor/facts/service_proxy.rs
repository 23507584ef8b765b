//! What kube-proxy shows of itself: the image of its pods, their flags, and the ConfigMap that configures them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::{Api, Client};
use openstack_ccm_advertise::node::{NodeVerdict, Version, by_kube_proxy};
use openstack_ccm_doctor::backend::{Mounted, has_container, mounted};
use openstack_ccm_doctor::facts::{Looked, Workload};
use serde_json::Value;

use super::backend::config_maps_of;
use super::reading::{all, said};

const NAMESPACE: &str = "kube-system";
const GATE: &str = "LoadBalancerIPMode";

/// What kube-proxy runs with.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) verdict: NodeVerdict,
    /// Networks of the addresses at which it opens node ports; empty for all.
    pub(super) node_port_addresses: Vec<String>,
}

/// What kube-proxy runs with on each node, and on nodes without a pod of its own, by its DaemonSet.
#[derive(Default)]
pub(super) struct ServiceProxies {
    nodes: BTreeMap<String, Words>,
    elsewhere: Option<Words>,
}

impl ServiceProxies {
    pub(super) fn of(&self, node: &str) -> Option<&Words> {
        self.nodes.get(node).or(self.elsewhere.as_ref())
    }
}

fn container(spec: &PodSpec) -> Option<&Container> {
    has_container(spec, &["kube-proxy"], &["kube-proxy"])
}

/// Reads what kube-proxy shows; nothing where its pods cannot be read.
pub(super) async fn gather(client: &Client, workloads: &Looked<Vec<Workload>>) -> ServiceProxies {
    let pods = all(&Api::<Pod>::namespaced(client.clone(), NAMESPACE)).await.map_err(said);
    let pods: Vec<PodSpec> = pods.into_iter().flatten().filter_map(|pod| pod.spec).collect();
    let is_daemon = |one: &&Workload| one.kind == "DaemonSet" && one.namespace == NAMESPACE;
    let daemons = workloads.iter().flatten().filter(is_daemon).map(|one| &one.pods);
    let daemon = daemons.into_iter().find(|spec| container(spec).is_some());
    let specs = || pods.iter().chain(daemon).filter(|spec| container(spec).is_some());
    let named = specs().filter_map(|spec| match file(spec)? {
        Mounted::ConfigMap(map, _) => Some(format!("{NAMESPACE}/{map}")),
        Mounted::Other => None,
    });
    let mut named: Vec<String> = named.collect();
    named.sort();
    named.dedup();
    let maps: BTreeMap<_, _> = config_maps_of(client, named).await.into_iter().collect();
    let of_node = |spec: &PodSpec| Some((spec.node_name.clone()?, words(spec, &maps)?));
    ServiceProxies {
        nodes: pods.iter().filter_map(of_node).collect(),
        elsewhere: daemon.and_then(|spec| words(spec, &maps)),
    }
}

fn flag(container: &Container, name: &str) -> Option<String> {
    let mut words = container.command.iter().flatten().chain(container.args.iter().flatten());
    words
        .find_map(|word| Some(word.trim_start_matches('-').strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// Returns what is mounted in the place of its configuration.
fn file(spec: &PodSpec) -> Option<Mounted> {
    let container = container(spec)?;
    let path = flag(container, "config")?;
    Some(mounted(spec, container, &path).unwrap_or(Mounted::Other))
}

/// Returns what a kube-proxy runs with, as far as that decides; with a configuration file its flags do not count.
fn words(spec: &PodSpec, maps: &BTreeMap<String, Looked<BTreeMap<String, String>>>) -> Option<Words> {
    let container = container(spec)?;
    let image = container.image.as_deref()?.split('@').next()?;
    let version = image.rsplit_once(':')?.1;
    Version::parse(version)?;
    let (gate, node_port_addresses) = match file(spec) {
        None => {
            let gates = flag(container, "feature-gates").unwrap_or_default();
            let gate = gates
                .split(',')
                .find_map(|one| one.trim().strip_prefix(GATE)?.strip_prefix('=')?.parse().ok());
            let addresses = flag(container, "nodeport-addresses").unwrap_or_default();
            let addresses = addresses.split(',').map(str::trim).filter(|one| !one.is_empty());
            (gate, addresses.map(str::to_owned).collect())
        }
        Some(file) => {
            let config = match &file {
                Mounted::ConfigMap(map, key) => {
                    let data = maps.get(&format!("{NAMESPACE}/{map}"))?.as_ref().ok()?;
                    serde_saphyr::from_str::<Value>(data.get(key)?).ok()
                }
                Mounted::Other => None,
            };
            match config {
                Some(config) => {
                    let addresses = config["nodePortAddresses"].as_array().into_iter().flatten();
                    let mut addresses: Vec<String> =
                        addresses.filter_map(Value::as_str).map(str::to_owned).collect();
                    // In this mode node ports are open at the primary address of a node, unless something else is said.
                    if addresses.is_empty() && config["mode"] == "nftables" {
                        addresses.push("primary".to_owned());
                    }
                    (config["featureGates"][GATE].as_bool(), addresses)
                }
                // Only a file that doctor does not read says whether the gate is off.
                None if is_decided(version) => (None, Vec::new()),
                None => return None,
            }
        }
    };
    Some(Words { verdict: by_kube_proxy(version, gate), node_port_addresses })
}

/// Returns whether the version alone decides: the gate is locked from 1.32 on, and does not exist before 1.29.
fn is_decided(version: &str) -> bool {
    Version::parse(version).is_some_and(|version| version >= Version(1, 32, 0) || version < Version(1, 29, 0))
}
