//! What is planned is what is done. The other tests check it beside what they are about: before everything that they have
//! the program do, a plan is made of the same state, and its calls have to be those that follow, in order (see
//! `support/comparison.rs`). Where that is not so in a scenario of the compatibility page, a list in the repository says why.

mod stories;

use openstack_ccm_tools::plan::as_if::AsIf;
use openstack_ccm_tools::plan::changes::Changes;
use openstack_ccm_tools::plan::forecast::Forecast;
use openstack_ccm_tools::plan::journal::Call as Planned;
use serde_json::json;

use crate::cloud_faults::{REPLACE, breaks_down};
use crate::contract::setup::configured;
use crate::support::canonical::Names;
use crate::support::order::by_subject;
use crate::support::prediction;
use crate::support::{PROXY, World, service};

/// Whether the text of a plan says so.
async fn text(world: &World, as_if: AsIf) -> Vec<Forecast> {
    world.plan(false, as_if).await.iter().map(Forecast::of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_new_service_is_what_is_done() {
    let mut world = World::new(openstack_ccm_kube_sim::ApiVersion::V1_36);
    world.create(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    let prediction = world.predict().await;
    assert!(world.cloud.load_balancers().is_empty(), "a plan makes nothing");
    assert!(world.service("web")["metadata"]["finalizers"].is_null(), "a plan writes nothing");
    world.start().await;
    world.until_published("web").await;
    world.quiet_unplanned().await;
    assert_eq!(world.surprise(&prediction), None);
    assert!(prediction.planned.len() >= 5, "{:#?}", prediction.planned);
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_what_is_served_is_empty() {
    let world = World::serving(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await;
    for ahead in [false, true] {
        let items = world.plan(ahead, AsIf::default()).await;
        assert!(items.iter().all(|item| item.calls.is_empty()), "{items:#?}");
    }
    assert!(text(&world, AsIf::default()).await.iter().all(|forecast| forecast.interruptions.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_port_that_goes_interrupts_and_one_that_comes_does_not() {
    let world = World::serving(&service("web", json!({}))).await;
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "protocol": "TCP", "nodePort": 30_000 + port});
    world.patch("web", &json!({"spec": {"ports": [port("http", 80), port("more", 443)]}}));
    let forecast = text(&world, AsIf::default()).await.remove(0);
    assert_eq!(forecast.interruptions, [""; 0]);
    assert!(Changes::of(&forecast.changes).add >= 2, "{forecast:#?}");
    world.patch("web", &json!({"spec": {"ports": [port("more", 443)]}}));
    let forecast = text(&world, AsIf::default()).await.remove(0);
    assert_eq!(forecast.interruptions, ["listener 80/TCP is deleted or replaced"]);
}

/// A changed attribute has a line of its own.
#[tokio::test(start_paused = true)]
async fn a_plan_names_the_attribute_that_changes() {
    let header = |name: &str| format!("loadbalancer.openstack.org/{name}");
    let annotations = json!({"metadata": {"annotations": {header("x-forwarded-for"): "true"}}});
    let world = World::serving(&service("web", annotations)).await;
    world.annotate("web", &header("x-forwarded-proto"), Some("true"));
    let forecast = text(&world, AsIf::default()).await.remove(0);
    assert_eq!(forecast.interruptions, [""; 0]);
    let [line] = forecast.changes.as_slice() else { panic!("{forecast:#?}") };
    assert_eq!((line.fate.to_string().as_str(), line.kind.as_str()), ("~", "listener"));
    assert_eq!(
        line.to_string(),
        "insert_headers X-Forwarded-For true -> X-Forwarded-For true X-Forwarded-Proto true; \
         tags + openstack-ccm-sets=x-forwarded-proto"
    );
}

/// Before a member goes, the plan says why.
#[tokio::test(start_paused = true)]
async fn a_plan_says_why_a_member_is_removed() {
    const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
    let mut world = World::serving(&service("web", json!({}))).await;
    world.stop().await;
    let label = json!({"metadata": {"labels": {EXCLUDE: ""}}});
    world.kube.patch("nodes", "", "node-1", &label).unwrap();
    for ahead in [false, true] {
        let items = world.plan(ahead, AsIf::default()).await;
        let forecast = Forecast::of(&items[0]);
        let reason = format!("node-1: excluded by label {EXCLUDE}");
        assert_eq!(forecast.removed_members, [reason], "{forecast:#?}");
        assert_eq!(forecast.changes.len(), 1, "{forecast:#?}");
    }
}

/// The program waits for some minutes after its start, and then replaces one after the other. A plan looks beyond that.
#[tokio::test(start_paused = true)]
async fn a_plan_shows_the_load_balancers_in_error_that_will_be_replaced() {
    let world = configured(|_| REPLACE.to_owned()).await;
    let services = ["shop", "web"];
    for name in services {
        world.create(&service(name, json!({})));
        world.until_published(name).await;
    }
    world.quiet().await;
    for name in services {
        breaks_down(&world, name);
    }
    let forecasts = text(&world, AsIf::default()).await;
    let replaced: Vec<bool> =
        forecasts.iter().map(|one| one.changes.iter().any(|line| line.kind == "load balancer")).collect();
    assert_eq!(replaced, [true, true], "{forecasts:#?}");
    assert!(forecasts.iter().all(|one| !one.interruptions.is_empty()), "{forecasts:#?}");
}

/// An annotation can be tried before it is written.
#[tokio::test(start_paused = true)]
async fn a_plan_as_if_an_annotation_were_there_is_what_follows_when_it_is() {
    let world = World::serving(&service("web", json!({}))).await;
    let annotation = (PROXY.to_owned(), Some("v2".to_owned()));
    let as_if = AsIf { annotations: vec![annotation], ..AsIf::default() };
    let items = world.plan(false, as_if).await;
    let lines: Vec<String> =
        Forecast::of(&items[0]).changes.iter().map(|line| format!("{} {}", line.fate, line.kind)).collect();
    assert!(lines.iter().any(|line| line.ends_with("pool")), "{lines:?}");
    assert!(world.annotation("web", PROXY).is_none());
    let planned: Vec<&Planned> = items[0].calls.iter().collect();
    let names = Names::before(&world.cloud).with_planned(&planned);
    let planned = prediction::planned(&items[0]);
    world.annotate("web", PROXY, Some("v2"));
    let prediction = world.predict().await;
    assert_eq!(
        by_subject(&names, &planned, false),
        by_subject(&prediction.names, &prediction.planned, false)
    );
}
