//! Asks the kube-proxy of each node whether it honours `ipMode`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use openstack_ccm_advertise::kube_proxy::KubeProxies;
use openstack_ccm_advertise::measured::Measured;
use openstack_ccm_advertise::node::NodeVerdict;
use openstack_ccm_core::backoff::Backoff;
use tokio::time::{Instant, sleep};

use crate::nodes::{NodeObject, NodeStore};

/// Time between two rounds, each of which asks only the nodes that are due.
const ROUND_INTERVAL: Duration = Duration::from_secs(10);
/// Delay after an answer, before the next request.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(600);
/// Delay after requests that were not answered.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(20), RENEWAL_INTERVAL);
/// How long an answer counts without being renewed.
const ANSWER_LIFETIME: Duration = Duration::from_secs(1800);
/// Maximum of nodes asked in one round.
const MAX_NODES_PER_ROUND: usize = 100;
/// Maximum of nodes asked at the same time.
const MAX_CONCURRENT_REQUESTS: usize = 16;

/// The last answer of one node.
struct LastAnswer {
    verdict: Option<NodeVerdict>,
    /// When the answer came, or when the node was asked for the first time.
    answered: Instant,
    /// When the node is asked again.
    due: Instant,
    failures: u32,
}

/// Asks the kube-proxies for ever.
pub(super) async fn ask_kube_proxies(proxies: KubeProxies, nodes: NodeStore, measured: Measured) {
    nodes.wait_listed().await;
    let mut known = BTreeMap::<String, LastAnswer>::new();
    loop {
        let now = Instant::now();
        let all = nodes.all();
        known.retain(|name, _| all.iter().any(|node| node.name == *name));
        let is_due = |name: &str| known.get(name).is_none_or(|last| last.due <= now);
        let due: Vec<(String, IpAddr)> = all
            .iter()
            .filter(|node| node.unreachable_since.is_none() && is_due(&node.name))
            .filter_map(|node| Some((node.name.clone(), address(node)?)))
            .take(MAX_NODES_PER_ROUND)
            .collect();
        let asked = stream::iter(due).map(|(name, ip)| {
            let proxies = proxies.clone();
            async move { (name, proxies.ask(ip).await) }
        });
        let answers: Vec<_> = asked.buffer_unordered(MAX_CONCURRENT_REQUESTS).collect().await;
        let now = Instant::now();
        for (name, verdict) in answers {
            take_in(&mut known, name, verdict, now);
        }
        let standing = |(name, last): (&String, &LastAnswer)| Some((name.clone(), last.verdict.clone()?));
        measured.by_kube_proxies(known.iter().filter_map(standing).collect());
        sleep(ROUND_INTERVAL).await;
    }
}

fn take_in(
    known: &mut BTreeMap<String, LastAnswer>,
    name: String,
    verdict: Option<NodeVerdict>,
    now: Instant,
) {
    let last =
        known.entry(name).or_insert(LastAnswer { verdict: None, answered: now, due: now, failures: 0 });
    if verdict.is_some() {
        *last = LastAnswer { verdict, answered: now, due: now + RENEWAL_INTERVAL, failures: 0 };
        return;
    }
    last.due = now + RETRY.delay(last.failures);
    last.failures = last.failures.saturating_add(1);
    if now.saturating_duration_since(last.answered) >= ANSWER_LIFETIME {
        last.verdict = None;
    }
}

/// Returns the internal address of a node, but not on Windows: kube-proxy there shows a gate that it ignores.
fn address(node: &NodeObject) -> Option<IpAddr> {
    let windows = node.facts.labels.get("kubernetes.io/os").is_some_and(|os| os == "windows");
    let internal = node.addresses.iter().find(|address| address.type_ == "InternalIP")?;
    internal.address.parse().ok().filter(|_| !windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openstack_ccm_advertise::node::{Cause, Source};

    #[test]
    fn an_answer_counts_for_a_while_and_a_silent_node_is_not_asked_often() {
        let fit = || Some(NodeVerdict::fit(Source::KubeProxy, Cause::GateOn));
        let (mut known, start) = (BTreeMap::new(), Instant::now());
        take_in(&mut known, "a".into(), fit(), start);
        assert_eq!(known["a"].due, start + RENEWAL_INTERVAL);
        let mut now = start;
        let mut asked = 0;
        while now < start + ANSWER_LIFETIME {
            now = known["a"].due;
            take_in(&mut known, "a".into(), None, now);
            asked += 1;
            assert_eq!(known["a"].verdict.is_some(), now < start + ANSWER_LIFETIME);
        }
        assert!(asked <= 8, "{asked}");
        take_in(&mut known, "a".into(), fit(), now);
        assert_eq!(known["a"].due, now + RENEWAL_INTERVAL);
    }
}
