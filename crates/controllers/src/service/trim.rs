//! What is cached of a Service object. A cluster has more Services than load balancers, and the parts of an object that
//! nobody here reads are most of its size.

use k8s_openapi::api::core::v1 as k8s;
use kube::api::ObjectMeta;
use openstack_ccm_core::provider::AnnotationUse;

use super::intent::{MOST_VALUES, Ours, short_enough};

/// Takes out what is never read. Of a Service that is none of ours, and was none, only what shows that stays.
pub(super) fn trim(
    service: &mut k8s::Service,
    ours: &Ours,
    served: bool,
    use_of: impl Fn(&str) -> AnnotationUse,
) {
    if served || ours.wants(service) || ours.needs_cleanup(service) {
        trim_ours(service, use_of);
    } else {
        trim_others(service);
    }
}

fn trim_ours(service: &mut k8s::Service, use_of: impl Fn(&str) -> AnnotationUse) {
    let metadata = &mut service.metadata;
    if let Some(mut annotations) = metadata.annotations.take() {
        // Names that are only reported take no more than values may.
        let mut room = MOST_VALUES;
        annotations.retain(|key, _| match use_of(key) {
            AnnotationUse::Meaning => true,
            AnnotationUse::Message => room.checked_sub(key.len()).map(|left| room = left).is_some(),
            AnnotationUse::None => false,
        });
        metadata.annotations = Some(short_enough(annotations));
    }
    metadata.labels = None;
    metadata.owner_references = None;
    metadata.creation_timestamp = None;
    if let Some(spec) = &mut service.spec {
        spec.selector = None;
        spec.cluster_ip = None;
        spec.cluster_ips = None;
        spec.allocate_load_balancer_node_ports = None;
        spec.internal_traffic_policy = None;
        spec.ip_family_policy = None;
    }
    if let Some(status) = &mut service.status {
        status.conditions = None;
    }
}

fn trim_others(service: &mut k8s::Service) {
    let metadata = std::mem::take(&mut service.metadata);
    service.metadata = ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        deletion_timestamp: metadata.deletion_timestamp,
        ..ObjectMeta::default()
    };
    let spec = service.spec.take().unwrap_or_default();
    service.spec = Some(k8s::ServiceSpec {
        type_: spec.type_,
        load_balancer_class: spec.load_balancer_class,
        ..k8s::ServiceSpec::default()
    });
    service.status = None;
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn service(kind: &str) -> k8s::Service {
        from_value(json!({
            "metadata": {"namespace": "default", "name": "app", "uid": "u1", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"l": "1"},
                "annotations": {"a": "1", "example.org/notes": "long"}},
            "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"s": "1"}, "clusterIP": "10.96.0.7",
                "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": true},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
                "conditions": [{"type": "x", "status": "True", "reason": "", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap()
    }

    fn use_of(key: &str) -> AnnotationUse {
        match key {
            "a" => AnnotationUse::Meaning,
            _ if key.starts_with("ours/") => AnnotationUse::Message,
            _ => AnnotationUse::None,
        }
    }

    fn trimmed(kind: &str, served: bool) -> Value {
        let mut service = service(kind);
        trim(&mut service, &Ours::WithoutClass, served, use_of);
        to_value(service).unwrap()
    }

    #[test]
    fn of_our_services_everything_stays_that_a_load_balancer_depends_on() {
        for service in [trimmed("LoadBalancer", false), trimmed("ClusterIP", true)] {
            assert_eq!(service["metadata"]["annotations"], json!({"a": "1"}), "those that mean something");
            assert_eq!(service["metadata"]["creationTimestamp"], Value::Null);
            assert_eq!(service["metadata"]["labels"], Value::Null);
            assert_eq!(service["spec"], json!({"type": service["spec"]["type"], "ports": [{"port": 80}]}));
            assert_eq!(service["status"]["loadBalancer"]["ingress"][0]["ip"], "192.0.2.1");
        }
    }

    /// As many as an object may have: 256 KiB.
    #[rstest]
    #[case::of_nobody("example.org/", 0)]
    #[case::that_are_reported_as_unknown("ours/", MOST_VALUES)]
    fn thousands_of_names_take_no_memory(#[case] prefix: &str, #[case] most: usize) {
        let mut service = service("LoadBalancer");
        let names = (0..4096).map(|number| (format!("{prefix}{number:0>50}"), String::new()));
        service.metadata.annotations.as_mut().unwrap().extend(names);
        trim(&mut service, &Ours::WithoutClass, true, use_of);
        let kept = service.metadata.annotations.unwrap();
        assert_eq!(kept["a"], "1");
        let bytes: usize = kept.keys().map(String::len).sum();
        assert!(bytes <= most + 1, "{bytes}");
        assert!(bytes + 100 > most, "as many are reported as there is room for: {bytes}");
    }

    #[test]
    fn of_other_services_it_stays_that_they_are_others() {
        let service = trimmed("ClusterIP", false);
        let expected = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "default", "name": "app", "uid": "u1", "resourceVersion": "7"},
            "spec": {"type": "ClusterIP"}});
        assert_eq!(service, expected);
    }
}
