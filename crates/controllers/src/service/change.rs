//! Which changes of a Service object deserve a reconciliation. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::entry::{entries, same_entries};

use super::intent::{Ours, Wanted};
use super::written::Written;

/// Which of the changed annotations count.
pub(crate) struct Annotations<'a> {
    /// Annotations of our own last write: a change that only brings them is our own echo.
    pub(crate) written: &'a Written,
    /// Whether a key means something to the provider. Others change for reasons of their own, some with every deployment.
    pub(crate) means_something: &'a dyn Fn(&str) -> bool,
}

/// Whether a new or changed Service deserves a reconciliation.
pub(crate) fn needs_reconciliation(
    ours: &Ours,
    old: Option<&k8s::Service>,
    new: &k8s::Service,
    annotations: &Annotations<'_>,
) -> bool {
    let Some(old) = old else { return ours.wants(new) || ours.needs_cleanup(new) };
    let cleanup = ours.needs_cleanup(new)
        && (!ours.needs_cleanup(old)
            || annotations.changed(old, new)
            || old.metadata.uid != new.metadata.uid);
    cleanup || needs_update(ours, old, new, annotations)
}

/// The fields that the framework compares. Labels, selector, cluster addresses, status, finalizers and policies
/// inside the cluster are left out on purpose: no load balancer depends on them.
fn needs_update(ours: &Ours, old: &k8s::Service, new: &k8s::Service, annotations: &Annotations<'_>) -> bool {
    match (ours.wants(old), ours.wants(new)) {
        (false, false) => false,
        (true, true) => {
            old.metadata.uid != new.metadata.uid
                || spec_changed(old, new)
                || annotations.changed(old, new)
                // Deletion of a Service that lost our finalizer.
                || old.metadata.deletion_timestamp.is_some() != new.metadata.deletion_timestamp.is_some()
        }
        (true, false) | (false, true) => true,
    }
}

fn spec_changed(old: &k8s::Service, new: &k8s::Service) -> bool {
    let (Some(old), Some(new)) = (&old.spec, &new.spec) else {
        return old.spec.is_some() != new.spec.is_some();
    };
    let families = |spec: &k8s::ServiceSpec| spec.ip_families.as_ref().map_or(0, Vec::len);
    old.load_balancer_source_ranges != new.load_balancer_source_ranges
        || old.ports != new.ports
        || old.session_affinity != new.session_affinity
        || old.session_affinity_config != new.session_affinity_config
        || old.load_balancer_ip != new.load_balancer_ip
        || old.external_ips != new.external_ips
        || old.external_traffic_policy != new.external_traffic_policy
        || old.health_check_node_port != new.health_check_node_port
        // Families cannot change places.
        || families(old) != families(new)
}

impl Annotations<'_> {
    /// Whether annotations that count differ in another way than by our own last write.
    ///
    /// It is the value that counts, not only the key: `load-balancer-id` is written by us, and is also how a user points
    /// a Service at another load balancer.
    fn changed(&self, old: &k8s::Service, new: &k8s::Service) -> bool {
        let empty = BTreeMap::new();
        let old = old.metadata.annotations.as_ref().unwrap_or(&empty);
        let new = new.metadata.annotations.as_ref().unwrap_or(&empty);
        old.keys()
            .chain(new.keys())
            .filter(|key| old.get(*key) != new.get(*key) && (self.means_something)(key))
            .any(|key| self.written.get(key).map(Option::as_ref) != Some(new.get(key)))
    }
}

/// Whether another client edited the published status: it differs from our last write. A mode that the server dropped
/// or filled in is no edit.
pub(crate) fn status_edited(
    ours: &Ours,
    new: &k8s::Service,
    published: &[k8s::LoadBalancerIngress],
    compare_mode: bool,
) -> bool {
    ours.wanted(new, true) == Wanted::Serve && !same_entries(&entries(new), published, compare_mode)
}

#[cfg(test)]
mod tests {
    use openstack_ccm_advertise::entry::{PROXY, of_address};
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn base() -> Value {
        json!({
            "metadata": {
                "namespace": "default", "name": "app", "uid": "u1",
                "annotations": {"a": "1", "load-balancer-id": "lb1"},
                "labels": {"l": "1"},
            },
            "spec": {
                "type": "LoadBalancer",
                "ports": [{"name": "p", "port": 8000, "nodePort": 30000, "targetPort": 20, "protocol": "TCP"}],
                "ipFamilies": ["IPv4"],
                "sessionAffinity": "None",
                "selector": {"s": "1"},
            },
        })
    }

    fn set(mut service: Value, path: &str, value: Value) -> Value {
        let mut place = &mut service;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            place = match part.parse::<usize>() {
                Ok(index) => &mut place[index],
                Err(_) => &mut place[part],
            };
        }
        *place = value;
        service
    }

    fn update(old: Value, new: Value) -> bool {
        needs_reconciliation(
            &Ours::WithoutClass,
            Some(&from_value(old).unwrap()),
            &from_value(new).unwrap(),
            &all(&Written::new()),
        )
    }

    fn all(written: &Written) -> Annotations<'_> {
        Annotations { written, means_something: &|_| true }
    }

    /// A change leads to a reconciliation when a load balancer depends on it, in either direction, and only for our Services.
    ///
    /// Framework: U1, same.
    /// Framework: U2, same.
    /// Framework: U3, same.
    /// Framework: U4, same.
    /// Framework: U5, same.
    /// Framework: U6, same.
    /// Framework: U7, same.
    /// Framework: U8, same.
    /// Framework: U9, same.
    /// Framework: U10, same.
    /// Framework: U11, same.
    /// Framework: U12, same.
    #[rstest]
    #[case::u1_type("spec/type", json!("ClusterIP"), true)]
    #[case::u2_port("spec/ports/0/port", json!(8001), true)]
    #[case::u3_external_ips("spec/externalIPs", json!(["192.0.2.1"]), true)]
    #[case::u4_uid("metadata/uid", json!("u2"), true)]
    #[case::u4_traffic_policy("spec/externalTrafficPolicy", json!("Local"), true)]
    #[case::u4_health_check_node_port("spec/healthCheckNodePort", json!(30123), true)]
    #[case::u5_target_port("spec/ports/0/targetPort", json!(21), true)]
    #[case::u5_target_port_name("spec/ports/0/targetPort", json!("dns"), true)]
    #[case::u6_app_protocol("spec/ports/0/appProtocol", json!("http"), true)]
    #[case::u7_same("spec/ipFamilies", json!(["IPv4"]), false)]
    #[case::u8_families("spec/ipFamilies", json!(["IPv4", "IPv6"]), true)]
    #[case::u9_annotation("metadata/annotations/b", json!("2"), true)]
    #[case::u9_source_ranges("spec/loadBalancerSourceRanges", json!(["10.0.0.0/8"]), true)]
    #[case::u9_session_affinity("spec/sessionAffinity", json!("ClientIP"), true)]
    #[case::u9_affinity_timeout("spec/sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 5}}), true)]
    #[case::u9_load_balancer_ip("spec/loadBalancerIP", json!("203.0.113.1"), true)]
    #[case::u9_node_port("spec/ports/0/nodePort", json!(30001), true)]
    #[case::u9_port_name("spec/ports/0/name", json!("q"), true)]
    #[case::u9_protocol("spec/ports/0/protocol", json!("UDP"), true)]
    #[case::u10_labels("metadata/labels/l", json!("2"), false)]
    #[case::u10_selector("spec/selector", json!({"s": "2"}), false)]
    #[case::u10_status("status", json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}), false)]
    #[case::u10_internal_policy("spec/internalTrafficPolicy", json!("Local"), false)]
    #[case::u10_distribution("spec/trafficDistribution", json!("PreferClose"), false)]
    #[case::finalizer("metadata/finalizers", json!(["service.kubernetes.io/load-balancer-cleanup"]), false)]
    #[case::resource_version("metadata/resourceVersion", json!("7"), false)]
    fn framework_u1_to_u12_a_reconciliation_is_due_when_the_load_balancer_depends_on_it(
        #[case] path: &str,
        #[case] value: Value,
        #[case] expected: bool,
    ) {
        assert_eq!(update(base(), set(base(), path, value.clone())), expected, "{path}");
        assert_eq!(update(set(base(), path, value.clone()), base()), expected, "{path} back");
        if path != "spec/type" && path != "metadata/finalizers" {
            // U11, U12: the same change of a Service that is not ours.
            let cluster_ip = |service| set(service, "spec/type", json!("ClusterIP"));
            assert!(!update(cluster_ip(base()), cluster_ip(set(base(), path, value.clone()))));
            let class = |service| set(service, "spec/loadBalancerClass", json!("example.org/lb"));
            assert!(!update(class(base()), class(set(base(), path, value))));
        }
    }

    #[rstest]
    #[case::u3_other_external_ips("spec/externalIPs", json!(["192.0.2.1"]), json!(["192.0.2.2"]))]
    #[case::u3_more_external_ips("spec/externalIPs", json!(["192.0.2.1"]), json!(["192.0.2.1", "192.0.2.2"]))]
    #[case::u6_other_app_protocol("spec/ports/0/appProtocol", json!("http"), json!("tcp"))]
    #[case::u9_other_annotation("metadata/annotations/a", json!("1"), json!("2"))]
    fn another_value_is_a_change(#[case] path: &str, #[case] old: Value, #[case] new: Value) {
        assert!(update(set(base(), path, old.clone()), set(base(), path, new)));
        assert!(!update(set(base(), path, old.clone()), set(base(), path, old)));
    }

    fn with_finalizer(service: Value) -> Value {
        set(service, "metadata/finalizers", json!(["service.kubernetes.io/load-balancer-cleanup"]))
    }

    #[test]
    fn deletion_is_noticed_once() {
        let deleting =
            set(with_finalizer(base()), "metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        assert!(update(with_finalizer(base()), deleting.clone()));
        let touched = set(deleting.clone(), "metadata/resourceVersion", json!("9"));
        assert!(!update(deleting.clone(), touched));
        // Input that may heal a stuck removal.
        assert!(update(deleting.clone(), set(deleting, "metadata/annotations/keep-address", json!("true"))));
    }

    #[test]
    fn added_services_are_looked_at_when_they_are_ours() {
        let written = Written::new();
        let added = |service| {
            needs_reconciliation(&Ours::WithoutClass, None, &from_value(service).unwrap(), &all(&written))
        };
        assert!(added(base()));
        assert!(!added(set(base(), "spec/type", json!("ClusterIP"))));
        assert!(added(with_finalizer(set(base(), "spec/type", json!("ClusterIP")))));
    }

    /// Defect: 31, better: what the program wrote itself leads to no second reconciliation.
    #[rstest]
    #[case::our_write("lb2", "lb2", false)]
    #[case::another_value("lb3", "lb2", true)]
    fn our_own_annotation_is_no_change_but_a_users_is(
        #[case] seen: &str,
        #[case] wrote: &str,
        #[case] expected: bool,
    ) {
        let new = set(base(), "metadata/annotations/load-balancer-id", json!(seen));
        let written = Written::from([("load-balancer-id".into(), Some(wrote.into()))]);
        let (old, new) = (from_value(base()).unwrap(), from_value(new).unwrap());
        assert_eq!(needs_reconciliation(&Ours::WithoutClass, Some(&old), &new, &all(&written)), expected);
    }

    #[test]
    fn an_annotation_that_we_removed_is_no_change() {
        let new = set(base(), "metadata/annotations", json!({"a": "1"}));
        let (old, new) = (from_value(base()).unwrap(), from_value(new).unwrap());
        let needed =
            |written: &Written| needs_reconciliation(&Ours::WithoutClass, Some(&old), &new, &all(written));
        assert!(!needed(&Written::from([("load-balancer-id".into(), None)])));
        assert!(needed(&Written::new()));
    }

    /// Deployment tools stamp their own annotations onto objects, often with every deployment.
    #[rstest]
    #[case::of_a_deployment_tool("deploy.example.com/revision", false)]
    #[case::of_the_provider("provider.example.com/hostname", true)]
    fn an_annotation_that_means_nothing_to_the_provider_is_no_change(
        #[case] key: &str,
        #[case] expected: bool,
    ) {
        let with =
            |value: &str| from_value(set(base(), "metadata/annotations", json!({ key: value }))).unwrap();
        let annotations = Annotations {
            written: &Written::new(),
            means_something: &|key| key.starts_with("provider.example.com/"),
        };
        let needed = needs_reconciliation(&Ours::WithoutClass, Some(&with("1")), &with("2"), &annotations);
        assert_eq!(needed, expected);
    }

    #[rstest]
    #[case::cleared(json!([]), true, true)]
    #[case::as_published(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]), true, false)]
    #[case::mode_edited(json!([{"ip": "192.0.2.1", "ipMode": "VIP"}]), true, true)]
    #[case::mode_dropped_by_the_server(json!([{"ip": "192.0.2.1"}]), false, false)]
    #[case::unknown_mode(json!([{"ip": "192.0.2.1", "ipMode": "Router"}]), true, true)]
    #[case::address_added(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}, {"ip": "192.0.2.2"}]), true, true)]
    fn edits_of_the_status_are_noticed(
        #[case] ingress: Value,
        #[case] compare_mode: bool,
        #[case] expected: bool,
    ) {
        let service =
            from_value(set(base(), "status", json!({"loadBalancer": {"ingress": ingress}}))).unwrap();
        let published = [of_address("192.0.2.1".parse().unwrap(), Some(PROXY))];
        assert_eq!(status_edited(&Ours::WithoutClass, &service, &published, compare_mode), expected);
    }
}
