use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_core::provider::AnnotationUse;
use rstest::rstest;
use serde_json::{Map, Value, from_str, from_value, json};

use super::*;

fn use_of(key: &str) -> AnnotationUse {
    match key {
        "a" | "b" | "wanted" => AnnotationUse::Meaning,
        _ if key.starts_with("ours/") => AnnotationUse::Message,
        _ => AnnotationUse::None,
    }
}

fn read(service: Value) -> k8s::Service {
    let interest = Interest::in_annotations(use_of).and_writes_of("us");
    let listed: Service = interest.within(|| from_value(service)).unwrap();
    listed.into()
}

fn with_annotations(annotations: impl IntoIterator<Item = (String, String)>) -> k8s::Service {
    let annotations: Map<String, Value> =
        annotations.into_iter().map(|(key, value)| (key, json!(value))).collect();
    read(json!({"metadata": {"name": "a", "annotations": annotations}}))
}

/// A field of another name than Kubernetes gives it would be empty for ever.
#[test]
fn of_a_service_that_is_read_has_the_names_that_kubernetes_gives_it() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"l": "1"},
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
            "annotations": {"a": "1"}, "finalizers": ["x/y", FINALIZER],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": "c", "loadBalancerIP": "192.0.2.1",
            "loadBalancerSourceRanges": ["10.0.0.0/8"], "ports": [{"name": "web", "port": 80, "nodePort": 30080,
                "protocol": "TCP", "appProtocol": "http", "targetPort": 8080}],
            "ipFamilies": ["IPv4"], "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"],
            "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Proxy", "hostname": "h"}]},
            "conditions": [{"type": "t", "status": "True", "reason": "r", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    assert_eq!(read(service.clone()), from_value(service).unwrap());
}

#[test]
fn of_a_node_what_is_read_has_the_names_that_kubernetes_gives_it() {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"zone": "z"}},
        "spec": {"providerID": "cloud:///1", "podCIDRs": ["10.0.0.0/24"],
            "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "conditions": [{"type": "Ready", "status": "True"}], "images": [{"names": ["i"]}],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "operatingSystem": "linux", "architecture": "", "bootID": "",
                "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "",
                "osImage": "", "systemUUID": "s"}},
    });
    let listed: Node = from_value(node.clone()).unwrap();
    assert_eq!(k8s::Node::from(listed), from_value(node).unwrap());
}

#[test]
fn what_is_never_read_is_not_kept() {
    let service = json!({"metadata": {"name": "a", "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "wanted": "yes"}}});
    assert_eq!(read(service), read(json!({"metadata": {"name": "a", "annotations": {"wanted": "yes"}}})));
}

/// As many as an object may have: 256 KiB.
#[rstest]
#[case::of_nobody("example.org/", 0)]
#[case::that_are_reported_as_unknown("ours/", MAX_VALUES_SIZE)]
fn thousands_of_names_take_no_memory_and_hide_nothing(#[case] prefix: &str, #[case] most: usize) {
    let names = (0..4096).map(|number| (format!("{prefix}{number:0>50}"), String::new()));
    let wanted = ("wanted".to_owned(), "1".to_owned());
    let kept = with_annotations(names.chain([wanted])).metadata.annotations.unwrap();
    assert_eq!(kept["wanted"], "1");
    let bytes: usize = kept.keys().map(String::len).sum();
    assert!(bytes <= most + 6, "{bytes}");
    assert!(bytes + 100 > most, "as many are reported as there is room for: {bytes}");
}

#[test]
fn values_that_are_too_long_can_be_shown_and_take_no_memory() {
    let of = |length: usize| "ü".repeat(length / 2);
    let kept = with_annotations([("a".to_owned(), of(200_000)), ("b".to_owned(), "1".to_owned())]);
    let kept = kept.metadata.annotations.unwrap();
    let expected = "… (200000 bytes; limit 16384 for all annotations)";
    assert_eq!(kept["a"], format!("{}{expected}", "ü".repeat(20)));
    assert_eq!(kept["b"], "1");
    let kept = with_annotations([("a".to_owned(), of(MAX_VALUES_SIZE))]).metadata.annotations.unwrap();
    assert_eq!(kept["a"], of(MAX_VALUES_SIZE));
    let three = ["a", "b", "wanted"].map(|key| (key.to_owned(), of(MAX_VALUES_SIZE)));
    let kept = with_annotations(three).metadata.annotations.unwrap();
    assert!(kept.values().map(String::len).sum::<usize>() <= 2 * MAX_VALUES_SIZE);
}

#[rstest]
#[case::ours(r#"{"manager":"us","fieldsV1":{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}}"#, true)]
#[case::another_order(
    r#"{"fieldsV1":{"f:status":{"f:loadBalancer":{"f:ingress":{}}}},"manager":"us"}"#,
    true
)]
#[case::beside_others(
    r#"{"fieldsV1":{"f:metadata":{"f:x":{}},"f:status":{".":{},"f:conditions":{},"f:loadBalancer":{".":{},"f:ingress":{}}}},
        "fieldsType":"FieldsV1","manager":"us","operation":"Update","subresource":"status","time":"2026-01-01T00:00:00Z"}"#,
    true
)]
#[case::anothers(r#"{"manager":"them","fieldsV1":{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}}"#, false)]
#[case::other_fields(r#"{"manager":"us","fieldsV1":{"f:status":{"f:conditions":{}}}}"#, false)]
#[case::of_the_spec(r#"{"manager":"us","fieldsV1":{"f:spec":{"f:loadBalancer":{"f:ingress":{}}}}}"#, false)]
fn of_managers_it_is_read_whether_we_wrote_the_addresses(#[case] entry: &str, #[case] expected: bool) {
    let text = format!(r#"{{"metadata":{{"managedFields":[{{"manager":"first"}},{entry}]}}}}"#);
    let interest = Interest::in_none().and_writes_of("us");
    let listed: Service = interest.within(|| from_str(&text)).unwrap();
    let fields = k8s::Service::from(listed).metadata.managed_fields.unwrap_or_default();
    assert_eq!(fields.len(), usize::from(expected));
    if let Some(entry) = fields.first() {
        assert_eq!(entry.manager.as_deref(), Some("us"));
        assert!(entry.fields_v1.as_ref().unwrap().0.pointer("/f:status/f:loadBalancer/f:ingress").is_some());
    }
}

/// Short entries take a hundred times their text when they are decoded.
#[test]
fn no_list_takes_more_memory_than_somebody_needs() {
    let many = |entry: Value| Value::Array(vec![entry; 20_000]);
    let mut finalizers = vec![json!("a/b"); 20_000];
    finalizers.push(json!(FINALIZER));
    let labels: Map<String, Value> = (0..60_000).map(|number| (format!("l{number}"), json!(""))).collect();
    let service = read(json!({
        "metadata": {"finalizers": finalizers, "labels": labels,
            "ownerReferences": many(json!({"apiVersion": "", "kind": "", "name": "", "uid": ""}))},
        "spec": {"ports": many(json!({"port": 1})), "loadBalancerSourceRanges": many(json!("::/0"))},
        "status": {"loadBalancer": {"ingress": many(json!({}))}},
    }));
    let finalizers = service.metadata.finalizers.unwrap();
    assert_eq!(finalizers.len(), MAX_METADATA_ENTRIES + 1);
    assert_eq!(
        finalizers.last().unwrap(),
        FINALIZER,
        "what keeps a load balancer is seen wherever it stands"
    );
    assert!(service.metadata.labels.unwrap().keys().map(String::len).sum::<usize>() <= 32 << 10);
    assert_eq!(service.metadata.owner_references.unwrap().len(), 64);
    let spec = service.spec.unwrap();
    assert_eq!(spec.ports.unwrap().len(), MAX_PORTS + 1, "that there are too many is to be seen");
    assert_eq!(spec.load_balancer_source_ranges.unwrap().len(), MAX_SOURCE_RANGES + 1);
    assert_eq!(service.status.unwrap().load_balancer.unwrap().ingress.unwrap().len(), 1000);
}
