//! What kube-proxy shows of itself: the image of its pods, their flags, and the ConfigMap that configures them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::{Api, Client};
use openstack_ccm_advertise::node::{NodeVerdict, Version, by_kube_proxy};
use openstack_ccm_doctor::backend::{Mounted, has_container, mounted};
use openstack_ccm_doctor::facts::{Looked, Unread, Workload};
use openstack_ccm_doctor::finding::Gap;
use serde_json::Value;

use super::backend::config_maps_of;
use super::reading::{all, said};

const NAMESPACE: &str = "kube-system";
const GATE: &str = "LoadBalancerIPMode";

/// The data of ConfigMaps by `namespace/name`, of those that exist.
type ConfigMaps = BTreeMap<String, Looked<BTreeMap<String, String>>>;

/// What kube-proxy runs with.
#[derive(Clone, Debug)]
pub(super) struct Words {
    /// Whether it honours `ipMode`; absent where something that was not read decides.
    pub(super) verdict: Option<NodeVerdict>,
    /// Networks of the addresses at which it opens node ports, empty for all; or why they are not known.
    pub(super) node_port_addresses: Result<Vec<String>, Unread>,
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
    let maps: ConfigMaps = config_maps_of(client, named).await.into_iter().collect();
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

/// What decides: the feature gate, where it is set, and `nodePortAddresses`.
type Settings = (Option<bool>, Vec<String>);

/// Returns what a kube-proxy runs with; with a configuration file its flags do not count.
fn words(spec: &PodSpec, maps: &ConfigMaps) -> Option<Words> {
    let container = container(spec)?;
    let image = container.image.as_deref().unwrap_or_default().split('@').next().unwrap_or_default();
    let version = image.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| Version::parse(tag).is_some());
    let settings = match file(spec) {
        None => Ok(by_flags(container)),
        Some(Mounted::Other) => Err((Gap::NotSeen, "its configuration is in no ConfigMap".to_owned())),
        Some(Mounted::ConfigMap(map, key)) => in_map(maps, &format!("{NAMESPACE}/{map}"), &key),
    };
    // Only a file that doctor does not read says whether the gate is off.
    let is_known = |version: &&str| settings.is_ok() || is_decided(version);
    let gate = settings.as_ref().ok().and_then(|(gate, _)| *gate);
    Some(Words {
        verdict: version.filter(is_known).map(|version| by_kube_proxy(version, gate)),
        node_port_addresses: settings.map(|(_, addresses)| addresses),
    })
}

fn by_flags(container: &Container) -> Settings {
    let gates = flag(container, "feature-gates").unwrap_or_default();
    let gate =
        gates.split(',').find_map(|one| one.trim().strip_prefix(GATE)?.strip_prefix('=')?.parse().ok());
    let addresses = flag(container, "nodeport-addresses").unwrap_or_default();
    let addresses = addresses.split(',').map(str::trim).filter(|one| !one.is_empty());
    (gate, addresses.map(str::to_owned).collect())
}

fn in_map(maps: &ConfigMaps, map: &str, key: &str) -> Result<Settings, Unread> {
    let data = match maps.get(map) {
        Some(Ok(data)) => data,
        Some(Err(cause)) => return Err((Gap::NotKnown, format!("ConfigMap {map} cannot be read: {cause}"))),
        None => return Err((Gap::NotSeen, format!("there is no ConfigMap {map}"))),
    };
    let config = data.get(key).and_then(|text| serde_saphyr::from_str::<Value>(text).ok());
    let config = config.ok_or_else(|| (Gap::NotSeen, format!("ConfigMap {map} has no YAML at {key}")))?;
    let addresses = config["nodePortAddresses"].as_array().into_iter().flatten();
    let mut addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    // In this mode node ports are open at the primary address of a node, unless something else is said.
    if addresses.is_empty() && config["mode"] == "nftables" {
        addresses.push("primary".to_owned());
    }
    Ok((config["featureGates"][GATE].as_bool(), addresses))
}

/// Returns whether the version alone decides: the gate is locked from 1.32 on, and does not exist before 1.29.
fn is_decided(version: &str) -> bool {
    Version::parse(version).is_some_and(|version| version >= Version(1, 32, 0) || version < Version(1, 29, 0))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// The kubeadm way of installing it, with this image and this volume.
    fn kube_proxy(image: &str, volume: &Value) -> PodSpec {
        serde_json::from_value(json!({
            "containers": [{"name": "kube-proxy", "image": image,
                "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
                "volumeMounts": [{"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy"}]}],
            "volumes": [{"name": "kube-proxy", "hostPath": volume["hostPath"], "configMap": volume["configMap"]}],
        }))
        .unwrap()
    }

    #[rstest]
    #[case::read("v1.31.4", json!({"configMap": {"name": "kube-proxy"}}), Ok("nodePortAddresses: [10.0.0.0/8]"), true, Ok(&["10.0.0.0/8"][..]))]
    #[case::forbidden("v1.36.0", json!({"configMap": {"name": "kube-proxy"}}), Err("forbidden"), true, Err(Gap::NotKnown))]
    #[case::gone("v1.36.0", json!({"configMap": {"name": "other"}}), Ok("{}"), true, Err(Gap::NotSeen))]
    #[case::on_the_disk("v1.36.0", json!({"hostPath": {"path": "/etc/kube-proxy"}}), Ok("{}"), true, Err(Gap::NotSeen))]
    #[case::with_a_gate_on_the_disk("v1.31.4", json!({"hostPath": {"path": "/etc/kube-proxy"}}), Ok("{}"), false, Err(Gap::NotSeen))]
    #[case::by_digest("@sha256:00", json!({"configMap": {"name": "kube-proxy"}}), Ok("{}"), false, Ok(&[][..]))]
    fn what_is_not_read_is_not_taken_for_the_default(
        #[case] version: &str,
        #[case] volume: Value,
        #[case] config: Result<&str, &str>,
        #[case] is_judged: bool,
        #[case] addresses: Result<&[&str], Gap>,
    ) {
        let data = config.map(|text| BTreeMap::from([("config.conf".to_owned(), text.to_owned())]));
        let maps = BTreeMap::from([("kube-system/kube-proxy".to_owned(), data.map_err(str::to_owned))]);
        let image = format!("registry.k8s.io/kube-proxy:{version}").replace(":@", "@");
        let words = words(&kube_proxy(&image, &volume), &maps).unwrap();
        assert_eq!(words.verdict.is_some(), is_judged);
        let found = words.node_port_addresses.map_err(|(gap, _)| gap);
        assert_eq!(
            found.as_deref(),
            addresses.map(|all| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>()).as_deref()
        );
    }
}
