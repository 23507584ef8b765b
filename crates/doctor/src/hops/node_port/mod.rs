//! Hop 8: the node port, and the endpoints behind it.
//!
//! | module | judges |
//! | --- | --- |
//! | `targets` | ports of the endpoints |
//! | `policies` | policies of the application |

mod policies;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use openstack_ccm_core::text::some_of;

use super::behind::{endpoints, is_of, is_ready, used};
use super::look::{Look, listed};
use crate::MAX_NAMES;
use crate::code::{Code, Stops};
use crate::facts::{MemberFact, NodeFact, PoolFact, Unread};
use crate::finding::{Check, Finding, Fix, gap, ok, skipped};
use crate::hop::{self, Scope};
use crate::leftovers::SERVICE_PROXY_NAME;
use crate::question::{Answer, questions, read};
use policies::{foreign, policies};
use targets::{declared, targets};

questions! {
    Questions at NodePort {
        /// Whether each port has a node port.
        ports,
        /// Whether endpoints are ready.
        ready,
        /// Whether the pods of the endpoints run.
        pods,
        /// Whether kube-proxy opens node ports at the addresses of the members.
        opened,
        /// Whether endpoints have each port, in the address family in which packets arrive.
        targets,
        /// Whether a container declares the target port.
        declared,
        /// Whether NetworkPolicies let packets into the pods.
        policies,
        /// Whether policies of other kinds may keep packets out.
        foreign,
        /// Whether nodes without endpoints get no packets.
        local,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let slices = match read(&look.facts.slices, "EndpointSlices cannot be read", Stops::All) {
        Ok(slices) => slices,
        Err(unread) => {
            let (ports, opened, local) = (ports(look), opened(look), local(look).into());
            return Questions { ports, opened, local, ..Questions::all(unread) };
        }
    };
    let count = used(slices).map(|(_, endpoint)| endpoint.addresses.len()).sum::<usize>();
    if count == 0 {
        let none = skipped("no endpoint is ready");
        return Questions {
            ports: ports(look),
            ready: unready(look, slices).into(),
            opened: opened(look),
            ..Questions::all(none)
        };
    }
    let endpoints =
        if count == 1 { "1 endpoint is ready".to_owned() } else { format!("{count} endpoints are ready") };
    Questions {
        ports: ports(look),
        ready: ok(endpoints).into(),
        pods: pods(look, slices).into(),
        opened: opened(look),
        targets: targets(look, slices),
        declared: declared(look),
        policies: policies(look).into(),
        foreign: foreign(look).into(),
        local: local(look).into(),
    }
}

fn unready(look: &Look<'_>, slices: &[EndpointSlice]) -> Check {
    let labels = selected(look);
    let text = match &look.facts.backend {
        Ok(backend) if backend.pods.is_empty() && !labels.is_empty() => {
            format!("no pod has the labels that the Service selects: {}", some_of(&labels, 3))
        }
        _ => "no endpoint of the Service is ready".to_owned(),
    };
    let count = format!("{} of them, none with a ready endpoint", slices.len());
    Finding::new(Code::D801, text).seen(look.object(), "EndpointSlices", count).fix(show_pods(look)).into()
}

/// Returns the labels that the Service selects: `app=web`.
fn selected(look: &Look<'_>) -> Vec<String> {
    let selector = look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.iter().flat_map(|labels| labels.iter()).map(|(key, value)| format!("{key}={value}")).collect()
}

fn show_pods(look: &Look<'_>) -> Fix {
    let labels = selected(look);
    if labels.is_empty() {
        let by_label = format!("kubernetes.io/service-name={}", look.name());
        return Fix::kubectl(look.namespace(), ["get", "endpointslices", "-l", &by_label]);
    }
    Fix::kubectl(look.namespace(), ["get", "pods", "-l", &labels.join(",")])
}

/// Judges the pods of the endpoints that get packets: slices may be older than they, or publish addresses that are not ready.
fn pods(look: &Look<'_>, slices: &[EndpointSlice]) -> Result<Answer, Answer> {
    let pods = &read(&look.facts.backend, "the pods of the Service cannot be read", Stops::All)?.pods;
    let selects = look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    if selects.is_none_or(BTreeMap::is_empty) {
        return Ok(skipped("the Service selects no pods").into());
    }
    let used: Vec<&Endpoint> = used(slices).map(|(_, endpoint)| endpoint).collect();
    let trouble: Vec<_> = used.iter().filter_map(|one| Some((one, trouble(one, pods)?))).collect();
    let Some((first, (why, _))) = trouble.first() else {
        return Ok(ok("the pods of the endpoints run").into());
    };
    let address = first.addresses.first().cloned().unwrap_or_default();
    let text = format!("{} of {} endpoints: {address} {why}", trouble.len(), used.len());
    let shown = format!("{address} gets packets");
    let finding = Finding::new(Code::D808, text).seen(look.object(), "EndpointSlices", shown);
    let all_are_gone = trouble.len() == used.len() && trouble.iter().all(|(_, (_, surely))| *surely);
    Ok(finding.surely(all_are_gone).fix(show_pods(look)).into())
}

/// Returns why packets to an endpoint may be lost, and whether they certainly are.
fn trouble(endpoint: &Endpoint, pods: &[Pod]) -> Option<(&'static str, bool)> {
    let Some(pod) = pods.iter().find(|pod| is_of(endpoint, pod)) else {
        return Some(("belongs to no pod", true));
    };
    let status = pod.status.as_ref()?;
    if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) {
        return Some(("belongs to a pod that has ended", true));
    }
    let runs = |one: &ContainerStatus| one.state.as_ref().is_none_or(|state| state.running.is_some());
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    if !containers.is_empty() && !containers.iter().any(runs) {
        return Some(("belongs to a pod of which no container runs", true));
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is_unready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "False");
    // A pod that ends may serve on without being ready.
    (is_unready && is_ready(endpoint)).then_some(("belongs to a pod that is not ready", false))
}

/// Judges whether kube-proxy opens node ports at the addresses to which the load balancer sends.
fn opened(look: &Look<'_>) -> Answer {
    let Ok(cloud) = look.cloud() else { return skipped("the members are not known").into() };
    let mut found: Vec<Check> = Vec::new();
    let mut unread: Vec<(&NodeFact, &Unread)> = Vec::new();
    for (pool, ports) in look.pools(cloud) {
        // A monitor has taken out what does not answer; where nothing does, this may be why.
        let is_used = |member: &&MemberFact| member.idle().is_none();
        let none_is = !pool.members.iter().any(|member| is_used(&member));
        let used = pool.members.iter().filter(|member| none_is || is_used(member));
        let all: BTreeSet<IpAddr> = used.filter_map(MemberFact::address).collect();
        let mut shut: Vec<(&NodeFact, &[String], IpAddr)> = Vec::new();
        for (node, address) in all.iter().filter_map(|address| Some((look.node_at(*address)?, *address))) {
            match &node.node_port_addresses {
                Ok(networks) if !opens(node, networks, address) => shut.push((node, networks, address)),
                Ok(_) => {}
                Err(why) if unread.iter().all(|(known, _)| known.name != node.name) => {
                    unread.push((node, why));
                }
                Err(_) => {}
            }
        }
        let Some((first, networks, _)) = shut.first() else { continue };
        let addresses: Vec<IpAddr> = shut.iter().map(|(_, _, address)| *address).collect();
        let text = format!("kube-proxy opens no node ports at {}", listed(&addresses));
        let finding = Finding::new(Code::D807, text)
            .seen(format!("kube-proxy of {}", first.name), "nodePortAddresses", networks.join(", "))
            .fix("add the network of the nodes to nodePortAddresses of kube-proxy, and restart it")
            .surely(shut.len() == all.len());
        found.push(finding.at_each(ports).into());
    }
    if let Some((_, (why, cause))) = unread.first() {
        let names: Vec<&str> = unread.iter().map(|(node, _)| node.name.as_str()).collect();
        let text = format!(
            "at which addresses kube-proxy of {} opens node ports ({cause})",
            some_of(&names, MAX_NAMES)
        );
        found.push(gap(*why, text).about(Scope::default(), Stops::Through));
    }
    Answer::found(found, || ok("kube-proxy opens node ports at the members' addresses"))
}

/// Returns whether kube-proxy opens node ports at an address of its node, if it does so in these networks.
fn opens(node: &NodeFact, networks: &[String], address: IpAddr) -> bool {
    let primary = || node.addresses.iter().find(|own| own.is_ipv6() == address.is_ipv6());
    let holds = |text: &String| match text.as_str() {
        "primary" => primary() == Some(&address),
        network => network.parse::<IpNet>().is_ok_and(|network| network.contains(&address)),
    };
    networks.is_empty() || networks.iter().any(holds)
}

fn local(look: &Look<'_>) -> Result<Answer, Answer> {
    if !look.is_local() {
        return Ok(skipped("every node sends to every endpoint").into());
    }
    let cloud = look.cloud()?;
    let bare: Vec<hop::Port> = look
        .pools(cloud)
        .into_iter()
        .filter(|(pool, _)| pool.monitor.is_none() && is_uneven(look, pool))
        .flat_map(|(_, ports)| ports)
        .collect();
    let message = look.warnings("LoadBalancerLocalWithoutMonitor").first().copied();
    if message.is_none() && bare.is_empty() {
        let text = "externalTrafficPolicy is Local, and no node without an endpoint gets connections";
        return Ok(ok(text).into());
    }
    let mut finding = Finding::new(Code::D802, "nodes without an endpoint get connections and drop them");
    finding = match message {
        Some(message) => finding.seen(look.object(), "LoadBalancerLocalWithoutMonitor", message),
        None => finding.seen("load balancer", "health monitors", "not every pool has one"),
    };
    if look.is_ours() {
        finding = finding.fix(look.annotate("loadbalancer.openstack.org/enable-health-monitor=true"));
    }
    Ok(finding.at_each(bare).into())
}

/// Returns whether a member of a pool is on a node without a ready endpoint.
fn is_uneven(look: &Look<'_>, pool: &PoolFact) -> bool {
    let slices = look.facts.slices.iter().flatten();
    let with_endpoints: BTreeSet<&str> = slices
        .flat_map(endpoints)
        .filter(|one| is_ready(one))
        .filter_map(|one| one.node_name.as_deref())
        .collect();
    let addresses = pool.members.iter().filter_map(MemberFact::address);
    let mut nodes = addresses.filter_map(|address| look.node_at(address));
    !with_endpoints.is_empty() && nodes.any(|node| !with_endpoints.contains(node.name.as_str()))
}

fn ports(look: &Look<'_>) -> Answer {
    if let Some(other) = look.left_to() {
        let text = format!(
            "kube-proxy opens no node port: a label leaves the Service to the service proxy {other:?}"
        );
        let finding = Finding::new(Code::D806, text)
            .seen(look.object(), "metadata.labels", format!("{SERVICE_PROXY_NAME}={other}"))
            .fix(Fix::service(&look.facts.service, "label", &[&format!("{SERVICE_PROXY_NAME}-")]));
        return Check::from(finding).into();
    }
    let patch = r#"{"spec":{"allocateLoadBalancerNodePorts":true}}"#;
    let found = look.without_node_port().into_iter().map(|port| {
        Finding::new(Code::D803, format!("port {} has no node port", port.number))
            .seen(look.object(), "spec.ports[].nodePort", "absent")
            .fix(Fix::service(&look.facts.service, "patch", &["--patch", patch]))
            .at(port)
            .into()
    });
    Answer::found(found.collect(), || ok("all ports have a node port, or need none"))
}
