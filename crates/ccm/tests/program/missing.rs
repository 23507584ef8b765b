//! Load balancers that cannot be found may be in another project or region: nothing is created in their place on a guess.

use std::time::Duration;

use http::Method;
use openstack_ccm_kube_sim::{ApiVersion, Fault as KubernetesFault};
use openstack_ccm_openstack_sim::{Fault as CloudFault, Sim as Cloud};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{INTERNAL, annotated, copy, id};
use crate::support::{ANNOTATION, World, lb_name, service};

const HOUR: Duration = Duration::from_secs(3600);

fn held(world: &World) -> String {
    let metrics = world.metrics();
    let name = "openstack_ccm_services_held{reason=\"load_balancer_missing\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the metric").to_owned()
}

/// What a Service says of its load balancer.
fn says(world: &World, name: &str) -> (Value, Value, Vec<String>) {
    let annotations = world.service(name)["metadata"]["annotations"].clone();
    let key = |key: &str| annotations[format!("{ANNOTATION}{key}")].clone();
    (key("load-balancer-id"), key("load-balancer-address"), world.ingress(name))
}

fn all(world: &World, count: usize) -> Vec<(Value, Value, Vec<String>)> {
    (0..count).map(|number| says(world, &format!("web-{number}"))).collect()
}

/// Services `web-0` and so on, all served; then the program starts over in another region, which has a network of the same
/// kind. Answers the first region.
async fn in_another_region(count: usize, change: impl Fn() -> Value, cloud_conf: &str) -> (World, Cloud) {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    for number in 0..count {
        world.create(&service(&format!("web-{number}"), change()));
    }
    for number in 0..count {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    world.stop().await;
    world.take_calls();
    let other = Cloud::builder().nodes(2).token_lifetime(Duration::from_secs(1 << 30)).build();
    // Simulators count their ids: those that are made from here on are others than those in the first region.
    (0..500).for_each(|number| drop(other.add_octavia_flavor(&format!("flavor-{number}"))));
    let first = std::mem::replace(&mut world.cloud, other);
    world.settings.cloud_conf = cloud_conf.to_owned();
    (world, first)
}

/// A floating IP cannot show where an internal Service was.
fn internal() -> Value {
    json!({"metadata": {"annotations": {INTERNAL: "true"}}})
}

fn external() -> Value {
    json!({})
}

#[rstest]
#[case::all_of_several(4, external)]
#[case::two(2, internal)]
#[case::the_only_one(1, internal)]
#[case::the_only_one_with_a_floating_ip(1, external)]
#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_another_region(#[case] count: usize, #[case] change: fn() -> Value) {
    let (mut world, first) = in_another_region(count, change, "").await;
    let before = all(&world, count);
    world.start().await;
    world.create(&service("new", json!({})));
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(all(&world, count), before);
    assert_eq!(held(&world), (count + 1).to_string());
    for name in ["web-0", "new"] {
        let mut warnings = world.warnings(name);
        warnings.retain(|warning| warning.contains("SyncLoadBalancerFailed"));
        assert_eq!(warnings.len(), 1, "reported once: {warnings:?}");
        for part in ["cannot be found", "no load balancer is created", "recreate-missing=true"] {
            assert!(warnings[0].contains(part), "{warnings:?}");
        }
    }
    // Back in the first one nothing has happened.
    world.stop().await;
    world.cloud = first;
    world.delete("new");
    world.start_to_rest().await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!((all(&world, count), held(&world)), (before, "0".to_owned()));
}

/// What was never published is as good as none: it waits where a first one waits, and nowhere else.
#[rstest]
#[case::beside_one_that_is_published(1, false)]
#[case::alone(0, true)]
#[tokio::test(start_paused = true)]
async fn one_that_was_not_published_yet_is_created_again_where_a_first_one_would_be(
    #[case] published: usize,
    #[case] is_created: bool,
) {
    let (mut world, first) = in_another_region(published, internal, "").await;
    let second = std::mem::replace(&mut world.cloud, first);
    world.start().await;
    world.create(&service("late", internal()));
    world.until("Octavia has accepted it", |world| says(world, "late").0.is_string()).await;
    world.stop().await;
    assert_eq!(says(&world, "late").2, Vec::<String>::new());
    world.cloud = second;
    world.take_cloud_writes();
    world.start().await;
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.cloud.load_balancer(&lb_name("late")).is_some(), is_created);
    assert_eq!(world.cloud.load_balancers().len(), usize::from(is_created));
}

#[tokio::test(start_paused = true)]
async fn who_removes_the_id_says_that_the_load_balancer_is_gone() {
    let (mut world, _first) = in_another_region(3, external, "").await;
    let before = all(&world, 3);
    world.start().await;
    tokio::time::sleep(HOUR).await;
    world.annotate("web-1", &format!("{ANNOTATION}load-balancer-id"), None);
    world.until("it is recreated", |world| world.cloud.load_balancer(&lb_name("web-1")).is_some()).await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.cloud.load_balancers().len(), 1, "the others were not given up");
    let after = all(&world, 3);
    assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
    assert_ne!(after[1], before[1]);
    assert_eq!(held(&world), "2");
}

/// What was made in the wrong region because somebody did what a message says does not show that it is the right one.
#[tokio::test(start_paused = true)]
async fn who_removes_the_id_says_nothing_about_the_load_balancer_of_another_service() {
    let (mut world, _first) = in_another_region(2, internal, "").await;
    let before = all(&world, 2);
    world.start().await;
    tokio::time::sleep(HOUR).await;
    world.annotate("web-1", &format!("{ANNOTATION}load-balancer-id"), None);
    world.until("it is recreated", |world| world.cloud.load_balancer(&lb_name("web-1")).is_some()).await;
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!((&all(&world, 2)[0], &*held(&world)), (&before[0], "1"));
}

/// A Service that says it was served by a load balancer with this id.
fn forged(name: &str, id: &str) -> Value {
    let mut forged = service(name, json!({}));
    for (key, value) in
        [("load-balancer-id", id), ("owned-load-balancer-id", id), ("load-balancer-address", "198.18.0.99")]
    {
        forged["metadata"]["annotations"][format!("{ANNOTATION}{key}")] = json!(value);
    }
    forged["spec"]["ports"] = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    forged
}

/// As a tenant writes them, or a tool that restores a namespace from another cluster.
#[tokio::test(start_paused = true)]
async fn ids_that_users_write_stop_no_other_service() {
    let world = World::started().await;
    for number in 0..3 {
        let id = format!("5f0c0e5e-0000-4000-8000-00000000000{number}");
        world.create(&forged(&format!("forged-{number}"), &id));
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.create(&service("new", json!({})));
    world.until_published("new").await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_a_user_names_does_not_show_that_this_is_the_right_region() {
    let (mut world, _first) = in_another_region(1, internal, "").await;
    let before = all(&world, 1);
    let body = json!({"loadbalancer": {"name": "any", "vip_subnet_id": world.cloud.seed().subnet_id}});
    let any = world.cloud.user().make("load-balancer", "/v2.0/lbaas/loadbalancers", &body);
    world.cloud.settle();
    world.create(&forged("forged", &id(&any["loadbalancer"])));
    for _ in 0..2 {
        world.start().await;
        tokio::time::sleep(2 * HOUR).await;
        assert_eq!(all(&world, 1), before);
        assert!(world.cloud.load_balancer(&lb_name("web-0")).is_none());
        world.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_operator_says_that_all_are_gone() {
    let (mut world, _first) = in_another_region(3, internal, "recreate-missing = true\n").await;
    world.start().await;
    world.until("all are recreated", |world| world.cloud.load_balancers().len() == 3).await;
    world.quiet().await;
    for number in 0..3 {
        let recreated = world.cloud.load_balancer(&lb_name(&format!("web-{number}"))).unwrap();
        assert_eq!(says(&world, &format!("web-{number}")).0, recreated["id"]);
    }
}

/// Credentials of another project do not see the load balancers, which Octavia says by 403.
#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_another_project() {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    for number in 0..3 {
        world.serve(&service(&format!("web-{number}"), json!({}))).await;
    }
    let before = (all(&world, 3), world.cloud_state());
    world.stop().await;
    world.settings.user = "stranger";
    world.start().await;
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!((all(&world, 3), world.cloud_state()), before);
}

/// Deleted by hand while nobody looks, from a project that is the right one beyond doubt.
#[rstest]
#[case::one_of_three(3, internal)]
#[case::the_only_one_leaves_its_floating_ip(1, external)]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_somebody_deleted_is_recreated_after_a_restart(
    #[case] count: usize,
    #[case] change: fn() -> Value,
) {
    let (mut world, first) = in_another_region(count, change, "").await;
    world.cloud = first;
    let before = all(&world, count);
    let path = |name: &str| {
        format!(
            "/v2.0/lbaas/loadbalancers/{}?cascade=true",
            id(&world.cloud.load_balancer(&lb_name(name)).unwrap())
        )
    };
    assert_eq!(world.cloud.user().delete("load-balancer", &path("web-0")).0, 204);
    world.cloud.settle();
    world.start().await;
    world.until("it is recreated", |world| world.cloud.load_balancer(&lb_name("web-0")).is_some()).await;
    world.quiet().await;
    let after = all(&world, count);
    assert_eq!(after[1..], before[1..]);
    assert_ne!(after[0].0, before[0].0);
    assert_eq!((&after[0].1, &after[0].2), (&before[0].1, &before[0].2), "the same address");
}

/// The running program has seen it, so that there is no doubt about the project.
#[tokio::test(start_paused = true)]
async fn the_only_load_balancer_that_somebody_deletes_before_our_eyes_is_recreated() {
    let world = World::serving(&annotated(&[(INTERNAL, "true")])).await;
    let path = format!(
        "/v2.0/lbaas/loadbalancers/{}?cascade=true",
        id(&world.cloud.load_balancer(&lb_name("web")).unwrap())
    );
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
    world.cloud.settle();
    world.until("it is recreated", |world| world.cloud.load_balancer(&lb_name("web")).is_some()).await;
}

/// A replica of Octavia's database that lags does not show what was created a moment ago. Nobody who says that what cannot be
/// found is gone means that.
#[rstest]
#[case::by_default("")]
#[case::where_the_missing_are_recreated("recreate-missing = true\n")]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_octavia_accepted_and_does_not_show_is_not_created_twice(
    #[case] cloud_conf: &str,
) {
    let world = World::configured(cloud_conf).await;
    let hidden = |path: &str| CloudFault::new().service("load-balancer").method(Method::GET).path(path);
    let faults = world.cloud.faults();
    faults.add(hidden(r"/loadbalancers/").answer(404, json!({"faultstring": "not found"})));
    faults.add(hidden(r"/loadbalancers(\?|$)").answer(200, json!({"loadbalancers": []})));
    world.create(&service("web", json!({})));
    tokio::time::sleep(Duration::from_secs(500)).await;
    let warnings = world.warnings("web");
    assert!(
        warnings.iter().any(|warning| warning.contains("but does not show the load balancer yet")),
        "{warnings:?}"
    );
    assert_eq!(world.cloud.load_balancers().len(), 1);
    world.cloud.faults().clear();
    world.until_served("web").await;
    let created = world.take_cloud_writes().into_iter().filter(|write| write == "POST loadbalancers");
    assert_eq!(created.count(), 1);
}

/// One that never appears, for example because Octavia's database was restored, is created again in the end.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_octavia_accepted_and_never_shows_is_created_again_in_the_end() {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    let answer = json!({"loadbalancer": {
        "id": "5f0c0e5e-0000-4000-8000-000000000001", "name": lb_name("web"), "provisioning_status": "PENDING_CREATE",
        "operating_status": "OFFLINE", "vip_address": "10.0.0.77",
    }});
    let lost = CloudFault::new().service("load-balancer").method(Method::POST).path("/loadbalancers$");
    world.cloud.faults().add(lost.once().answer(201, answer));
    world.create(&service("web", json!({})));
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert_eq!(world.cloud.load_balancers().len(), 0);
    world.until_published("web").await;
}

/// An older backup of the cluster is restored while the cloud shows nothing: what was made for the Service was never there, as far
/// as can be known, and is made once more. Clients may know both addresses.
#[tokio::test(start_paused = true)]
async fn what_cluster_and_cloud_had_both_forgotten_is_kept_when_it_is_there_again() {
    let mut world = World::new(ApiVersion::V1_36);
    world.create(&service("web", external()));
    let backup = world.kube.backup();
    world.start().await;
    world.until_served("web").await;
    world.stop().await;
    let (first, published) = (world.cloud.load_balancer(&lb_name("web")).unwrap(), world.ingress("web"));
    world.kube.restore(&backup);
    for (service, path, root) in
        [("load-balancer", "lbaas/", "loadbalancers"), ("network", "", "floatingips")]
    {
        let list = CloudFault::new().service(service).method(Method::GET);
        world.cloud.faults().add(list.path(&format!("/{path}{root}(\\?|$)")).answer(200, json!({root: []})));
    }
    world.start().await;
    world.until_served("web").await;
    assert_ne!(world.ingress("web"), published);
    world.stop().await;
    world.cloud.faults().clear();
    world.start().await;
    tokio::time::sleep(HOUR).await;
    let is_first = |one: &Value| id(one) == id(&first);
    let serves = |one: &Value| is_first(one) && one["provisioning_status"] == "ACTIVE";
    assert!(world.cloud.load_balancers().iter().any(serves));
    assert_eq!(world.cloud.floating_ips().len(), 2);
    let mut warnings = world.warnings("web");
    warnings.retain(|warning| warning.contains("LoadBalancerDuplicateKept"));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    // The way back that the warning names, and who deletes the Service asks for everything to go.
    world.annotate("web", "load-balancer-id", first["id"].as_str());
    world.until("it is published as before", |world| world.ingress("web") == published).await;
    world.delete("web");
    world.until("all are gone", |world| world.cloud.load_balancers().is_empty()).await;
}

/// Several Services look at once, so that one list serves them all. What was listed before a creation was sent does not show what
/// became of that.
#[rstest]
#[case::the_answer_is_lost(Method::POST, "lbaas/loadbalancers$")]
#[case::its_id_and_its_floating_ip_cannot_be_noted(Method::PUT, "floatingips/[^/]+/tags$")]
#[tokio::test(start_paused = true)]
async fn a_creation_is_preceded_by_a_look_for_its_name_that_was_begun_after_the_last_one(
    #[case] method: Method,
    #[case] path: &str,
) {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.latency = Duration::from_millis(50);
    world.start().await;
    world.cloud.faults().add(CloudFault::new().method(method).path(path).times(3).drop_after());
    world.kube.inject(KubernetesFault::on("PATCH", "/services/").after(6).times(6).lose_answer());
    for number in 0..6 {
        world.create(&service(&format!("web-{number}"), json!({})));
    }
    for number in 0..6 {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    let created = world.take_cloud_writes().into_iter().filter(|write| write == "POST loadbalancers");
    assert_eq!(created.count(), 6);
}

/// A backup of Services, restored into a cluster elsewhere: with annotations, and no status. Their load balancers cannot be found there, or
/// belong to a project that may not be seen.
#[rstest]
#[case::another_cloud(false)]
#[case::another_project(true)]
#[tokio::test(start_paused = true)]
async fn services_restored_elsewhere_get_load_balancers(#[case] denied: bool) {
    let (old, _first) = in_another_region(2, external, "").await;
    let mut world = World::in_cloud(ApiVersion::V1_36, old.cloud.clone());
    world.settings.plans = false;
    world.settings.cluster_uid = Some("5ec0ad00-0000-4000-8000-000000000002".to_owned());
    world.start().await;
    for number in 0..2 {
        let restored = copy(&old.service(&format!("web-{number}")));
        if denied {
            let named = restored["metadata"]["annotations"][format!("{ANNOTATION}load-balancer-id")].clone();
            let path = format!("/loadbalancers/{}$", named.as_str().unwrap());
            let answer = json!({"faultstring": "Policy does not allow this request to be performed."});
            let denial = CloudFault::new().service("load-balancer").method(Method::GET).path(&path);
            world.cloud.faults().add(denial.answer(403, answer));
        }
        world.create(&restored);
    }
    for number in 0..2 {
        let name = format!("web-{number}");
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(!world.ingress(&name).is_empty(), "{:?}", world.warnings(&name));
        let warnings = world.warnings(&name);
        assert!(warnings.concat().contains("was never published in this cluster"), "{warnings:?}");
    }
    world.quiet().await;
    assert_eq!(world.cloud.load_balancers().len(), 2);
}
