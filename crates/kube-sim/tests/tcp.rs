//! The face over TCP, with a client as programs make it.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config, ResourceExt as _, discovery};
use openstack_ccm_kube_sim::{ApiVersion, Fault, Server, Sim, User};
use serde_json::json;

async fn serve(sim: &Sim) -> (Server, Config) {
    let server = Server::bind(sim, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    (server, config)
}

#[tokio::test]
async fn a_client_finds_its_way_from_the_kubeconfig() {
    let sim = Sim::new(ApiVersion::V1_29);
    let (_server, config) = serve(&sim).await;
    let client = Client::try_from(config).unwrap();
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.29.15");
    let lease = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    let (resource, _) = discovery::pinned_kind(&client, &lease).await.unwrap();
    let leases: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    assert!(leases.list(&ListParams::default()).await.unwrap().items.is_empty());
    let services: Api<Service> = Api::all(client);
    assert_eq!(services.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_watch_delivers_at_once_and_breaks_on_demand() {
    let sim = Sim::default();
    let (_server, config) = serve(&sim).await;
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

#[tokio::test]
async fn the_client_retries_what_is_unavailable() {
    let sim = Sim::default();
    let (_server, config) = serve(&sim).await;
    let services: Api<Service> = Api::default_namespaced(Client::try_from(config).unwrap());
    sim.inject(Fault::on("GET", "/services/kubernetes").times(2).unavailable());
    services.get("kubernetes").await.unwrap();
    assert_eq!(sim.count_requests("GET", "/services/kubernetes"), 3);
}

#[tokio::test]
async fn a_user_may_do_what_the_authorizer_allows() {
    let sim = Sim::default();
    sim.add_token("secret", User::named("reader"));
    sim.set_authorizer(|user, wanted| user.name == "reader" && wanted.verb == "list");
    let (_server, mut config) = serve(&sim).await;
    config.auth_info.token = Some("secret".to_owned().into());
    let services: Api<Service> = Api::default_namespaced(Client::try_from(config).unwrap());
    services.list(&ListParams::default()).await.unwrap();
    match services.get("kubernetes").await {
        Err(kube::Error::Api(status)) => assert!(status.is_forbidden()),
        other => panic!("a refusal, not {other:?}"),
    }
}
