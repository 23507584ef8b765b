//! The kube-proxy of a node: its version, feature gate and `nodePortAddresses`, as its pod and the pod's ConfigMap have them.
//!
//! From 1.30 it honours `ipMode: Proxy` (KEP-1860: alpha in 1.29, beta in 1.30, not to be switched off from 1.32). With `--config` it
//! ignores flags. In mode nftables node ports are open at the primary address of a node alone, unless something else is said.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::objects::{self, Objects};
use super::text;
use crate::object::{list, texts};

/// The first minor release that knows `ipMode`, behind a gate.
const KNOWS: u16 = 29;
/// The first that honours it by default.
const HONOURS: u16 = 30;
/// The first that cannot do otherwise.
const LOCKED: u16 = 32;

/// Whether a service proxy of this version, such as `v1.36.0`, honours `ipMode` by default.
pub fn honours_ip_mode(version: &str) -> bool {
    minor(version).is_some_and(|minor| minor >= HONOURS)
}

/// The minor version of release 1; above all of them for a later release.
fn minor(version: &str) -> Option<u16> {
    let mut parts = version.trim_start_matches('v').split(['.', '-', '+']);
    let mut number = || parts.next()?.parse::<u16>().ok();
    match (number()?, number()) {
        (1, minor) => minor,
        (major, _) => (major > 1).then_some(u16::MAX),
    }
}

pub(super) struct KubeProxy {
    pub(super) honours_ip_mode: bool,
    node_port_addresses: Vec<String>,
}

impl KubeProxy {
    /// What runs on a node: its pod, or as old as the node says where there is none.
    pub(super) fn of(objects: &Objects, node: &Value) -> Self {
        let info = &node["status"]["nodeInfo"];
        let pod = objects.kube_proxy(node);
        let version = pod.and_then(version).or_else(|| {
            let own = |key: &str| info[key].as_str().filter(|version| !version.is_empty()).map(str::to_owned);
            own("kubeProxyVersion").or_else(|| own("kubeletVersion"))
        });
        let settings = pod.map_or(Value::Null, |pod| settings(objects, pod));
        let minor = version.as_deref().and_then(minor).unwrap_or_default();
        let honours_ip_mode = match settings["featureGates"]["LoadBalancerIPMode"].as_bool() {
            Some(gate) if (KNOWS..LOCKED).contains(&minor) => gate,
            _ => minor >= HONOURS,
        };
        let mut node_port_addresses: Vec<String> =
            texts(&settings, "/nodePortAddresses").into_iter().map(str::to_owned).collect();
        if node_port_addresses.is_empty() && settings["mode"] == "nftables" {
            node_port_addresses.push("primary".to_owned());
        }
        Self { honours_ip_mode, node_port_addresses }
    }

    /// Whether it opens node ports at this address of its node.
    pub(super) fn opens_at(&self, node: &Value, address: IpAddr) -> bool {
        let primary = || objects::addresses(node).find(|own| own.is_ipv6() == address.is_ipv6());
        let holds = |range: &String| match range.as_str() {
            "primary" => primary() == Some(address),
            range => range.parse::<IpNet>().is_ok_and(|range| range.contains(&address)),
        };
        self.node_port_addresses.is_empty() || self.node_port_addresses.iter().any(holds)
    }
}

fn container(pod: &Value) -> &Value {
    list(pod, "/spec/containers").first().unwrap_or(&Value::Null)
}

/// The tag of its image.
fn version(pod: &Value) -> Option<String> {
    let image = text(&container(pod)["image"]).split('@').next()?;
    let (_, tag) = image.rsplit('/').next()?.split_once(':')?;
    minor(tag).map(|_| tag.to_owned())
}

/// Its configuration: the file of `--config`, where a ConfigMap is mounted, else what flags say.
fn settings(objects: &Objects, pod: &Value) -> Value {
    let words: Vec<&str> = [texts(container(pod), "/command"), texts(container(pod), "/args")].concat();
    let flag = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    if let Some(path) = flag("--config") {
        return file(objects, pod, path).unwrap_or_default();
    }
    let mut settings = serde_json::json!({});
    for (gate, value) in
        flag("--feature-gates").iter().flat_map(|all| all.split(',')).filter_map(|one| one.split_once('='))
    {
        settings["featureGates"][gate] = (value == "true").into();
    }
    if let Some(ranges) = flag("--nodeport-addresses") {
        settings["nodePortAddresses"] = ranges.split(',').collect::<Vec<_>>().into();
    }
    if let Some(mode) = flag("--proxy-mode") {
        settings["mode"] = mode.into();
    }
    settings
}

fn file(objects: &Objects, pod: &Value, path: &str) -> Option<Value> {
    let (folder, key) = path.rsplit_once('/')?;
    let mount = list(container(pod), "/volumeMounts").iter().find(|mount| mount["mountPath"] == folder)?;
    let volume = list(pod, "/spec/volumes").iter().find(|volume| volume["name"] == mount["name"])?;
    let map = objects.config_map(&pod["metadata"]["namespace"], &volume["configMap"]["name"])?;
    serde_saphyr::from_str(text(map["data"].get(key)?)).ok()
}
