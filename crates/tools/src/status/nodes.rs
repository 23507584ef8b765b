//! The versions of the nodes, and whether their service proxies honour `ipMode: Proxy`. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use openstack_ccm_advertise::measured::Measurements;
use openstack_ccm_advertise::node::{
    NodeVerdict, Verdict, guess_of, is_unreachable_for_long, unreachable_since,
};
use openstack_ccm_canary::carried::Carried;
use openstack_ccm_canary::observed_pod::ObservedPod;

/// The most nodes to name; the others are counted.
const MAX_NODES: usize = 10;

/// Summarises versions: `3: 1 v1.29.0, 2 v1.36.3`.
pub(super) fn versions(nodes: &[Node]) -> String {
    let versions = nodes.iter().map(|node| {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        info.map_or_else(|| "of unknown version".to_owned(), |info| info.kubelet_version.clone())
    });
    format!("{}{}", nodes.len(), counted(versions))
}

/// Returns the verdict on each node's service proxy, by node name. The verdict of the canary's pods has precedence over the node's
/// own facts, unless the node has been unreachable for a while. Nodes on which no client is left are omitted.
pub(crate) fn verdicts(nodes: &[Node], canary: &[ObservedPod], now: Timestamp) -> Vec<(String, NodeVerdict)> {
    let by_node = canary.iter().filter_map(|pod| {
        let node = pod.spec.node_name.clone()?;
        Some((node, Carried::of_pod(pod)?))
    });
    let measured = Measurements::of_canary(by_node.collect());
    let counts = |node: &&Node| !is_unreachable_for_long(unreachable_since(node), now);
    let verdict = |node: &Node| {
        let name = node.metadata.name.clone().unwrap_or_default();
        let verdict = measured.standing_since(&name, &guess_of(node), unreachable_since(node), now);
        (name, verdict)
    };
    let mut verdicts: Vec<_> = nodes.iter().filter(counts).map(verdict).collect();
    verdicts.sort_by(|(one, _), (other, _)| one.cmp(other));
    verdicts
}

/// Summarises verdicts: `honoured by 2 of 3 nodes: 1 by canary, 2 by version`.
pub(super) fn summary(verdicts: &[(String, NodeVerdict)]) -> String {
    let fit = verdicts.iter().filter(|(_, held)| held.verdict == Verdict::Fit).count();
    let sources = verdicts.iter().map(|(_, held)| format!("by {}", held.source.as_str()));
    format!("honoured by {fit} of {} nodes{}", verdicts.len(), counted(sources))
}

/// Returns a line for each node that does not honour the mode.
pub(super) fn unfit(verdicts: &[(String, NodeVerdict)]) -> Vec<String> {
    let unfit = verdicts.iter().filter(|(_, held)| held.verdict == Verdict::Unfit);
    let mut lines: Vec<String> = unfit
        .map(|(node, held)| format!("not by {node}: {} ({})", held.cause, held.source.as_str()))
        .collect();
    if let Some(more) = lines.len().checked_sub(MAX_NODES).filter(|more| *more > 0) {
        lines.truncate(MAX_NODES);
        lines.push(format!("not by {more} more"));
    }
    lines
}

/// Counts equal words: `: 1 v1.29.0, 2 v1.36.3`; empty for no words.
pub(super) fn counted(words: impl Iterator<Item = String>) -> String {
    let mut counts = BTreeMap::<String, usize>::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-11-22T12:00:00Z";

    fn node(name: &str, kubelet: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "status": {"nodeInfo": {
                "kubeletVersion": kubelet, "operatingSystem": "linux", "architecture": "", "bootID": "",
                "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "",
                "systemUUID": "",
            }},
        }))
        .unwrap()
    }

    fn canary(node: &str, fit: bool) -> ObservedPod {
        let container = |name: &str, ready: bool| {
            json!({"name": name, "ready": ready, "image": "", "imageID": "", "restartCount": 0,
                "state": {"running": {}}})
        };
        serde_json::from_value(json!({
            "metadata": {"name": format!("canary-{node}")},
            "spec": {"nodeName": node, "containers": []},
            "status": {"containerStatuses": [container("conclusive", true), container("fit", fit)]},
        }))
        .unwrap()
    }

    #[test]
    fn nodes_are_counted_by_version() {
        let mut unknown = node("d", "");
        unknown.status = None;
        let all = [node("a", "v1.36.3"), node("b", "v1.29.0"), node("c", "v1.36.3"), unknown];
        assert_eq!(versions(&all), "4: 1 of unknown version, 1 v1.29.0, 2 v1.36.3");
        assert_eq!(versions(&[]), "0");
    }

    #[test]
    fn what_the_canary_saw_stands_above_the_version_in_both_directions() {
        let nodes = [node("a", "v1.29.0"), node("b", "v1.36.3"), node("c", "v1.28.0")];
        let pods = [canary("a", true), canary("b", false)];
        let verdicts = verdicts(&nodes, &pods, NOW.parse().unwrap());
        assert_eq!(summary(&verdicts), "honoured by 1 of 3 nodes: 2 by canary, 1 by version");
        assert_eq!(
            unfit(&verdicts),
            [
                "not by b: the canary found that its service proxy short-circuits addresses with ipMode Proxy (canary)",
                "not by c: kubelet v1.28.0 is older than 1.30 (version)",
            ]
        );
    }

    #[test]
    fn what_the_canary_saw_on_a_node_that_is_out_of_reach_counts_for_five_minutes() {
        let mut lost = node("a", "v1.36.3");
        lost.status.as_mut().unwrap().conditions = serde_json::from_value(json!([
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": NOW}
        ]))
        .unwrap();
        let after = |time: &str| {
            let now = format!("2026-11-22T{time}Z").parse().unwrap();
            summary(&verdicts(&[lost.clone()], &[canary("a", false)], now))
        };
        assert_eq!(after("12:04:59"), "honoured by 0 of 1 nodes: 1 by canary");
        assert_eq!(after("12:05:00"), "honoured by 1 of 1 nodes: 1 by version");
    }

    #[test]
    fn a_node_on_which_no_client_is_left_does_not_count() {
        let mut dead = node("a", "v1.28.0");
        dead.status.as_mut().unwrap().conditions = serde_json::from_value(json!([
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-11-22T11:00:00Z"}
        ]))
        .unwrap();
        let verdicts = verdicts(&[dead, node("b", "v1.36.3")], &[], NOW.parse().unwrap());
        assert_eq!(summary(&verdicts), "honoured by 1 of 1 nodes: 1 by version");
    }

    #[test]
    fn a_thousand_unfit_nodes_are_not_a_thousand_lines() {
        let nodes: Vec<Node> = (0..1000).map(|number| node(&format!("n{number:04}"), "v1.28.0")).collect();
        let lines = unfit(&verdicts(&nodes, &[], NOW.parse().unwrap()));
        assert_eq!((lines.len(), lines.last().unwrap().as_str()), (MAX_NODES + 1, "not by 990 more"));
    }
}
