//! The face over TCP, with a client as programs make it.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt as _};
use openstack_ccm_kube_sim::{Server, Sim};
use serde_json::json;

#[tokio::test]
async fn a_watch_delivers_at_once_and_breaks_on_demand() {
    let sim = Sim::default();
    let server = Server::bind(&sim, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let nodes: Api<Node> = Api::all(Client::try_from(config).unwrap());
    let mut watch = Box::pin(nodes.watch(&WatchParams::default(), "0").await.unwrap());
    sim.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})).unwrap();
    match watch.try_next().await.unwrap() {
        Some(WatchEvent::Added(node)) => assert_eq!(node.name_any(), "n1"),
        other => panic!("the node, not {other:?}"),
    }
    sim.break_watches();
    // The client reports some broken connections as the end of the watch.
    assert!(!matches!(watch.try_next().await, Ok(Some(_))));
}
