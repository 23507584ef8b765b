//! The nodes: what their service proxies honour, and their addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use openstack_ccm_advertise::measured::{Measured, Measurements};
use openstack_ccm_advertise::node::{
    Fitness, NodeVerdict, guess_of, is_unreachable_for_long, judge, unreachable_since,
};
use openstack_ccm_runtime::watch::events;
use tokio::sync::watch;

/// Between two looks whether a node has been unreachable for long by now.
const JUDGE_AGAIN: Duration = Duration::from_secs(60);

/// All nodes at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Nodes {
    /// Whether the service proxy of every node that counts honours `ipMode`.
    pub fitness: Fitness,
    /// All addresses of nodes.
    pub addresses: BTreeSet<IpAddr>,
}

#[derive(Clone, Debug, PartialEq)]
struct Facts {
    service_proxy: NodeVerdict,
    unreachable_since: Option<Timestamp>,
    addresses: Vec<IpAddr>,
}

impl Facts {
    fn of(node: &Node) -> Self {
        let addresses =
            node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
        Self {
            service_proxy: guess_of(node),
            unreachable_since: unreachable_since(node),
            addresses: addresses.iter().filter_map(|address| address.address.parse().ok()).collect(),
        }
    }
}

impl Nodes {
    /// What these nodes, which are all of the cluster, and what was measured on them mean now.
    pub fn of(nodes: &[Node], measured: &Measurements, now: Timestamp) -> Self {
        let facts =
            nodes.iter().map(|node| (node.metadata.name.clone().unwrap_or_default(), Facts::of(node)));
        Self::of_facts(&facts.collect(), measured, now)
    }

    fn of_facts(facts: &BTreeMap<String, Facts>, measured: &Measurements, now: Timestamp) -> Self {
        let alive = facts.iter().filter(|(_, facts)| !is_unreachable_for_long(facts.unreachable_since, now));
        let verdicts: Vec<(&str, NodeVerdict)> = alive
            .map(|(name, facts)| {
                let since = facts.unreachable_since;
                (name.as_str(), measured.standing_since(name, &facts.service_proxy, since, now))
            })
            .collect();
        Self {
            fitness: judge(verdicts.iter().map(|(name, verdict)| (*name, verdict))),
            addresses: facts.values().flat_map(|facts| facts.addresses.iter().copied()).collect(),
        }
    }
}

/// Follows the nodes for ever. Nothing is sent before the first complete list, and before it is known what was measured.
pub(crate) async fn follow(client: Client, measured: Measured, sender: watch::Sender<Option<Arc<Nodes>>>) {
    let (mut changes, mut ready) = (measured.changes(), measured.ready());
    // The other end is in `measured`.
    let _ = ready.wait_for(|ready| *ready).await;
    let tell = |known: &BTreeMap<String, Facts>| tell(&sender, known, &measured.now());
    let mut events = std::pin::pin!(events::<Node>(Api::all(client)));
    let (mut known, mut arriving) = (BTreeMap::new(), BTreeMap::new());
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = changes.changed() => {
                tell(&known);
                continue;
            }
            () = tokio::time::sleep(JUDGE_AGAIN) => {
                tell(&known);
                continue;
            }
        };
        let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
        match event {
            None => return,
            Some(Err(error)) => tracing::warn!(%error, "watch of nodes interrupted"),
            Some(Ok(Event::Init)) => arriving.clear(),
            Some(Ok(Event::InitApply(node))) => drop(arriving.insert(name(&node), Facts::of(&node))),
            Some(Ok(Event::InitDone)) => {
                known = std::mem::take(&mut arriving);
                let now = Arc::new(Nodes::of_facts(&known, &measured.now(), Timestamp::now()));
                sender.send_if_modified(|told| told.replace(Arc::clone(&now)).as_ref() != Some(&now));
            }
            Some(Ok(Event::Apply(node))) => {
                known.insert(name(&node), Facts::of(&node));
                tell(&known);
            }
            Some(Ok(Event::Delete(node))) => {
                known.remove(&name(&node));
                tell(&known);
            }
        }
    }
}

/// Tells what the nodes mean now, where that is news and all of them are known.
fn tell(
    sender: &watch::Sender<Option<Arc<Nodes>>>,
    known: &BTreeMap<String, Facts>,
    measured: &Measurements,
) {
    let now = Nodes::of_facts(known, measured, Timestamp::now());
    sender.send_if_modified(|told| {
        let news = told.as_ref().is_some_and(|told| **told != now);
        if news {
            *told = Some(Arc::new(now));
        }
        news
    });
}
