//! Asks the kube-proxy of each node for its own word.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use openstack_ccm_advertise::kube_proxy::KubeProxies;
use openstack_ccm_advertise::measured::Measured;
use openstack_ccm_advertise::node::NodeVerdict;
use tokio::time::{Instant, sleep};

use crate::nodes::{NodeObject, NodeStore};

/// Between two rounds, in each of which only those are asked who are due.
const ROUND: Duration = Duration::from_secs(10);
/// Until one who answered is asked again, and at most until one who did not.
const AGAIN: Duration = Duration::from_secs(600);
/// Until one who did not answer is asked again for the first time.
const RETRY: Duration = Duration::from_secs(20);
/// How long a word stands that is not renewed.
const LAPSE: Duration = Duration::from_secs(1800);
/// Nodes that are asked in one round, and at once.
const MOST: usize = 100;
const AT_ONCE: usize = 16;

/// What is known of one node.
struct Word {
    said: Option<NodeVerdict>,
    heard: Instant,
    due: Instant,
    failures: u32,
}

/// Asks for ever.
pub(super) async fn ask_kube_proxies(proxies: KubeProxies, nodes: NodeStore, measured: Measured) {
    nodes.wait_listed().await;
    let mut words = BTreeMap::<String, Word>::new();
    loop {
        let now = Instant::now();
        let all = nodes.all();
        words.retain(|name, _| all.iter().any(|node| node.name == *name));
        let is_due = |name: &str| words.get(name).is_none_or(|word| word.due <= now);
        let due: Vec<(String, IpAddr)> = all
            .iter()
            .filter(|node| node.unreachable_since.is_none() && is_due(&node.name))
            .filter_map(|node| Some((node.name.clone(), address(node)?)))
            .take(MOST)
            .collect();
        let asked = stream::iter(due).map(|(name, ip)| {
            let proxies = proxies.clone();
            async move { (name, proxies.ask(ip).await) }
        });
        let answers: Vec<_> = asked.buffer_unordered(AT_ONCE).collect().await;
        let now = Instant::now();
        for (name, said) in answers {
            take_in(&mut words, name, said, now);
        }
        let standing = |(name, word): (&String, &Word)| Some((name.clone(), word.said.clone()?));
        measured.by_kube_proxies(words.iter().filter_map(standing).collect());
        sleep(ROUND).await;
    }
}

fn take_in(words: &mut BTreeMap<String, Word>, name: String, said: Option<NodeVerdict>, now: Instant) {
    let word = words.entry(name).or_insert(Word { said: None, heard: now, due: now, failures: 0 });
    if said.is_some() {
        *word = Word { said, heard: now, due: now + AGAIN, failures: 0 };
        return;
    }
    word.due = now + RETRY.saturating_mul(2_u32.saturating_pow(word.failures.min(8))).min(AGAIN);
    word.failures = word.failures.saturating_add(1);
    if now.saturating_duration_since(word.heard) >= LAPSE {
        word.said = None;
    }
}

/// The address that a node has in its own network. kube-proxy on Windows tells of a gate that it does not heed.
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
    fn a_word_stands_while_a_node_is_silent_for_a_while_and_silence_is_not_asked_often() {
        let fit = || Some(NodeVerdict::fit(Source::KubeProxy, Cause::GateOn));
        let (mut words, start) = (BTreeMap::new(), Instant::now());
        take_in(&mut words, "a".into(), fit(), start);
        assert_eq!(words["a"].due, start + AGAIN);
        let mut now = start;
        let mut asked = 0;
        while now < start + LAPSE {
            now = words["a"].due;
            take_in(&mut words, "a".into(), None, now);
            asked += 1;
            assert_eq!(words["a"].said.is_some(), now < start + LAPSE);
        }
        assert!(asked <= 8, "{asked}");
        take_in(&mut words, "a".into(), fit(), now);
        assert_eq!(words["a"].due, now + AGAIN);
    }
}
