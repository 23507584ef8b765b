//! Events about nodes whose service proxy was measured. Pure.

use std::collections::BTreeSet;

use openstack_ccm_advertise::measured::Measurements;
use openstack_ccm_advertise::node::{NodeVerdict, Source, Verdict};
use openstack_ccm_core::notice::Notice;

use super::backends::NodeSnapshot;

/// Maximum of nodes that get an Event by one change: the metrics show the others.
const MAX_EVENTS: usize = 20;

/// Returns new Events for nodes. A guess is no news: it was known before.
pub(super) fn news(
    old: &NodeSnapshot,
    new: &NodeSnapshot,
    hostname_annotation: &str,
) -> Vec<(String, Notice)> {
    let measured_unfit =
        |held: &&NodeVerdict| held.source >= Source::KubeProxy && held.verdict == Verdict::Unfit;
    let changed = new.verdicts.iter().filter_map(|(node, held)| {
        let before = old.verdicts.get(node).filter(measured_unfit);
        let notice = match (before, Some(held).filter(measured_unfit)) {
            (None, Some(held)) => Notice::warning(
                "ServiceProxyIgnoresIPMode",
                format!(
                    "Pods on this node bypass load balancers, including those with PROXY protocol or TLS termination: {}. Upgrade or \
                     replace the node's service proxy, or set a hostname for Services with such a load balancer ({hostname_annotation})",
                    held.cause
                ),
            ),
            (Some(_), None) if held.verdict == Verdict::Fit => Notice::normal(
                "ServiceProxyHonoursIPMode",
                format!("Pods on this node no longer bypass load balancers: {}", held.cause),
            ),
            _ => return None,
        };
        Some((node.clone(), notice))
    });
    changed.chain(contradictions(&old.measured, &new.measured)).take(MAX_EVENTS).collect()
}

fn contradictions(old: &Measurements, new: &Measurements) -> Vec<(String, Notice)> {
    let before: BTreeSet<&str> = old.contradictions().collect();
    let text = "On this node, the canary's address with ipMode Proxy was answered and its address with ipMode VIP was not, which no \
                service proxy causes: the node is judged by versions and images instead. Check for routes or proxies that use the \
                canary's addresses";
    let odd = new.contradictions().filter(|node| !before.contains(node));
    odd.map(|node| (node.to_owned(), Notice::warning("CanaryContradiction", text))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openstack_ccm_advertise::node::{Cause, guess_by_kubelet};

    use super::*;

    const HOSTNAME: &str = "lb.example.org/hostname";

    fn snapshot(verdicts: &[(&str, NodeVerdict)]) -> NodeSnapshot {
        let verdicts = verdicts.iter().map(|(node, held)| ((*node).to_owned(), held.clone())).collect();
        NodeSnapshot { verdicts: Arc::new(verdicts), ..NodeSnapshot::default() }
    }

    fn reported(old: &NodeVerdict, new: &NodeVerdict) -> Vec<&'static str> {
        let (old, new) = (snapshot(&[("a", old.clone())]), snapshot(&[("a", new.clone())]));
        news(&old, &new, HOSTNAME).into_iter().map(|(_, notice)| notice.reason).collect()
    }

    #[test]
    fn a_measured_change_is_reported_and_a_guess_is_not() {
        let ignores = NodeVerdict::unfit(Source::Canary, Cause::SeenToIgnore);
        let honours = NodeVerdict::fit(Source::Canary, Cause::SeenToHonour);
        let (old, new) = (guess_by_kubelet("v1.28.0"), guess_by_kubelet("v1.36.0"));
        assert_eq!(reported(&new, &ignores), ["ServiceProxyIgnoresIPMode"]);
        assert_eq!(reported(&ignores, &honours), ["ServiceProxyHonoursIPMode"]);
        assert!(reported(&ignores, &ignores).is_empty());
        assert!(reported(&new, &honours).is_empty());
        assert!(reported(&new, &old).is_empty());
        assert!(reported(&ignores, &old).is_empty(), "nothing is known to be better");
    }

    #[test]
    fn a_thousand_nodes_at_once_are_no_thousand_events() {
        let ignores = NodeVerdict::unfit(Source::Canary, Cause::SeenToIgnore);
        let names: Vec<String> = (0..1000).map(|number| format!("n{number}")).collect();
        let all: Vec<(&str, NodeVerdict)> =
            names.iter().map(|name| (name.as_str(), ignores.clone())).collect();
        assert_eq!(news(&NodeSnapshot::default(), &snapshot(&all), HOSTNAME).len(), MAX_EVENTS);
    }
}
