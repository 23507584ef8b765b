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
    /// What these nodes, which are all of the cluster, mean now.
    pub fn of(nodes: &[Node], now: Timestamp) -> Self {
        let facts =
            nodes.iter().map(|node| (node.metadata.name.clone().unwrap_or_default(), Facts::of(node)));
        Self::of_facts(&facts.collect(), now)
    }

    fn of_facts(facts: &BTreeMap<String, Facts>, now: Timestamp) -> Self {
        let alive = facts.iter().filter(|(_, facts)| !is_unreachable_for_long(facts.unreachable_since, now));
        Self {
            fitness: judge(alive.map(|(name, facts)| (name.as_str(), &facts.service_proxy))),
            addresses: facts.values().flat_map(|facts| facts.addresses.iter().copied()).collect(),
        }
    }
}

/// Follows the nodes for ever. Nothing is sent before the first complete list.
pub(crate) async fn follow(client: Client, sender: watch::Sender<Option<Arc<Nodes>>>) {
    let mut events = std::pin::pin!(events::<Node>(Api::all(client)));
    let (mut known, mut arriving) = (BTreeMap::new(), BTreeMap::new());
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = tokio::time::sleep(JUDGE_AGAIN) => {
                tell(&sender, &known);
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
                let now = Arc::new(Nodes::of_facts(&known, Timestamp::now()));
                sender.send_if_modified(|told| told.replace(Arc::clone(&now)).as_ref() != Some(&now));
            }
            Some(Ok(Event::Apply(node))) => {
                known.insert(name(&node), Facts::of(&node));
                tell(&sender, &known);
            }
            Some(Ok(Event::Delete(node))) => {
                known.remove(&name(&node));
                tell(&sender, &known);
            }
        }
    }
}

/// Tells what the nodes mean now, where that is news and all of them are known.
fn tell(sender: &watch::Sender<Option<Arc<Nodes>>>, known: &BTreeMap<String, Facts>) {
    let now = Nodes::of_facts(known, Timestamp::now());
    sender.send_if_modified(|told| {
        let news = told.as_ref().is_some_and(|told| **told != now);
        if news {
            *told = Some(Arc::new(now));
        }
        news
    });
}
