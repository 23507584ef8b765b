//! The simulator through the client that the controllers use, in the same process.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Service};
use k8s_openapi::api::events::v1::Event as GroupEvent;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::events::{Event as NewEvent, EventType, Recorder, Reporter};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use openstack_ccm_kube_sim::{ApiVersion, Fault, RequestRecord, Sim, User};
use serde_json::{Value, json};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

fn client(sim: &Sim) -> Client {
    Client::new(sim.service(), "default")
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"}}})
}

fn ingress(entry: &Value) -> Value {
    json!({"status": {"loadBalancer": {"ingress": [entry]}}})
}

fn modes(service: &Service) -> Vec<Option<String>> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = status.and_then(|balancer| balancer.ingress.clone()).unwrap_or_default();
    ingress.into_iter().map(|entry| entry.ip_mode).collect()
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_objects_and_changes_and_survives_a_restart() {
    let sim = Sim::new(ApiVersion::V1_36);
    sim.create(&node("n1")).unwrap();
    let (reader, writer) = reflector::store::<Node>();
    let api: Api<Node> = Api::all(client(&sim));
    let stream = watcher(api, watcher::Config::default()).default_backoff().reflect(writer).touched_objects();
    let mut stream = Box::pin(stream);
    assert_eq!(stream.next().await.unwrap().unwrap().name_any(), "n1");
    sim.create(&node("n2")).unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().name_any(), "n2");
    sim.break_watches();
    sim.create(&node("n3")).unwrap();
    while stream.next().await.unwrap().map_or(true, |node| node.name_any() != "n3") {}
    let mut names: Vec<String> = reader.state().iter().map(|node| node.name_any()).collect();
    names.sort();
    assert_eq!(names, ["n1", "n2", "n3"]);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_anew_when_its_past_is_compacted() {
    let sim = Sim::new(ApiVersion::V1_36);
    let api: Api<Service> = Api::namespaced(client(&sim), "default");
    let mut stream = Box::pin(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
    assert_eq!(stream.next().await.unwrap().unwrap().name_any(), "kubernetes");
    sim.create(&service("web")).unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().name_any(), "web");
    sim.break_watches();
    sim.create(&service("late")).unwrap();
    sim.compact();
    sim.create(&service("later")).unwrap();
    let mut names = Vec::new();
    while names.len() < 4 {
        if let Ok(service) = stream.next().await.unwrap() {
            names.push(service.name_any());
        }
    }
    assert_eq!(names, ["kubernetes", "late", "later", "web"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_whether_the_server_keeps_ip_mode() {
    let sim = Sim::new(ApiVersion::V1_28);
    sim.create(&service("web")).unwrap();
    let api: Api<Service> = Api::namespaced(client(&sim), "default");
    let patch = Patch::Merge(ingress(&json!({"ip": "203.0.113.7"})));
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let mut answers = Vec::new();
    for version in [ApiVersion::V1_28, ApiVersion::V1_29, ApiVersion::V1_29_GATE_ON, ApiVersion::V1_36] {
        sim.set_version(version);
        let answer = api.patch_status("web", &dry_run, &patch).await.unwrap();
        answers.push(modes(&answer));
        assert_eq!(modes(&api.get("web").await.unwrap()), []);
    }
    let vip = vec![Some("VIP".to_owned())];
    assert_eq!(answers, [vec![None], vec![None], vip.clone(), vip]);
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_and_a_downgrade_work_on_the_same_objects() {
    let sim = Sim::new(ApiVersion::V1_36);
    sim.create(&service("web")).unwrap();
    let proxy = ingress(&json!({"ip": "203.0.113.7", "ipMode": "Proxy"}));
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
async fn of_two_candidates_for_a_lease_the_slower_one_gets_a_conflict() {
    let sim = Sim::default();
    let api: Api<Lease> = Api::namespaced(client(&sim), "kube-system");
    let lease: Lease = serde_json::from_value(json!({"metadata": {"name": "ccm"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}}))
    .unwrap();
    let mut first = api.create(&PostParams::default(), &lease).await.unwrap();
    let mut second = first.clone();
    first.spec.as_mut().unwrap().holder_identity = Some("b".to_owned());
    api.replace("ccm", &PostParams::default(), &first).await.unwrap();
    second.spec.as_mut().unwrap().holder_identity = Some("c".to_owned());
    match api.replace("ccm", &PostParams::default(), &second).await {
        Err(kube::Error::Api(status)) => assert!(status.is_conflict(), "{status:?}"),
        other => panic!("a conflict, not {other:?}"),
    }
    let held = api.get("ccm").await.unwrap().spec.unwrap();
    assert_eq!(held.holder_identity.as_deref(), Some("b"));
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
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let sim = Sim::default();
    let mut held = service("web");
    held["metadata"]["finalizers"] = json!([FINALIZER, "example.com/other"]);
    sim.create(&held).unwrap();
    let api: Api<Service> = Api::namespaced(client(&sim), "default");
    let mut watch = Box::pin(api.watch(&WatchParams::default(), "0").await.unwrap());
    api.delete("web", &DeleteParams::default()).await.unwrap();
    assert!(api.get("web").await.unwrap().meta().deletion_timestamp.is_some());
    let remove = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER],
        "$setElementOrder/finalizers": ["example.com/other"]}});
    api.patch_status("web", &PatchParams::default(), &Patch::Strategic(remove)).await.unwrap();
    assert_eq!(api.get("web").await.unwrap().finalizers(), ["example.com/other"]);
    let remove = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/other"},
        {"op": "remove", "path": "/metadata/finalizers/0"}]);
    let remove = Patch::<()>::Json(serde_json::from_value(remove).unwrap());
    api.patch("web", &PatchParams::default(), &remove).await.unwrap();
    assert!(api.get_opt("web").await.unwrap().is_none());
    let mut kinds = Vec::new();
    while let Some(event) = watch.try_next().await.unwrap() {
        let name = |service: &Service| service.name_any() == "web";
        match event {
            WatchEvent::Added(service) if name(&service) => kinds.push("added"),
            WatchEvent::Modified(service) if name(&service) => kinds.push("modified"),
            WatchEvent::Deleted(service) if name(&service) => {
                kinds.push("deleted");
                break;
            }
            _ => {}
        }
    }
    assert_eq!(kinds, ["added", "modified", "modified", "deleted"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_its_effect_behind() {
    let sim = Sim::default();
    let api: Api<Service> = Api::namespaced(client(&sim), "default");
    sim.inject(Fault::on("POST", "/services").once().lose_answer());
    let web: Service = serde_json::from_value(service("web")).unwrap();
    assert!(api.create(&PostParams::default(), &web).await.is_err());
    match api.create(&PostParams::default(), &web).await {
        Err(kube::Error::Api(status)) => assert!(status.is_already_exists()),
        other => panic!("it exists already, not {other:?}"),
    }
    let requests = sim.requests_where(RequestRecord::is_write);
    assert_eq!(requests.iter().map(|request| request.status).collect::<Vec<_>>(), [None, Some(409)]);
    assert_eq!(requests[0].json()["metadata"]["name"], "web");
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

#[tokio::test(start_paused = true)]
async fn reviews_answer_who_may_do_what() {
    let sim = Sim::default();
    sim.add_token("secret", User::named("reader"));
    sim.set_authorizer(|user, wanted| user.name == "reader" && wanted.path == "/metrics");
    let tokens: Api<TokenReview> = Api::all(client(&sim));
    let review = |token: &str| -> TokenReview {
        serde_json::from_value(json!({"metadata": {}, "spec": {"token": token}})).unwrap()
    };
    let known = tokens.create(&PostParams::default(), &review("secret")).await.unwrap().status.unwrap();
    assert_eq!(known.authenticated, Some(true));
    assert_eq!(known.user.unwrap().username.as_deref(), Some("reader"));
    let unknown = tokens.create(&PostParams::default(), &review("guessed")).await.unwrap().status.unwrap();
    assert_eq!(unknown.authenticated, None);
    let access: Api<SubjectAccessReview> = Api::all(client(&sim));
    for (path, allowed) in [("/metrics", true), ("/configz", false)] {
        let question = json!({"metadata": {}, "spec": {"user": "reader",
            "nonResourceAttributes": {"path": path, "verb": "get"}}});
        let question: SubjectAccessReview = serde_json::from_value(question).unwrap();
        let answer = access.create(&PostParams::default(), &question).await.unwrap();
        assert_eq!(answer.status.unwrap().allowed, allowed, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_can_hang_and_be_slow() {
    let sim = Sim::default();
    let api: Api<Service> = Api::namespaced(client(&sim), "default");
    sim.inject(Fault::on("GET", "/services/kubernetes").once().hang());
    sim.inject(Fault::on("GET", "/services/kubernetes").delay(Duration::from_secs(30)));
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, api.get("kubernetes")).await.is_err());
    let start = tokio::time::Instant::now();
    api.get("kubernetes").await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(30));
}
