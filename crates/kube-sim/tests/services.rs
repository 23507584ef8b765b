//! What the server does to Services: addresses, ports, changes of type, refusals.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use openstack_ccm_kube_sim::{Failure, Sim};
use rstest::rstest;
use serde_json::{Value, json};

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80}]}});
    for (field, value) in spec.as_object().unwrap() {
        service["spec"][field] = value.clone();
    }
    service
}

fn create(sim: &Sim, name: &str, spec: &Value) -> Value {
    sim.create(&service(name, spec)).unwrap()
}

fn patch(sim: &Sim, spec: &Value) -> Result<Value, Failure> {
    sim.patch("services", "default", "web", &json!({"spec": spec}))
}

#[test]
fn each_service_gets_an_address_and_ports_of_its_own() {
    let sim = Sim::default();
    let one = create(&sim, "one", &json!({}));
    let two = create(&sim, "two", &json!({"externalTrafficPolicy": "Local"}));
    assert_ne!(one["spec"]["clusterIP"], two["spec"]["clusterIP"]);
    assert_ne!(one["spec"]["ports"][0]["nodePort"], two["spec"]["ports"][0]["nodePort"]);
    let health_check = two["spec"]["healthCheckNodePort"].as_u64().unwrap();
    assert!((30_000..=32_767).contains(&health_check));
    assert_ne!(two["spec"]["ports"][0]["nodePort"], health_check);
}

#[test]
fn a_port_or_an_address_cannot_be_taken_twice_but_again_after_its_release() {
    let sim = Sim::default();
    let asked_for = json!({"clusterIP": "10.96.9.9", "ports": [{"port": 80, "nodePort": 30_500}]});
    create(&sim, "web", &asked_for);
    let refused = sim.create(&service("other", &json!({"ports": [{"port": 80, "nodePort": 30_500}]})));
    let message = refused.unwrap_err().message;
    assert!(message.contains("30500: provided port is already allocated"), "{message}");
    let refused = sim.create(&service("other", &json!({"clusterIP": "10.96.9.9"}))).unwrap_err();
    assert!(refused.message.contains("provided IP is already allocated"), "{}", refused.message);
    let refused = sim.create(&service("other", &json!({"ports": [{"port": 80, "nodePort": 80}]})));
    assert!(refused.unwrap_err().message.contains("not in the valid range"));
    sim.delete("services", "default", "web").unwrap();
    create(&sim, "other", &asked_for);
}

#[test]
fn leaving_the_type_takes_status_ports_and_class_along() {
    let sim = Sim::default();
    create(&sim, "web", &json!({"loadBalancerClass": "example.com/x", "externalTrafficPolicy": "Local"}));
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7", "ipMode": "Proxy"}]}}});
    sim.patch_status("services", "default", "web", &status).unwrap();
    let changed = patch(&sim, &json!({"type": "ClusterIP"})).unwrap();
    assert_eq!(changed["status"], json!({"loadBalancer": {}}));
    for field in
        ["loadBalancerClass", "healthCheckNodePort", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"]
    {
        assert_eq!(changed["spec"].get(field), None, "{field}");
    }
    assert_eq!(changed["spec"]["ports"][0].get("nodePort"), None);
    let late = sim.patch_status("services", "default", "web", &status).unwrap_err();
    assert_eq!(late.code, 422);
    let back = patch(&sim, &json!({"type": "LoadBalancer"})).unwrap();
    assert!(back["spec"]["ports"][0]["nodePort"].is_u64());
}

#[test]
fn a_replacement_that_leaves_out_what_was_allocated_keeps_it() {
    let sim = Sim::default();
    let made = create(&sim, "web", &json!({}));
    let new_ports = json!([{"name": "http", "port": 80}, {"name": "https", "port": 443}]);
    let replaced = sim.update(&service("web", &json!({"ports": new_ports}))).unwrap();
    assert_eq!(replaced["spec"]["clusterIP"], made["spec"]["clusterIP"]);
    assert_eq!(replaced["spec"]["ports"][0]["nodePort"], made["spec"]["ports"][0]["nodePort"]);
    assert!(replaced["spec"]["ports"][1]["nodePort"].is_u64());
}

#[test]
fn an_equal_write_is_none() {
    let sim = Sim::default();
    let made = create(&sim, "web", &json!({}));
    let before = sim.resource_version();
    assert_eq!(sim.update(&made).unwrap(), made);
    assert_eq!(sim.resource_version(), before);
}

#[rstest]
#[case(json!({"ipFamilyPolicy": "PreferDualStack"}), json!(["IPv4", "IPv6"]))]
#[case(json!({"ipFamilies": ["IPv6"]}), json!(["IPv6"]))]
#[case(json!({"ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack"}), json!(["IPv6", "IPv4"]))]
#[case(json!({}), json!(["IPv4"]))]
fn families_follow_policy(#[case] spec: Value, #[case] families: Value) {
    let made = create(&Sim::default(), "web", &spec);
    assert_eq!(made["spec"]["ipFamilies"], families);
    assert_eq!(made["spec"]["clusterIPs"].as_array().unwrap().len(), families.as_array().unwrap().len());
}

#[rstest]
#[case(json!({"ports": []}), "spec.ports: Required value")]
#[case(json!({"ports": [{"port": 80}, {"port": 81}]}), "spec.ports[0].name: Required value")]
#[case(json!({"ports": [{"port": 80, "protocol": "ICMP"}]}), "supported values: \"SCTP\", \"TCP\", \"UDP\"")]
#[case(json!({"type": "Balancer"}), "spec.type: Unsupported value: \"Balancer\"")]
#[case(json!({"type": "ClusterIP", "externalTrafficPolicy": "Local"}), "externally-accessible")]
#[case(json!({"type": "ClusterIP", "loadBalancerClass": "a/b"}), "may only be used when `type` is 'LoadBalancer'")]
#[case(json!({"loadBalancerSourceRanges": ["10.0.0.0"]}), "must be a valid CIDR value")]
#[case(json!({"clusterIP": "None"}), "may not be set to 'None' for LoadBalancer services")]
#[case(json!({"type": "ExternalName"}), "spec.externalName: Required value")]
#[case(json!({"healthCheckNodePort": 30_700}), "spec.healthCheckNodePort")]
fn a_service_that_makes_no_sense_is_refused(#[case] spec: Value, #[case] because: &str) {
    let refused = Sim::default().create(&service("web", &spec)).unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains(because), "{}", refused.message);
}

#[rstest]
#[case(json!({"loadBalancerClass": "example.com/y"}), "spec.loadBalancerClass")]
#[case(json!({"clusterIP": "10.96.77.77"}), "spec.clusterIPs[0]")]
#[case(json!({"healthCheckNodePort": 31_000}), "field is immutable")]
fn some_fields_are_set_once(#[case] change: Value, #[case] because: &str) {
    let sim = Sim::default();
    create(&sim, "web", &json!({"loadBalancerClass": "example.com/x", "externalTrafficPolicy": "Local"}));
    let refused = patch(&sim, &change).unwrap_err();
    assert!(refused.message.contains(because), "{}", refused.message);
}
