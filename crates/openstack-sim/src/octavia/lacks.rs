//! What the answers of older releases lack, by recorded answers of each (`e2e/recorded/openstack-*.json`). Neutron is of the same
//! release as the Octavia beside it.

use serde_json::Value;

use super::major_version::OctaviaRelease;
use crate::service::Service;

/// A place in an answer, with the release from which on it is there. `[]` goes through a list; `*` is all that is in an object,
/// which is null before.
const LATER: [(Service, &str, OctaviaRelease); 15] = [
    (Service::LoadBalancer, "loadbalancer.additional_vips[].port_id", OctaviaRelease::V16),
    (Service::LoadBalancer, "loadbalancer.pools[].healthmonitor.*", OctaviaRelease::V12),
    (Service::LoadBalancer, "quota.healthmonitor", OctaviaRelease::V19),
    (Service::LoadBalancer, "quota.loadbalancer", OctaviaRelease::V19),
    (Service::LoadBalancer, "quota.project_id", OctaviaRelease::V19),
    (Service::LoadBalancer, "quota.tenant_id", OctaviaRelease::V19),
    (Service::Network, "subnet.router:external", OctaviaRelease::V16),
    (Service::Network, "subnets[].router:external", OctaviaRelease::V16),
    (Service::Network, "quota.router_route", OctaviaRelease::V19),
    // Routers show it in answers to actions only; elsewhere it is part of the gateway.
    (Service::Network, "router.enable_snat", OctaviaRelease::V19),
    (Service::Network, "router.enable_default_route_bfd", OctaviaRelease::V14),
    (Service::Network, "router.enable_default_route_ecmp", OctaviaRelease::V14),
    (Service::Network, "security_group.security_group_rules[].belongs_to_default_sg", OctaviaRelease::V14),
    (Service::Network, "security_group_rule.belongs_to_default_sg", OctaviaRelease::V14),
    (Service::Network, "ports[].trunk_details.sub_ports[].mac_address", OctaviaRelease::V19),
];

/// Takes out of an answer what the release does not have yet.
pub(crate) fn trim(release: OctaviaRelease, service: Service, body: &mut Value) {
    for (_, place, _) in LATER.iter().filter(|(of, _, since)| *of == service && release < *since) {
        remove(body, place);
    }
}

/// Takes what is at a place out of a value.
pub(crate) fn remove(value: &mut Value, place: &str) {
    let (step, rest) = place.split_once('.').unwrap_or((place, ""));
    let (key, through_list) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
    let Value::Object(fields) = value else { return };
    if rest.is_empty() {
        fields.remove(key);
        return;
    }
    if rest == "*" {
        if let Some(inner) = fields.get_mut(key) {
            *inner = Value::Null;
        }
        return;
    }
    match fields.get_mut(key) {
        Some(Value::Array(items)) if through_list => items.iter_mut().for_each(|item| remove(item, rest)),
        Some(inner) if !through_list => remove(inner, rest),
        Some(_) | None => {}
    }
}
