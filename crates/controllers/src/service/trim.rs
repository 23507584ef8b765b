//! The cached parts of a Service object. A cluster has more Services than load balancers, and the parts of an object that
//! are never read here are most of its size.

use k8s_openapi::api::core::v1 as k8s;
use kube::api::ObjectMeta;

use super::intent::{Ours, short_enough};

/// Removes from a listed Service the parts that are never read. A Service that is not ours, and was not before, keeps only what shows
/// that.
pub(super) fn trim(service: &mut k8s::Service, ours: &Ours, served: bool) {
    if let Some(spec) = service.spec.as_mut().filter(|spec| is_left_alone(spec)) {
        spec.external_ips = None;
    }
    if served || ours.wants(service) || ours.needs_cleanup(service) {
        trim_ours(service);
    } else {
        trim_others(service);
    }
}

/// Returns whether service proxies do nothing for a Service: it is headless, or a name for something else. So its `externalIPs` lead
/// nowhere.
fn is_left_alone(spec: &k8s::ServiceSpec) -> bool {
    spec.cluster_ip.as_deref() == Some("None") || spec.type_.as_deref() == Some("ExternalName")
}

fn trim_ours(service: &mut k8s::Service) {
    let metadata = &mut service.metadata;
    metadata.annotations = metadata.annotations.take().map(short_enough);
    metadata.labels = None;
    metadata.owner_references = None;
    if let Some(spec) = &mut service.spec {
        spec.cluster_ip = None;
        spec.cluster_ips = None;
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
        external_ips: spec.external_ips,
        ..k8s::ServiceSpec::default()
    });
    service.status = None;
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::provider::AnnotationUse;
    use openstack_ccm_runtime::listed::{self, Interest};
    use rstest::rstest;
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn service(kind: &str) -> k8s::Service {
        let service = json!({
            "metadata": {"namespace": "default", "name": "app", "uid": "u1", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"l": "1"},
                "annotations": {"a": "1", "example.org/notes": "long"}},
            "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"s": "1"}, "clusterIP": "10.96.0.7",
                "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": true},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
                "conditions": [{"type": "x", "status": "True", "reason": "", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        let interest = Interest::in_annotations(|key| match key {
            "a" => AnnotationUse::Meaning,
            _ => AnnotationUse::None,
        });
        let listed: listed::Service = interest.within(|| from_value(service)).unwrap();
        listed.into()
    }

    fn trimmed(kind: &str, served: bool) -> Value {
        let mut service = service(kind);
        trim(&mut service, &Ours::WithoutClass, served);
        to_value(service).unwrap()
    }

    #[test]
    fn of_our_services_everything_stays_that_a_load_balancer_depends_on() {
        for service in [trimmed("LoadBalancer", false), trimmed("ClusterIP", true)] {
            assert_eq!(service["metadata"]["annotations"], json!({"a": "1"}), "those that mean something");
            assert_eq!(service["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
            assert_eq!(service["metadata"]["labels"], Value::Null);
            assert_eq!(service["spec"], json!({"type": service["spec"]["type"], "ports": [{"port": 80}]}));
            assert_eq!(service["status"]["loadBalancer"]["ingress"][0]["ip"], "192.0.2.1");
        }
    }

    #[test]
    fn of_other_services_it_stays_that_they_are_others() {
        let service = trimmed("ClusterIP", false);
        let expected = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "default", "name": "app", "uid": "u1", "resourceVersion": "7"},
            "spec": {"type": "ClusterIP"}});
        assert_eq!(service, expected);
    }

    /// Service proxies skip Services without an address of their own.
    #[rstest]
    #[case::plain("ClusterIP", "10.96.0.7", true)]
    #[case::headless("ClusterIP", "None", false)]
    #[case::name("ExternalName", "", false)]
    fn external_ips_count_where_a_service_proxy_takes_them(
        #[case] kind: &str,
        #[case] cluster_ip: &str,
        #[case] expected: bool,
    ) {
        let mut service = service(kind);
        let spec = service.spec.as_mut().unwrap();
        spec.external_ips = Some(vec!["192.0.2.9".to_owned()]);
        spec.cluster_ip = Some(cluster_ip.to_owned());
        trim(&mut service, &Ours::WithoutClass, false);
        assert_eq!(service.spec.unwrap().external_ips.is_some(), expected);
    }
}
