//! Judges whether policies let packets into the pods.

use std::collections::BTreeMap;

use ipnet::IpNet;
use openstack_ccm_core::text::some_of;

use crate::code::{Code, Stops};
use crate::facts::ForeignPolicy;
use crate::finding::{Check, Finding, ok, unknown};
use crate::hop::Port;
use crate::hops::look::Look;
use crate::policy::{Entrance, Entry, entrance};
use crate::question::{Answer, read};

/// Judges the NetworkPolicies for ingress that select the pods.
pub(super) fn policies(look: &Look<'_>) -> Result<Answer, Answer> {
    let policies = read(&look.cluster.policies, "NetworkPolicies cannot be read", Stops::All)?;
    let sources = look.sources();
    let nodes: Vec<IpNet> = look.cluster.node_addresses().map(IpNet::from).collect();
    let mut found: Vec<Check> = Vec::new();
    for (port, _) in look.ports() {
        let pods = look.receivers(port);
        let from = |sources: &[IpNet]| {
            let (namespace, protocol) = (look.namespace(), port.protocol);
            entrance(policies, Entry { namespace, pods: &pods, protocol, sources })
        };
        let through = from(&sources);
        if through.open != Some(true) {
            // Without the source network of the load balancer it is not certain that the policies' networks are the wrong ones.
            let is_known = look.facts.cloud.is_ok() || !through.by_network;
            let surely = through.open == Some(false) && is_known;
            found.push(
                closed(port, &through, "the load balancer").stops(Stops::Through).surely(surely).into(),
            );
        }
        for (to, all) in &look.around {
            if through.to_pods != Some(true) {
                let finding = closed(port, &through, "pods").to(to).stops(Stops::Pods);
                found.push(finding.surely(*all && through.to_pods == Some(false)).into());
            }
            // A node reaches its own pods, regardless of policies.
            if from(&nodes).open != Some(true) {
                found.push(
                    closed(port, &through, "other nodes").to(to).stops(Stops::Nodes).surely(false).into(),
                );
            }
        }
    }
    Ok(Answer::found(found, || ok("no NetworkPolicy keeps packets from the pods")))
}

fn closed(port: Port, entrance: &Entrance, whom: &str) -> Finding {
    let policies = &entrance.policies;
    let text =
        format!("port {port}: NetworkPolicy {} does not allow traffic from {whom}", some_of(policies, 3));
    let first = policies.first().map(String::as_str).unwrap_or_default();
    Finding::new(Code::D805, text)
        .seen(format!("NetworkPolicy {first}"), "spec.ingress", format!("no rule for the port from {whom}"))
        .at(port)
}

/// Returns whether a policy of another kind may select the pods.
fn may_select(look: &Look<'_>, policy: &ForeignPolicy) -> bool {
    let is_here = policy.namespace.as_deref().is_none_or(|namespace| namespace == look.namespace());
    let selects = |labels: BTreeMap<String, String>| {
        policy.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    };
    let pods = look.facts.backend.iter().flat_map(|backend| &backend.pods);
    let mut all = pods.filter_map(|pod| pod.metadata.labels.clone()).chain([look.selector()]);
    is_here && policy.ingress && all.any(selects)
}

pub(super) fn foreign(look: &Look<'_>) -> Result<Answer, Answer> {
    let names = look.foreign_policies(Stops::All, |policy| may_select(look, policy))?;
    if names.is_empty() {
        return Ok(ok("no policy of another kind selects the pods").into());
    }
    let text = format!("doctor does not evaluate {names}, which might keep packets from the pods");
    Ok(unknown(text).into())
}
