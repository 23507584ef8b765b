//! Hop 8: the node port, and the endpoints behind it.
//!
//! | module | judges |
//! | --- | --- |
//! | `targets` | ports of the endpoints |
//! | `policies` | policies of the application |

mod policies;
mod targets;

use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use openstack_ccm_core::text::some_of;

use super::look::{Look, SERVICE_PROXY_NAME, endpoints, pools};
use crate::code::Code;
use crate::facts::{CloudFacts, CloudObject};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::Port;
use crate::question::{Answer, questions};
use policies::{foreign, policies};
use targets::{declared, targets};

questions! {
    Questions at NodePort {
        /// Whether each port has a node port.
        ports,
        /// Whether endpoints are ready.
        ready,
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

/// Lists the slices with an endpoint that gets packets, each with the number of such addresses. As in kube-proxy these are ready
/// endpoints, or, if there are none, endpoints that terminate and still serve.
fn ready(slices: &[EndpointSlice]) -> impl Iterator<Item = (&EndpointSlice, usize)> {
    let some_are_ready = slices.iter().flat_map(endpoints).any(is_ready);
    slices.iter().filter_map(move |slice| {
        let used =
            endpoints(slice).filter(|one| if some_are_ready { is_ready(one) } else { still_serves(one) });
        let addresses = used.map(|one| one.addresses.len()).sum::<usize>();
        (addresses > 0).then_some((slice, addresses))
    })
}

/// Returns whether an endpoint is ready; as in kube-proxy, an absent condition counts as ready.
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

/// Returns whether a member of a pool is on a node without a ready endpoint.
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
        let text = format!(
            "kube-proxy opens no node port: a label leaves the Service to the service proxy {other:?}"
        );
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
