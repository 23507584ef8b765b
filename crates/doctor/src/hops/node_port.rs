//! Hop 8: the node port, and the endpoints behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::look::{Look, SERVICE_PROXY_NAME, destination, endpoints, pools};
use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, CloudObject, ForeignPolicy};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::policy::{Entrance, Entry, entrance};
use crate::question::{Answer, questions};
use openstack_ccm_core::text::some_of;

questions! {
    Questions at NodePort {
        /// Whether each port has a node port.
        ports,
        /// Whether endpoints are ready.
        ready,
        /// Whether they have each port, in the family in which packets come.
        targets,
        /// Whether a container says that it listens there.
        declared,
        /// Whether NetworkPolicies let packets into the pods.
        policies,
        /// Whether policies of other kinds may keep them out.
        foreign,
        /// Whether nodes without endpoints get none.
        local,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let slices = match &look.facts.slices {
        Ok(slices) => slices,
        Err(cause) => {
            let unread = unknown(format!("EndpointSlices cannot be read: {cause}"));
            return Questions { ports: ports(look), local: local(look), ..Questions::all(&unread) };
        }
    };
    let count = ready(slices).map(|(_, addresses)| addresses).sum::<usize>();
    if count == 0 {
        let none = skipped("no endpoint is ready");
        return Questions {
            ports: ports(look),
            ready: unready(look, slices).into(),
            ..Questions::all(&none)
        };
    }
    let endpoints =
        if count == 1 { "1 endpoint is ready".to_owned() } else { format!("{count} endpoints are ready") };
    Questions {
        ports: ports(look),
        ready: ok(endpoints).into(),
        targets: targets(look, slices),
        declared: declared(look, slices),
        policies: policies(look, slices),
        foreign: foreign(look),
        local: local(look),
    }
}

/// Slices with an endpoint that gets packets, and how many addresses these have: ready ones, and where there is none those that
/// end and still serve, as kube-proxy has it.
fn ready(slices: &[EndpointSlice]) -> impl Iterator<Item = (&EndpointSlice, usize)> {
    let some_are_ready = slices.iter().flat_map(endpoints).any(is_ready);
    slices.iter().filter_map(move |slice| {
        let used =
            endpoints(slice).filter(|one| if some_are_ready { is_ready(one) } else { still_serves(one) });
        let addresses = used.map(|one| one.addresses.len()).sum::<usize>();
        (addresses > 0).then_some((slice, addresses))
    })
}

/// An absent condition counts as ready, as for kube-proxy.
fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
}

fn still_serves(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_some_and(|one| one.serving == Some(true) && one.terminating == Some(true))
}

fn unready(look: &Look<'_>, slices: &[EndpointSlice]) -> Check {
    let selector = look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let pairs = selector.iter().flat_map(|labels| labels.iter());
    let labels: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
    let by_label = format!("kubernetes.io/service-name={}", look.name());
    let fix = if labels.is_empty() {
        Fix::kubectl(look.namespace(), ["get", "endpointslices", "-l", &by_label])
    } else {
        Fix::kubectl(look.namespace(), ["get", "pods", "-l", &labels.join(",")])
    };
    let text = match &look.facts.backend {
        Err(cause) if cause == crate::facts::NO_POD => {
            format!("no pod has the labels that the Service selects: {}", some_of(&labels, 3))
        }
        _ => "no endpoint of the Service is ready".to_owned(),
    };
    let count = format!("{} of them, none with a ready endpoint", slices.len());
    Finding::new(Code::D801, text).seen(look.object(), "EndpointSlices", count).fix(fix).into()
}

/// The ports of a slice that belong to a port of the Service: by name and protocol, as kube-proxy has it.
fn numbers(slice: &EndpointSlice, port: Port, spec: &ServicePort) -> Vec<i32> {
    let name = spec.name.as_deref().unwrap_or_default();
    let of_slice = slice.ports.iter().flatten().filter(|one| {
        one.name.as_deref().unwrap_or_default() == name
            && one.protocol.as_deref().unwrap_or("TCP") == port.protocol.as_str()
    });
    of_slice.filter_map(|one| one.port).collect()
}

/// Whether the slice is of a family.
fn is_of(slice: &EndpointSlice, ipv6: bool) -> bool {
    (slice.address_type == "IPv6") == ipv6
}

/// The families in which packets come to a port at the nodes: those of the members, and of addresses that nodes short-circuit.
fn families(look: &Look<'_>, port: Port) -> BTreeSet<bool> {
    let mut families: BTreeSet<bool> = BTreeSet::new();
    if let Ok(cloud) = &look.facts.cloud {
        let pools: BTreeSet<&str> = pools(look, cloud)
            .into_iter()
            .filter(|(_, ports)| ports.contains(&port))
            .map(|(pool, _)| pool.id.as_str())
            .collect();
        let members = cloud.children.objects.iter().filter(|object| {
            object.kind == "member" && object.pool.as_deref().is_some_and(|pool| pools.contains(pool))
        });
        let addresses = members.filter_map(|member| member.name.rsplit_once(':')?.0.parse::<IpAddr>().ok());
        families.extend(addresses.map(|address| address.is_ipv6()));
    }
    let around = look.short_circuited().filter_map(|entry| entry.ip.as_ref()?.parse::<IpAddr>().ok());
    families.extend(around.map(|address| address.is_ipv6()));
    families
}

fn targets(look: &Look<'_>, slices: &[EndpointSlice]) -> Answer {
    Answer::each(
        look.ports(),
        || unknown("the Service has no ports"),
        |(port, spec)| {
            let with_port: Vec<&EndpointSlice> = ready(slices)
                .map(|(slice, _)| slice)
                .filter(|slice| !numbers(slice, port, spec).is_empty())
                .collect();
            let families = families(look, port);
            let lacking: Vec<&str> = families
                .iter()
                .filter(|ipv6| !with_port.iter().any(|slice| is_of(slice, **ipv6)))
                .map(|ipv6| if *ipv6 { "IPv6" } else { "IPv4" })
                .collect();
            if !with_port.is_empty() && lacking.is_empty() {
                return ok(format!("port {port}: endpoints have it"));
            }
            let target = match &spec.target_port {
                Some(IntOrString::Int(number)) => number.to_string(),
                Some(IntOrString::String(name)) => name.clone(),
                None => spec.port.to_string(),
            };
            let text = match lacking.as_slice() {
                [family] if !with_port.is_empty() => format!("port {port}: no endpoint of {family} has it"),
                _ => format!("port {port}: no endpoint has it (targetPort {target})"),
            };
            let shown: BTreeSet<String> = ready(slices)
                .flat_map(|(slice, _)| slice.ports.iter().flatten())
                .map(|one| {
                    let name = one.name.clone().unwrap_or_default();
                    format!(
                        "{name} {}/{}",
                        one.port.unwrap_or_default(),
                        one.protocol.as_deref().unwrap_or("TCP")
                    )
                    .trim()
                    .to_owned()
                })
                .collect();
            let shown: Vec<String> = shown.into_iter().collect();
            let shown = if shown.is_empty() { "none".to_owned() } else { some_of(&shown, 5) };
            Finding::new(Code::D804, text)
                .seen(look.object(), "targetPort", target)
                .seen("EndpointSlices", "ports", shown)
                .at(port)
                .surely(with_port.is_empty() || families.len() == 1)
                .into()
        },
    )
}

/// The numbers to which packets of a port go.
fn target_numbers(slices: &[EndpointSlice], port: Port, spec: &ServicePort) -> BTreeSet<i32> {
    ready(slices).flat_map(|(slice, _)| numbers(slice, port, spec)).collect()
}

/// Containers need not declare their ports; where they declare some, another one is a doubt.
fn declared(look: &Look<'_>, slices: &[EndpointSlice]) -> Answer {
    let Ok(backend) = &look.facts.backend else {
        return skipped("no pod could be looked at").into();
    };
    let declared: BTreeSet<(i32, &str)> = backend
        .containers
        .iter()
        .flat_map(|container| &container.ports)
        .map(|port| (i32::from(port.number), port.protocol.as_str()))
        .collect();
    if declared.is_empty() {
        return skipped("the containers declare no ports").into();
    }
    Answer::each(
        look.ports(),
        || skipped("the Service has no ports"),
        |(port, spec)| {
            let mut numbers = target_numbers(slices, port, spec);
            if let Some(IntOrString::Int(number)) = &spec.target_port {
                numbers.insert(*number);
            }
            let foreign: Vec<String> = numbers
                .iter()
                .filter(|number| !declared.contains(&(**number, port.protocol.as_str())))
                .map(ToString::to_string)
                .collect();
            if foreign.is_empty() {
                return ok(format!("port {port}: a container declares where it leads"));
            }
            let known: Vec<String> =
                declared.iter().map(|(number, protocol)| format!("{number}/{protocol}")).collect();
            let text = format!(
                "port {port} leads to {}, and the containers declare {} only: whether anything listens there is not known",
                foreign.join(", "),
                some_of(&known, 5)
            );
            unknown(text).about(Scope::port(port), Stops::All)
        },
    )
}

/// From where packets come that reach a pod through the load balancer.
///
/// With `Local` that is the load balancer. Without, a node puts its own address in its place on the way to another node; whether it
/// does so before a policy for its own pods acts is a matter of the network plugin.
fn sources(look: &Look<'_>) -> Vec<IpNet> {
    let doors = look.facts.cloud.iter().flat_map(|cloud| cloud.doors.iter().flatten().flatten());
    let mut sources: Vec<IpNet> = doors.filter_map(|door| door.from).collect();
    if !look.is_local() {
        sources.extend(node_addresses(look));
    }
    sources
}

fn node_addresses(look: &Look<'_>) -> impl Iterator<Item = IpNet> {
    look.cluster.nodes.iter().flatten().flat_map(|node| &node.addresses).map(|address| IpNet::from(*address))
}

/// Policies for ingress that select the pods.
fn policies(look: &Look<'_>, slices: &[EndpointSlice]) -> Answer {
    let policies = match &look.cluster.policies {
        Ok(policies) => policies,
        Err(cause) => return unknown(format!("NetworkPolicies cannot be read: {cause}")).into(),
    };
    let empty = BTreeMap::new();
    let selector = look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).unwrap_or(&empty);
    let labels = look
        .facts
        .backend
        .as_ref()
        .map_or(selector, |backend| if backend.labels.is_empty() { selector } else { &backend.labels });
    let (sources, nodes) = (sources(look), node_addresses(look).collect::<Vec<_>>());
    let pods = pod_addresses(slices);
    let around: Vec<String> = look.short_circuited().filter_map(destination).collect();
    let mut found: Vec<Check> = Vec::new();
    for (port, spec) in look.ports() {
        let numbers: Vec<i32> = target_numbers(slices, port, spec).into_iter().collect();
        let names: Vec<&str> = match &spec.target_port {
            Some(IntOrString::String(name)) => vec![name.as_str()],
            _ => Vec::new(),
        };
        let from = |sources: &[IpNet]| {
            let protocol = port.protocol;
            let (namespace, numbers, names, pods) = (look.namespace(), &numbers, &names, &pods);
            entrance(policies, Entry { namespace, labels, numbers, names, protocol, sources, pods })
        };
        let through = from(&sources);
        if through.open != Some(true) {
            // Who knows not from where the load balancer sends cannot say that a network is the wrong one.
            let is_known = look.facts.cloud.is_ok() || !through.by_network;
            let surely = through.open == Some(false) && is_known;
            found.push(
                closed(port, &through, "the load balancer").stops(Stops::Through).surely(surely).into(),
            );
        }
        for to in &around {
            if through.to_pods != Some(true) {
                let finding = closed(port, &through, "pods").to(to).stops(Stops::Pods);
                found.push(finding.surely(through.to_pods == Some(false)).into());
            }
            // A node reaches its own pods, whatever policies say.
            if from(&nodes).open != Some(true) {
                found.push(
                    closed(port, &through, "other nodes").to(to).stops(Stops::Nodes).surely(false).into(),
                );
            }
        }
    }
    Answer::found(found, || ok("no NetworkPolicy keeps packets from the pods"))
}

fn closed(port: Port, entrance: &Entrance, whom: &str) -> Finding {
    let policies = &entrance.policies;
    let text =
        format!("port {port}: NetworkPolicy {} does not let in what comes from {whom}", some_of(policies, 3));
    let first = policies.first().map(String::as_str).unwrap_or_default();
    Finding::new(Code::D805, text)
        .seen(format!("NetworkPolicy {first}"), "spec.ingress", format!("no rule for the port from {whom}"))
        .at(port)
}

fn pod_addresses(slices: &[EndpointSlice]) -> Vec<IpAddr> {
    let endpoints = slices.iter().flat_map(endpoints);
    endpoints.flat_map(|one| &one.addresses).filter_map(|address| address.parse().ok()).collect()
}

/// Whether a policy of another kind may select the pods.
fn may_select(look: &Look<'_>, policy: &ForeignPolicy) -> bool {
    let is_here = policy.namespace.as_deref().is_none_or(|namespace| namespace == look.namespace());
    let empty = BTreeMap::new();
    let labels = match &look.facts.backend {
        Ok(backend) => &backend.labels,
        Err(_) => look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).unwrap_or(&empty),
    };
    is_here && policy.ingress && policy.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn foreign(look: &Look<'_>) -> Answer {
    let policies = match &look.cluster.foreign_policies {
        Ok(policies) => policies,
        Err(cause) => {
            return unknown(format!("policies of the network plugin cannot be read: {cause}")).into();
        }
    };
    let selecting: Vec<String> = policies
        .iter()
        .filter(|policy| may_select(look, policy))
        .map(|policy| match &policy.namespace {
            Some(namespace) => format!("{} {namespace}/{}", policy.kind, policy.name),
            None => format!("{} {}", policy.kind, policy.name),
        })
        .collect();
    if selecting.is_empty() {
        return ok("no policy of another kind selects the pods").into();
    }
    unknown(format!("whether {} lets packets into the pods is not judged", some_of(&selecting, 3))).into()
}

fn local(look: &Look<'_>) -> Answer {
    if !look.is_local() {
        return skipped("every node sends to every endpoint").into();
    }
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(check) => return (*check).into(),
    };
    let has_monitor = |pool: &CloudObject| {
        let mut children = cloud.children.objects.iter();
        children.any(|object| object.kind == "health monitor" && object.pool.as_ref() == Some(&pool.id))
    };
    let bare: Vec<Port> = pools(look, cloud)
        .into_iter()
        .filter(|(pool, _)| !has_monitor(pool) && is_uneven(look, cloud, pool))
        .flat_map(|(_, ports)| ports)
        .collect();
    let message = look.warnings("LoadBalancerLocalWithoutMonitor").first().copied();
    if message.is_none() && bare.is_empty() {
        return ok("externalTrafficPolicy is Local, and no node without an endpoint gets connections").into();
    }
    let mut finding = Finding::new(Code::D802, "nodes without an endpoint get connections and drop them");
    finding = match message {
        Some(message) => finding.seen(look.object(), "LoadBalancerLocalWithoutMonitor", message),
        None => finding.seen("load balancer", "health monitors", "not every pool has one"),
    };
    if look.is_ours() {
        finding = finding.fix(look.annotate("loadbalancer.openstack.org/enable-health-monitor=true"));
    }
    Check::from(bare.into_iter().fold(finding, Finding::at)).into()
}

/// Whether a member of a pool is on a node without a ready endpoint.
fn is_uneven(look: &Look<'_>, cloud: &CloudFacts, pool: &CloudObject) -> bool {
    let slices = look.facts.slices.iter().flatten();
    let with_endpoints: BTreeSet<&str> = slices
        .flat_map(endpoints)
        .filter(|one| is_ready(one))
        .filter_map(|one| one.node_name.as_deref())
        .collect();
    let members = cloud.children.objects.iter();
    let members = members.filter(|one| one.kind == "member" && one.pool.as_ref() == Some(&pool.id));
    let mut nodes = members.filter_map(|member| look.node_at(member.name.rsplit_once(':')?.0.parse().ok()?));
    !with_endpoints.is_empty() && nodes.any(|node| !with_endpoints.contains(node.name.as_str()))
}

fn ports(look: &Look<'_>) -> Answer {
    if let Some(other) = look.left_to() {
        let text =
            format!("kube-proxy makes no node port: the Service is left to the service proxy {other:?}");
        let finding = Finding::new(Code::D806, text)
            .seen(look.object(), "metadata.labels", format!("{SERVICE_PROXY_NAME}={other}"))
            .fix(Fix::kubectl(
                look.namespace(),
                ["label", "service", look.name(), &format!("{SERVICE_PROXY_NAME}-")],
            ));
        return Check::from(finding).into();
    }
    let patch = r#"{"spec":{"allocateLoadBalancerNodePorts":true}}"#;
    let found = look.without_node_port().into_iter().map(|port| {
        Finding::new(Code::D803, format!("port {} has no node port", port.number))
            .seen(look.object(), "spec.ports[].nodePort", "absent")
            .fix(Fix::kubectl(look.namespace(), ["patch", "service", look.name(), "--patch", patch]))
            .at(port)
            .into()
    });
    Answer::found(found.collect(), || ok("all ports have a node port, or need none"))
}
