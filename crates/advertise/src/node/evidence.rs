//! What a Node object shows, and the resulting guess at its service proxy. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use super::images::{Images, KubeProxy};
use super::verdict::{Cause, NodeVerdict, Replacement, Source, prevailing};
use super::{Version, virtual_node};

/// How long a node must be unreachable before it no longer counts. Kubernetes evicts its pods after 5 minutes
/// (`tolerationSeconds` of the taint `node.kubernetes.io/unreachable`); after as much again, for pods that tolerate the
/// taint a little longer, no client is left there.
const UNREACHABLE_FOR_LONG: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// Returns since when a node's kubelet has been silent: the transition of the condition `Ready` to `Unknown`.
pub fn unreachable_since(node: &Node) -> Option<jiff::Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref()?;
    (ready.status == "Unknown").then_some(since.0)
}

/// Time between two judgements of all nodes: a node that stays unreachable causes no event.
pub const JUDGEMENT_INTERVAL: Duration = Duration::from_secs(60);

/// Whether a node has been unreachable for so long that no client is left there.
pub fn is_unreachable_for_long(since: Option<jiff::Timestamp>, now: jiff::Timestamp) -> bool {
    since.is_some_and(|since| now.duration_since(since) >= UNREACHABLE_FOR_LONG)
}

/// The first Kubernetes release whose kube-proxy honours the field by default.
const FIRST_FIT_KUBELET: Version = Version(1, 30, 0);
/// The first that has the gate, and the first that cannot switch it off.
const FIRST_WITH_GATE: Version = Version(1, 29, 0);
const FIRST_LOCKED: Version = Version(1, 32, 0);

/// Returns the guess at a node's service proxy by what the node shows. It may be wrong; nothing that serves may depend on it.
pub fn guess_of(node: &Node) -> NodeVerdict {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let kubelet = info.map_or("", |info| &info.kubelet_version);
    let labels = node.metadata.labels.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let keys = annotation_keys(node).chain(taints.iter().map(|taint| taint.key.as_str()));
    if virtual_node::is_virtual(kubelet, labels, keys) {
        return NodeVerdict::fit(Source::Version, Cause::VirtualNode);
    }
    let by_version = by_version(kubelet, info.map_or("", |info| &info.operating_system));
    let by_image = by_image(node, kubelet);
    prevailing(by_image.iter().chain([&by_version])).unwrap_or(&by_version).clone()
}

/// Returns the verdict on kube-proxy of a version, as its image has it, with the gate `LoadBalancerIPMode` where that is known. The
/// gate is on by default from 1.30 on, and locked from 1.32 on.
pub fn by_kube_proxy(version: &str, gate: Option<bool>) -> NodeVerdict {
    let cause = || Cause::KubeProxyVersion(version.to_owned());
    match (Version::parse(version), gate) {
        (Some(parsed), Some(false)) if parsed >= FIRST_FIT_KUBELET && parsed < FIRST_LOCKED => {
            NodeVerdict::unfit(Source::Image, Cause::GateOff)
        }
        (Some(parsed), Some(true)) if parsed >= FIRST_WITH_GATE && parsed < FIRST_FIT_KUBELET => {
            NodeVerdict::fit(Source::Image, Cause::GateOn)
        }
        (Some(parsed), _) if parsed >= FIRST_FIT_KUBELET => NodeVerdict::fit(Source::Image, cause()),
        _ => NodeVerdict::unfit(Source::Image, cause()),
    }
}

/// Returns the guess for a Linux node of which only the kubelet's version is known.
pub fn guess_by_kubelet(version: &str) -> NodeVerdict {
    by_version(version, "linux")
}

/// Judges by the kubelet's version and the operating system.
fn by_version(kubelet: &str, operating_system: &str) -> NodeVerdict {
    let unfit = |cause| NodeVerdict::unfit(Source::Version, cause);
    if operating_system.eq_ignore_ascii_case("windows") {
        return unfit(Cause::Windows);
    }
    match Version::parse(kubelet) {
        None if kubelet.is_empty() => NodeVerdict::fit(Source::Version, Cause::NotReported),
        None => unfit(Cause::UnknownVersion(kubelet.to_owned())),
        Some(version) if version < FIRST_FIT_KUBELET => unfit(Cause::OldKubelet(kubelet.to_owned())),
        Some(_) => NodeVerdict::fit(Source::Version, Cause::NewKubelet(kubelet.to_owned())),
    }
}

/// Finds a replacement of kube-proxy that ignores the mode, by annotations and images, or else the version of kube-proxy: of several
/// images the newest, because older ones are left-overs of upgrades.
fn by_image(node: &Node, kubelet: &str) -> Option<NodeVerdict> {
    let reported = node.status.as_ref().and_then(|status| status.images.as_deref()).unwrap_or_default();
    let names = reported.iter().flat_map(|image| image.names.iter().flatten()).map(String::as_str);
    let images = Images::from_names(names);
    let control_plane = node.metadata.labels.iter().flatten().any(|(key, _)| is_control_plane_label(key));
    let kube_proxy = images.kube_proxy(kubelet, control_plane, reported.len());
    let by_annotation = annotation_keys(node).find_map(|key| replacement_by_annotation(key, kube_proxy));
    let Some(replacement) = by_annotation.or_else(|| images.unfit_replacement(kube_proxy)) else {
        return images.kube_proxy_version().map(|version| by_kube_proxy(&format!("v{version}"), None));
    };
    // These two take the traffic of pods even beside kube-proxy. Beside the others, kube-proxy may run unseen.
    let takes_all = matches!(replacement, Replacement::OvnKubernetes | Replacement::Antrea(_));
    let is_certain = takes_all || kube_proxy != KubeProxy::Unseen;
    let cause = if is_certain { Cause::Replacement } else { Cause::PossibleReplacement };
    Some(NodeVerdict::unfit(Source::Image, cause(replacement)))
}

/// Whether an annotation of a Node with this key says something about its service proxy.
pub fn is_evidence(key: &str) -> bool {
    [NODE_SUBNETS, ALLOCATED].contains(&key) || virtual_node::KEYS.contains(&key)
}

/// Annotations that these networks set on every node that they manage.
const NODE_SUBNETS: &str = "k8s.ovn.org/node-subnets";
const ALLOCATED: &str = "ovn.kubernetes.io/allocated";

fn annotation_keys(node: &Node) -> impl Iterator<Item = &str> {
    node.metadata.annotations.iter().flat_map(BTreeMap::keys).map(String::as_str)
}

/// Set by kubeadm, k3s and RKE2 on the nodes of the control plane; `master` up to Kubernetes 1.23.
fn is_control_plane_label(key: &str) -> bool {
    matches!(key, "node-role.kubernetes.io/control-plane" | "node-role.kubernetes.io/master")
}

fn replacement_by_annotation(key: &str, kube_proxy: KubeProxy) -> Option<Replacement> {
    match key {
        // OVN-Kubernetes always replaces kube-proxy.
        NODE_SUBNETS => Some(Replacement::OvnKubernetes),
        ALLOCATED if kube_proxy != KubeProxy::Seen => Some(Replacement::KubeOvn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::super::verdict::Verdict;
    use super::*;

    fn linux(kubelet: &str, images: &[&str]) -> Value {
        let images: Vec<Value> = images.iter().map(|name| json!({"names": [name]})).collect();
        json!({"metadata": {}, "status": {"images": images,
            "nodeInfo": {"kubeletVersion": kubelet, "operatingSystem": "linux", "architecture": "", "bootID": "",
                "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "",
                "systemUUID": ""}}})
    }

    fn cause(node: &Value) -> Option<&'static str> {
        let held = guess_of(&from_value(node.clone()).unwrap());
        (held.verdict == Verdict::Unfit).then(|| held.cause.as_str())
    }

    const REPLACED: Option<&str> = Some("service_proxy_replacement");
    const POSSIBLY: Option<&str> = Some("possible_service_proxy_replacement");

    #[rstest]
    #[case::new_kubelet("v1.30.0", &[], None)]
    #[case::old_kube_proxy("v1.32.4", &["registry.example/kube-proxy:v1.29.9"], Some("kube_proxy_version"))]
    #[case::new_kube_proxy("v1.29.4", &["registry.example/kube-proxy:v1.30.1"], None)]
    #[case::kube_proxy_after_an_upgrade("v1.32.4", &["registry.example/kube-proxy:v1.29.9", "registry.example/kube-proxy:v1.32.4"], None)]
    #[case::cilium_of_a_mirror("v1.36.0", &["registry.corp/infra/cilium-agent:1.16.0"], REPLACED)]
    #[case::old_kubelet("v1.29.15", &[], Some("old_kubelet"))]
    #[case::odd_kubelet("unknown", &[], Some("unknown_kubelet_version"))]
    #[case::kubelet_not_reported_yet("", &[], None)]
    #[case::virtual_kubelet("v1.15.2-vk-azure-aci-1.5.1", &[], None)]
    #[case::kwok("kwok-v0.6.0", &[], None)]
    #[case::cilium_old("v1.36.0", &["quay.example/cilium/cilium:v1.16.9"], REPLACED)]
    #[case::cilium_regressed("v1.36.0", &["quay.example/cilium/cilium:v1.18.0@sha256:00"], REPLACED)]
    #[case::cilium_fixed("v1.36.0", &["quay.example/cilium/cilium:v1.18.0", "quay.example/cilium/cilium:v1.18.1"], None)]
    #[case::cilium_beside_kube_proxy("v1.36.0", &["quay.example/cilium/cilium:v1.16.0", "registry.example/kube-proxy:v1.36.0"], None)]
    #[case::cilium_operator_says_nothing("v1.36.0", &["quay.example/cilium/operator-generic:v1.16.0"], None)]
    #[case::antrea_beside_kube_proxy("v1.36.0", &["antrea/antrea-agent-ubuntu:v1.15.1", "kube-proxy:v1.36.0"], REPLACED)]
    #[case::registry_port_is_not_a_tag("v1.36.0", &["registry.example:5000/cilium/cilium"], None)]
    #[case::rke2_cilium("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.16.5"], POSSIBLY)]
    #[case::rke2_cilium_regressed("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.18.0"], POSSIBLY)]
    #[case::rke2_cilium_fit("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.18.1"], None)]
    #[case::rke2_kube_proxy("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-cilium-cilium:v1.16.5", "index.docker.io/rancher/hardened-kubernetes:v1.36.0-rke2r1-build20260801"], None)]
    #[case::k3s_has_kube_proxy_in_its_binary("v1.36.0+k3s1", &["quay.example/cilium/cilium:v1.16.9"], POSSIBLY)]
    #[case::k3s_alone("v1.36.0+k3s1", &["docker.io/rancher/klipper-lb:v0.4.9"], None)]
    #[case::calico_ebpf_old("v1.36.0", &["quay.example/calico/node:v3.29.1"], REPLACED)]
    #[case::calico_ebpf_new("v1.36.0", &["quay.example/calico/node:v3.29.2"], None)]
    #[case::calico_beside_kube_proxy("v1.36.0", &["quay.example/calico/node:v3.28.5", "kube-proxy:v1.36.0"], None)]
    #[case::calico_of_rke2("v1.36.0+rke2r1", &["docker.io/rancher/mirrored-calico-node:v3.29.1"], None)]
    fn nodes_are_judged_by_what_they_show(
        #[case] kubelet: &str,
        #[case] images: &[&str],
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(cause(&linux(kubelet, images)), expected);
    }

    #[rstest]
    #[case::ovn("k8s.ovn.org/node-subnets", &[], REPLACED)]
    #[case::kube_ovn("ovn.kubernetes.io/allocated", &[], REPLACED)]
    #[case::kube_ovn_beside_kube_proxy("ovn.kubernetes.io/allocated", &["registry.example/kube-proxy:v1.36.0"], None)]
    fn networks_with_a_service_proxy_of_their_own_are_known_by_annotations(
        #[case] annotation: &'static str,
        #[case] images: &[&str],
        #[case] expected: Option<&str>,
    ) {
        let mut node = linux("v1.36.0", images);
        node["metadata"]["annotations"] = json!({ annotation: "" });
        assert_eq!(cause(&node), expected);
    }

    #[test]
    fn kube_proxy_on_windows_ignores_the_mode() {
        let mut node = linux("v1.36.0", &[]);
        node["status"]["nodeInfo"]["operatingSystem"] = json!("windows");
        assert_eq!(cause(&node), Some("windows"));
    }

    #[test]
    fn a_list_of_images_that_may_have_been_cut_proves_no_absence() {
        let full = |image| linux("v1.36.0", &[&[image][..], &["example.org/other"; 49]].concat());
        assert_eq!(cause(&full("quay.example/cilium/cilium:v1.16.9")), POSSIBLY);
        assert_eq!(cause(&full("quay.example/calico/node:v3.29.1")), None);
    }

    #[test]
    fn on_a_control_plane_node_rke2s_image_says_nothing_of_kube_proxy() {
        let images = ["rancher/mirrored-cilium-cilium:v1.16.5", "rancher/hardened-kubernetes:v1.36.0-rke2r1"];
        let mut node = linux("v1.36.0+rke2r1", &images);
        node["metadata"]["labels"] = json!({"node-role.kubernetes.io/control-plane": "true"});
        assert_eq!(cause(&node), POSSIBLY);
    }

    #[test]
    fn a_virtual_node_counts_for_nothing() {
        let mut node = linux("v1.29.3", &[]);
        node["metadata"]["labels"] = json!({"type": "virtual-kubelet"});
        assert_eq!(cause(&node), None);
    }
}
