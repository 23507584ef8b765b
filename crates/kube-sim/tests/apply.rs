//! Server-side apply between several writers, through the client.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use openstack_ccm_kube_sim::Sim;
use serde_json::{Value, json};

fn config(data: &Value) -> Patch<Value> {
    Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}))
}

#[tokio::test]
async fn writers_own_what_they_state_and_give_up_what_they_leave_out() {
    let sim = Sim::default();
    let api: Api<ConfigMap> = Api::namespaced(Client::new(sim.service(), "default"), "default");
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    api.patch("c", &one, &config(&json!({"a": "1", "b": "1"}))).await.unwrap();
    api.patch("c", &two, &config(&json!({"b": "1", "c": "2"}))).await.unwrap();

    match api.patch("c", &two, &config(&json!({"a": "2", "b": "1", "c": "2"}))).await {
        Err(kube::Error::Api(status)) => {
            assert!(status.is_conflict());
            assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"one\": .data.a");
        }
        other => panic!("a conflict, not {other:?}"),
    }
    let forced = PatchParams::apply("two").force();
    let taken = api.patch("c", &forced, &config(&json!({"a": "2", "b": "1"}))).await.unwrap();
    assert_eq!(json!(taken.data), json!({"a": "2", "b": "1"}));
    // What another writer still states stays; what nobody states goes.
    let left = api.patch("c", &two, &config(&json!({}))).await.unwrap();
    assert_eq!(json!(left.data), json!({"b": "1"}));
}

#[tokio::test]
async fn a_port_without_protocol_is_the_tcp_port() {
    let sim = Sim::default();
    let web = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}}});
    sim.create(&web).unwrap();
    let api: Api<Service> = Api::namespaced(Client::new(sim.service(), "default"), "default");
    let applied = api.patch("web", &PatchParams::apply("me").force(), &Patch::Apply(&web)).await.unwrap();
    assert_eq!(applied.spec.as_ref().unwrap().ports.as_ref().unwrap().len(), 1);
    let managers: Vec<_> =
        applied.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    assert_eq!(managers, ["me", "kube-sim"]);
}
