//! The nodes: whether their service proxies honour `ipMode`, and their addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use openstack_ccm_advertise::measured::{Measured, Measurements};
use openstack_ccm_advertise::node::{
    Fitness, JUDGEMENT_INTERVAL, NodeVerdict, guess_of, is_evidence, is_unreachable_for_long, judge,
    unreachable_since,
};
use openstack_ccm_core::provider::AnnotationUse;
use openstack_ccm_runtime::listed::{self, Interest};
use openstack_ccm_runtime::watch::{Reading, events};
use tokio::sync::watch;

use crate::PAGE_SIZE;

/// All nodes at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Nodes {
    /// Whether the service proxies of all relevant nodes honour `ipMode`.
    pub fitness: Fitness,
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
    /// Judges all nodes of the cluster by their objects and by what was measured on them.
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

/// Returns which fields of Nodes are read, and the page size of their list.
fn reading() -> Reading {
    let use_of = |key: &str| if is_evidence(key) { AnnotationUse::Meaning } else { AnnotationUse::None };
    Reading { page: PAGE_SIZE, interest: Interest::in_annotations(use_of) }
}

/// Follows the nodes for ever. Sends nothing before the first list of nodes is complete and the measurements are known.
pub(crate) async fn follow(client: Client, measured: Measured, sender: watch::Sender<Option<Arc<Nodes>>>) {
    let (mut changes, mut ready) = (measured.changes(), measured.ready());
    // The sender of `ready` lives in `measured`, so the wait cannot fail.
    let _ = ready.wait_for(|ready| *ready).await;
    let mut events = std::pin::pin!(events::<listed::Node, Node>(Api::all(client), reading()));
    let (mut known, mut arriving, mut is_listed) = (BTreeMap::new(), BTreeMap::new(), false);
    loop {
        let event = tokio::select! {
            event = events.next() => Some(event),
            _ = changes.changed() => None,
            () = tokio::time::sleep(JUDGEMENT_INTERVAL) => None,
        };
        let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
        match event {
            None => {}
            Some(None) => return,
            Some(Some(Err(error))) => {
                tracing::warn!(%error, "watch of nodes interrupted");
                continue;
            }
            Some(Some(Ok(Event::Init))) => {
                arriving.clear();
                continue;
            }
            Some(Some(Ok(Event::InitApply(node)))) => {
                arriving.insert(name(&node), Facts::of(&node));
                continue;
            }
            Some(Some(Ok(Event::InitDone))) => (known, is_listed) = (std::mem::take(&mut arriving), true),
            Some(Some(Ok(Event::Apply(node)))) => drop(known.insert(name(&node), Facts::of(&node))),
            Some(Some(Ok(Event::Delete(node)))) => drop(known.remove(&name(&node))),
        }
        if is_listed {
            let now = Arc::new(Nodes::of_facts(&known, &measured.now(), Timestamp::now()));
            sender.send_if_modified(|known| known.replace(Arc::clone(&now)).as_ref() != Some(&now));
        }
    }
}
