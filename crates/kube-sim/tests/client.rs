//! The simulator through the client that the controllers use, in the same process.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use std::time::Duration;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Event, Namespace, Service};
use k8s_openapi::api::events::v1::Event as GroupEvent;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::events::{Event as NewEvent, EventType, Recorder, Reporter};
use kube::{Client, Resource as _, ResourceExt as _};
use openstack_ccm_kube_sim::{ApiVersion, Sim};
use serde_json::{Value, json};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

fn client(sim: &Sim) -> Client {
    Client::new(sim.service(), "default")
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})
}

fn modes(service: &Service) -> Vec<Option<String>> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = status.and_then(|balancer| balancer.ingress.clone()).unwrap_or_default();
    ingress.into_iter().map(|entry| entry.ip_mode).collect()
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_and_a_downgrade_work_on_the_same_objects() {
    let sim = Sim::new(ApiVersion::V1_36);
    sim.create(&service("web")).unwrap();
    let proxy = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7", "ipMode": "Proxy"}]}}});
    sim.patch_status("services", "default", "web", &proxy).unwrap();
    let api: Api<Service> = Api::namespaced(client(&sim), "default");
    sim.set_version(ApiVersion::V1_29);
    assert_eq!(modes(&api.get("web").await.unwrap()), [Some("Proxy".to_owned())]);
    sim.set_version(ApiVersion::V1_28);
    assert_eq!(modes(&api.get("web").await.unwrap()), [None]);
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    api.patch("web", &PatchParams::default(), &patch).await.unwrap();
    sim.set_version(ApiVersion::V1_36);
    // The old server forgot the mode when it wrote; the new one sets its default on reading.
    assert_eq!(modes(&api.get("web").await.unwrap()), [Some("VIP".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn events_are_seen_through_both_groups() {
    let sim = Sim::default();
    let web: Service = serde_json::from_value(sim.create(&service("web")).unwrap()).unwrap();
    let reporter = Reporter { controller: "openstack-ccm".to_owned(), instance: Some("pod-1".to_owned()) };
    let recorder = Recorder::new(client(&sim), reporter);
    let event = NewEvent {
        type_: EventType::Warning,
        reason: "SyncLoadBalancerFailed".to_owned(),
        note: Some("quota exceeded".to_owned()),
        action: "Reconciling".to_owned(),
        secondary: None,
    };
    recorder.publish(&event, &web.object_ref(&())).await.unwrap();
    recorder.publish(&event, &web.object_ref(&())).await.unwrap();
    let old: Api<Event> = Api::namespaced(client(&sim), "default");
    let of_web = ListParams::default().fields("involvedObject.name=web,involvedObject.kind=Service");
    let seen = old.list(&of_web).await.unwrap().items;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].message.as_deref(), Some("quota exceeded"));
    assert_eq!(seen[0].series.as_ref().and_then(|series| series.count), Some(2));
    let new: Api<GroupEvent> = Api::namespaced(client(&sim), "default");
    let seen = new.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(seen[0].note.as_deref(), Some("quota exceeded"));
}

#[tokio::test(start_paused = true)]
async fn chunks_of_a_list_belong_together() {
    let sim = Sim::default();
    for name in ["a", "b", "c"] {
        sim.create(&service(name)).unwrap();
    }
    let api: Api<Service> = Api::all(client(&sim));
    let first = api.list(&ListParams::default().limit(3)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    sim.delete("services", "default", "kubernetes").unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = api.list(&ListParams::default().limit(3).continue_token(&token)).await.unwrap();
    assert_eq!(rest.items.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(), ["kubernetes"]);
    let web = api.list(&ListParams::default().labels("app in (a, c)")).await.unwrap();
    assert_eq!(web.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_takes_its_content_along() {
    let sim = Sim::default();
    sim.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})).unwrap();
    let mut held = service("web");
    held["metadata"]["namespace"] = "team".into();
    held["metadata"]["finalizers"] = json!([FINALIZER]);
    sim.create(&held).unwrap();
    let namespaces: Api<Namespace> = Api::all(client(&sim));
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    assert_eq!(namespaces.get("team").await.unwrap().status.unwrap().phase.as_deref(), Some("Terminating"));
    assert!(sim.get("services", "team", "web").unwrap().pointer("/metadata/deletionTimestamp").is_some());
    sim.patch("services", "team", "web", &json!({"metadata": {"finalizers": null}})).unwrap();
    assert!(namespaces.get_opt("team").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn stamps_follow_the_paused_clock() {
    let sim = Sim::default();
    sim.set_time("2030-01-01T00:00:00Z".parse().unwrap());
    tokio::time::advance(Duration::from_secs(90)).await;
    let created = sim.create(&service("web")).unwrap();
    assert_eq!(created["metadata"]["creationTimestamp"], "2030-01-01T00:01:30Z");
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_a_selector_sees_objects_come_and_go() {
    let sim = Sim::default();
    sim.create(&service("web")).unwrap();
    let api: Api<Service> = Api::namespaced(client(&sim), "default");
    let only_web = WatchParams::default().labels("app=web").timeout(10);
    let watch = api.watch(&only_web, &sim.resource_version().to_string()).await.unwrap();
    sim.create(&service("other")).unwrap();
    sim.patch("services", "default", "web", &json!({"metadata": {"annotations": {"a": "b"}}})).unwrap();
    sim.patch("services", "default", "web", &json!({"metadata": {"labels": {"app": "x"}}})).unwrap();
    sim.patch("services", "default", "other", &json!({"metadata": {"labels": {"app": "web"}}})).unwrap();
    let events: Vec<String> = watch
        .map_ok(|event| match event {
            WatchEvent::Added(service) => format!("added {}", service.name_any()),
            WatchEvent::Modified(service) => format!("modified {}", service.name_any()),
            WatchEvent::Deleted(service) => format!("deleted {}", service.name_any()),
            WatchEvent::Bookmark(_) => "bookmark".to_owned(),
            WatchEvent::Error(status) => status.message,
        })
        .try_collect()
        .await
        .unwrap();
    assert_eq!(events, ["modified web", "deleted web", "added other", "bookmark"]);
}
