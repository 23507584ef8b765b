//! Hop 8: the node port, and the endpoints behind it.

use super::look::Look;
use crate::code::Code;
use crate::finding::{Check, Finding, Fix, ok, unknown};

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    let mut checks = vec![endpoints(look)];
    checks.extend(local(look));
    checks.extend(ports(look));
    checks
}

fn endpoints(look: &Look<'_>) -> Check {
    let slices = match &look.facts.slices {
        Ok(slices) => slices,
        Err(cause) => return unknown(format!("EndpointSlices cannot be read: {cause}")),
    };
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    // An absent condition counts as ready, as for kube-proxy.
    let ready = endpoints
        .filter(|one| one.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true))
        .map(|one| one.addresses.len())
        .sum::<usize>();
    if ready > 0 {
        return ok(format!("{ready} endpoints are ready"));
    }
    let selector = look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let pairs = selector.iter().flat_map(|labels| labels.iter());
    let labels: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
    let by_label = format!("kubernetes.io/service-name={}", look.name());
    let fix = if labels.is_empty() {
        Fix::kubectl(look.namespace(), ["get", "endpointslices", "-l", &by_label])
    } else {
        Fix::kubectl(look.namespace(), ["get", "pods", "-l", &labels.join(",")])
    };
    Finding::new(Code::D801, "no endpoint of the Service is ready")
        .seen(
            look.object(),
            "EndpointSlices",
            format!("{} of them, none with a ready endpoint", slices.len()),
        )
        .fix(fix)
        .into()
}

fn local(look: &Look<'_>) -> Option<Check> {
    if !look.is_local() {
        return None;
    }
    Some(match (look.cloud(), look.warnings("LoadBalancerLocalWithoutMonitor").first()) {
        (_, Some(message)) => {
            let fix = look.annotate("loadbalancer.openstack.org/enable-health-monitor=true");
            Finding::new(Code::D802, "nodes without an endpoint get connections and drop them")
                .seen(look.object(), "LoadBalancerLocalWithoutMonitor", *message)
                .fix(fix)
                .into()
        }
        (Ok(_), None) => ok("externalTrafficPolicy is Local, and there is a health monitor"),
        (Err(cause), None) => unknown(format!(
            "externalTrafficPolicy is Local; whether there is a health monitor is not known: {cause}"
        )),
    })
}

fn ports(look: &Look<'_>) -> Option<Check> {
    let without = look.without_node_port();
    (!without.is_empty()).then(|| {
        let patch = r#"{"spec":{"allocateLoadBalancerNodePorts":true}}"#;
        Finding::new(Code::D803, format!("port {} has no node port", without.join(", ")))
            .seen(look.object(), "spec.ports[].nodePort", "absent")
            .fix(Fix::kubectl(look.namespace(), ["patch", "service", look.name(), "--patch", patch]))
            .of_ports(without.len(), look.ports().len())
            .into()
    })
}
