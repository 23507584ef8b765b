//! A load balancer changes its owner only by what the operator wrote in cloud.conf. Two clusters in one project: whatever
//! annotations a Service of the one carries, what the other has made is neither renamed nor tagged, used or deleted.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{
    annotated, as_occm_leaves_it, copy, id, load_balancer, member_names, only_floating_ip, put,
};
use crate::support::{ADDRESS, ANNOTATION, World, lb_name, service};

const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
const OWNED: &str = "loadbalancer.openstack.org/owned-load-balancer-id";
const CLOSED: &str = "[LoadBalancerNamespace \"*\"]\nallowed-load-balancers=\n";
const OTHER_UID: &str = "5ec0ad00-0000-4000-8000-000000000002";

/// Who serves the other cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    ThisProgram,
    Occm,
    /// OCCM that says which cluster it is.
    OccmWithId,
    /// This program since a moment ago: only the load balancer is tagged.
    SinceAMoment,
}

/// A cluster of this name with a Service `web` that is served.
async fn other_cluster(name: &str, by: By) -> World {
    let mut other = World::new(ApiVersion::V1_36);
    other.settings.cluster_name = name.to_owned();
    other.start().await;
    other.serve(&service("web", json!({}))).await;
    other.stop().await;
    if by != By::ThisProgram {
        as_occm_leaves_it(&other, "web");
    }
    let identity = match by {
        By::OccmWithId => Some(format!("kube_cluster_id_{OTHER_UID}0")),
        By::SinceAMoment => Some(format!("openstack-ccm-cluster={OTHER_UID}0")),
        By::ThisProgram | By::Occm => None,
    };
    if let Some(identity) = identity {
        let lb = other.cloud.load_balancers().remove(0);
        let mut tags = lb["tags"].as_array().unwrap().clone();
        tags.push(json!(identity));
        let path = format!("/v2.0/lbaas/loadbalancers/{}", id(&lb));
        put(&other, &path, &json!({"loadbalancer": {"tags": tags}}));
    }
    other
}

/// The cluster `c1` in the same project, with nothing in it and the program at work.
async fn beside(other: &World, cloud_conf: &str) -> World {
    let mut world = World::in_cloud(ApiVersion::V1_36, other.cloud.clone());
    world.settings.cluster_uid = Some(OTHER_UID.to_owned());
    world.settings.cloud_conf = cloud_conf.to_owned();
    // Simulated clusters give the same uids; real ones do not.
    world.create(&service("placeholder", json!({"spec": {"type": "ClusterIP"}})));
    world.start().await;
    world
}

/// Nothing is written in the cloud from the creation of the Service to its end, and one Warning says what to do.
async fn assert_refused(world: &World, made: &Value, message: &str) {
    let before = world.cloud_state();
    world.take_calls();
    world.create(made);
    world.until_warned_at_rest("web", message).await;
    assert!(world.ingress("web").is_empty());
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    world.release("web").await;
    world.quiet().await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(world.cloud_state(), before);
}

#[rstest]
#[case::made_by_this_program("c2", By::ThisProgram)]
#[case::made_by_occm("c2", By::Occm)]
#[case::of_the_same_name("c1", By::ThisProgram)]
#[case::of_the_same_name_since_a_moment("c1", By::SinceAMoment)]
#[case::of_the_same_name_made_by_occm("c1", By::OccmWithId)]
#[tokio::test(start_paused = true)]
async fn a_copy_of_a_service_never_touches_the_load_balancer_of_the_original(
    #[case] name: &str,
    #[case] by: By,
    #[values("", CLOSED)] cloud_conf: &str,
) {
    let other = other_cluster(name, by).await;
    let world = beside(&other, cloud_conf).await;
    let copied = copy(&other.service("web"));
    assert_refused(&world, &copied, "remove loadbalancer.openstack.org/load-balancer-id").await;
    if name != "c1" {
        let before = other.cloud.load_balancer("kube_service_c2_default_web").unwrap();
        let mut bare = copied;
        bare["metadata"]["annotations"] = json!({});
        world.serve(&bare).await;
        assert_eq!(other.cloud.load_balancer("kube_service_c2_default_web").unwrap(), before);
        assert_eq!(world.cloud.load_balancers().len(), 2);
    }
}

#[rstest]
#[case::as_occm_writes(ADDRESS)]
#[case::as_this_program_writes(OWNED)]
#[tokio::test(start_paused = true)]
async fn forged_annotations_take_nothing_over(#[case] output: &str, #[values("", CLOSED)] cloud_conf: &str) {
    let other = other_cluster("c2", By::Occm).await;
    let world = beside(&other, cloud_conf).await;
    let theirs = id(&other.cloud.load_balancers()[0]);
    let value = if output == OWNED { theirs.as_str() } else { "198.19.0.11" };
    let forged = annotated(&[(LB_ID, &theirs), (output, value)]);
    assert_refused(&world, &forged, "remove loadbalancer.openstack.org/load-balancer-id").await;
}

/// A load balancer that has a Service's name and nothing else of it is adopted by its annotation, where the list says so.
#[tokio::test(start_paused = true)]
async fn a_closed_list_holds_for_adoption_as_for_sharing() {
    let mut world = World::configured(CLOSED).await;
    let body =
        json!({"loadbalancer": {"name": lb_name("web"), "vip_subnet_id": world.cloud.seed().subnet_id}});
    let (_, made) = world.cloud.user().post("load-balancer", "/v2.0/lbaas/loadbalancers", &body);
    world.cloud.settle();
    let adopted = id(&made["loadbalancer"]);
    assert_refused(&world, &annotated(&[(LB_ID, &adopted)]), "allowed-load-balancers").await;
    world.stop().await;
    world.settings.cloud_conf = format!("[LoadBalancerNamespace \"*\"]\nallowed-load-balancers={adopted}\n");
    world.start().await;
    world.serve(&annotated(&[(LB_ID, &adopted)])).await;
    assert_eq!(id(&load_balancer(&world)), adopted);
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty());
}

#[rstest]
#[case::found_by_its_name(false)]
#[case::named_by_its_id(true)]
#[tokio::test(start_paused = true)]
async fn the_annotation_that_allows_sharing_takes_nothing_over(#[case] named: bool) {
    let other = other_cluster("c1", By::ThisProgram).await;
    let world = beside(&other, CLOSED).await;
    let theirs = id(&other.cloud.load_balancers()[0]);
    let mut wish = annotated(&[("allow-foreign-cluster", "true")]);
    if named {
        wish["metadata"]["annotations"][LB_ID] = json!(theirs);
    }
    assert_refused(&world, &wish, "adopt-foreign-cluster in cloud.conf").await;
}

/// Sharing with a cluster of another name stays possible, within the list, and leaves no trace when it ends.
#[tokio::test(start_paused = true)]
async fn a_guest_on_another_clusters_load_balancer_needs_annotation_and_list() {
    let other = other_cluster("c2", By::ThisProgram).await;
    let theirs = id(&other.cloud.load_balancers()[0]);
    let mut wish = annotated(&[(LB_ID, &theirs), ("allow-foreign-cluster", "true")]);
    wish["spec"]["ports"] = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    let mut world = beside(&other, CLOSED).await;
    assert_refused(&world, &wish, "allowed-load-balancers").await;
    let before = world.cloud_state();
    world.stop().await;
    world.settings.cloud_conf = format!("[LoadBalancerNamespace \"*\"]\nallowed-load-balancers={theirs}\n");
    world.start().await;
    world.serve(&wish).await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    world.release("web").await;
    world.quiet().await;
    assert_eq!(world.cloud_state(), before);
}

/// A backup in a cluster that was rebuilt: the operator says that the old one is gone.
#[rstest]
#[case::of_the_same_name("c1", "adopt-foreign-cluster = true\n")]
#[case::of_another_name("c2", "adopt-foreign-cluster = true\nformer-cluster-names = c2\n")]
#[tokio::test(start_paused = true)]
async fn the_operators_word_takes_load_balancer_and_floating_ip_over(
    #[case] name: &str,
    #[case] cloud_conf: &str,
) {
    let other = other_cluster(name, By::ThisProgram).await;
    let (before, address) = (id(&other.cloud.load_balancers()[0]), other.ingress("web"));
    let mut world = beside(&other, cloud_conf).await;
    world.serve(&copy(&other.service("web"))).await;
    assert_eq!((id(&load_balancer(&world)), world.ingress("web")), (before, address));
    // The key is needed for the time of the move only.
    world.stop().await;
    world.settings.cloud_conf = String::new();
    world.start_to_rest().await;
    assert!(world.warnings("web").iter().all(|one| one.contains("LoadBalancerRename")));
    let cluster = json!(format!("openstack-ccm-cluster={OTHER_UID}"));
    let tags = |one: &Value| one["tags"].as_array().unwrap().clone();
    assert!(tags(&load_balancer(&world)).contains(&cluster));
    assert!(tags(&only_floating_ip(&world)).contains(&cluster));
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
}

/// The controller of a cluster that was replaced is still at work when its nodes go, as when the old machines are scaled down.
#[rstest]
#[case::a_node_goes(|world: &World| drop(world.kube.delete("nodes", "", "node-2").unwrap()))]
#[case::a_node_joins(|world: &World| world.add_node("node-3", "v1.36.0"))]
#[tokio::test(start_paused = true)]
async fn nodes_of_a_cluster_that_was_replaced_touch_no_member_of_the_new_one(#[case] change: fn(&World)) {
    let mut old = World::new(ApiVersion::V1_36);
    old.settings.plans = false;
    old.start().await;
    old.serve(&service("web", json!({}))).await;
    let mut new = World::in_cloud(ApiVersion::V1_36, old.cloud.clone());
    new.settings.plans = false;
    new.settings.cluster_uid = Some(OTHER_UID.to_owned());
    new.settings.cloud_conf = "adopt-foreign-cluster = true\n".to_owned();
    for node in ["node-1", "node-2"] {
        new.kube.delete("nodes", "", node).unwrap();
    }
    new.add_node("new-1", "v1.36.0");
    new.add_node("new-2", "v1.36.0");
    // Simulated clusters give the same uids; real ones do not.
    new.create(&service("placeholder", json!({"spec": {"type": "ClusterIP"}})));
    new.start().await;
    new.serve(&copy(&old.service("web"))).await;
    assert_eq!(member_names(&new), ["new-1", "new-2"]);
    old.take_calls();
    change(&old);
    old.until_warned_at_rest("web", "belongs to another cluster").await;
    assert_eq!(old.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(member_names(&new), ["new-1", "new-2"]);
}

/// The floating IP of a Service leads nowhere while its load balancer is recreated. One that OCCM made has no tags.
#[rstest]
#[case::tagged(true)]
#[case::made_by_occm(false)]
#[tokio::test(start_paused = true)]
async fn nobody_gets_the_floating_ip_of_another_service(#[case] is_tagged: bool) {
    let world = World::serving(&service("web2", json!({}))).await;
    let of_web2 = only_floating_ip(&world);
    let path = format!("/v2.0/floatingips/{}", id(&of_web2));
    put(&world, &path, &json!({"floatingip": {"port_id": null}}));
    if !is_tagged {
        put(&world, &format!("{path}/tags"), &json!({"tags": []}));
    }
    let of_web2 = only_floating_ip(&world);
    world.take_calls();
    let ports = json!([{"name": "http", "port": 81, "protocol": "TCP"}]);
    world.create(&service("web", json!({"spec": {"loadBalancerIP": "198.19.0.11", "ports": ports}})));
    world.until_warned_at_rest("web", "is the floating IP of").await;
    let writes = world.take_cloud_writes();
    assert!(!writes.iter().any(|write| write.contains("floatingips")), "{writes:?}");
    let after = only_floating_ip(&world);
    assert!(after["port_id"].is_null() && after["tags"] == of_web2["tags"], "{after:#}");
}

/// What its Service kept is free for any other.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_was_kept_may_be_named_by_another_service() {
    let world = World::started().await;
    let mut first = service("api", json!({}));
    first["metadata"]["annotations"] = json!({format!("{ANNOTATION}keep-floatingip"): "true"});
    world.serve(&first).await;
    world.release("api").await;
    assert_eq!(only_floating_ip(&world)["tags"], json!([]));
    world.serve(&service("web", json!({"spec": {"loadBalancerIP": "198.19.0.11"}}))).await;
    assert_eq!(only_floating_ip(&world)["port_id"], load_balancer(&world)["vip_port_id"]);
}

/// Another controller of its class releases a Service, whatever finalizer it gave it.
#[rstest]
#[case::never_served(false)]
#[case::served_until_its_class_appeared(true)]
#[tokio::test(start_paused = true)]
async fn a_service_of_another_class_is_released_only_where_it_was_served(#[case] served: bool) {
    let finalizer = "service.kubernetes.io/load-balancer-cleanup";
    let world = World::started().await;
    if served {
        world.serve(&service("web", json!({}))).await;
        // The first change is not seen alone.
        world.patch("web", &json!({"spec": {"type": "ClusterIP"}}));
        world.patch("web", &json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": "example.org/lb"}}));
        world.until("the load balancer is gone", |world| world.cloud.load_balancers().is_empty()).await;
        world
            .until("the finalizer is gone", |world| {
                world.service("web")["metadata"]["finalizers"].is_null()
                    || world.service("web")["metadata"]["finalizers"] == json!([])
            })
            .await;
        return;
    }
    // As another instance of this program leaves it, which serves the class from another cloud.
    let mut theirs = service("web", json!({"spec": {"loadBalancerClass": "example.org/lb"}}));
    theirs["metadata"]["finalizers"] = json!([finalizer]);
    theirs["metadata"]["annotations"] = json!({LB_ID: OTHER_UID, OWNED: OTHER_UID, ADDRESS: "192.0.2.1"});
    world.create(&theirs);
    world.quiet().await;
    world.delete("web");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.service("web")["metadata"]["finalizers"], json!([finalizer]));
    assert!(world.take_cloud_writes().is_empty() && world.events("web").is_empty());
}

/// An administrator's credentials would show the load balancers and floating IPs of the whole cloud.
#[tokio::test(start_paused = true)]
async fn lists_are_those_of_the_project_of_the_credentials() {
    let ranges = json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]},
        "metadata": {"annotations": {"loadbalancer.openstack.org/allow-cluster-sources": "true"}}});
    let mut world = World::serving(&service("web", ranges)).await;
    world.restart_to_rest().await;
    tokio::time::sleep(Duration::from_secs(2400)).await;
    let project = format!("project_id={}", world.cloud.seed().project_id);
    let narrow =
        ["project_id=", "id=", "port_id=", "vip_port_id=", "floating_ip_address=", "tags=openstack-ccm-"];
    let mut lists = 0;
    for call in world.cloud.log().calls() {
        let of_all = call.path.ends_with("/loadbalancers") || call.path.ends_with("/floatingips");
        if of_all && !call.is_write() {
            assert!(narrow.iter().any(|filter| call.query.contains(filter)), "{} {}", call.path, call.query);
            assert!(!call.query.contains("name=") || call.query.contains(&project), "{}", call.query);
            lists += usize::from(call.query.contains(&project));
        }
    }
    assert!(lists >= 4, "{lists}");
}

/// A Service that goes finds its load balancer by the name, and another one joins it at the same moment.
#[tokio::test(start_paused = true)]
async fn who_goes_takes_its_turn_on_a_load_balancer_that_others_use() {
    for offset in 0..24 {
        let mut world = World::configured("max-shared-lb = 4\n").await;
        world.serve(&service("web", json!({}))).await;
        let shared = id(&load_balancer(&world));
        let guest = |name: &str, port: u16| {
            let ports = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
            service(name, json!({"metadata": {"annotations": {LB_ID: shared}}, "spec": {"ports": ports}}))
        };
        world.serve(&guest("guest", 81)).await;
        world.stop().await;
        world.annotate("web", LB_ID, None);
        world.delete("web");
        world.cloud.set_delays(Duration::from_millis(1));
        world.settings.latency = Duration::from_millis(100);
        world.start().await;
        tokio::time::sleep(Duration::from_millis(100 * offset)).await;
        world.create(&guest("joins", 82));
        world.until_gone("web").await;
        world.until_served("joins").await;
        let tags = world.cloud.load_balancers()[0]["tags"].as_array().unwrap().clone();
        let users: Vec<&Value> =
            tags.iter().filter(|tag| tag.as_str().unwrap().starts_with("kube_service_")).collect();
        assert_eq!(users, [&json!(lb_name("guest")), &json!(lb_name("joins"))], "{offset}");
    }
}

const NOT_OURS: &str = "none of its members is a node of this cluster";

/// Another cluster of the same name, whose operators did not choose one either, has two nodes and a Service `web` that OCCM serves. This one
/// has two nodes of its own, and the program is not at work yet.
async fn beside_occm(cloud_conf: &str) -> (World, World) {
    let other = other_cluster("c1", By::Occm).await;
    let mut world = World::in_cloud(ApiVersion::V1_36, other.cloud.clone());
    world.settings.plans = false;
    world.settings.cluster_uid = Some(OTHER_UID.to_owned());
    world.settings.cloud_conf = cloud_conf.to_owned();
    for node in ["node-1", "node-2"] {
        world.kube.delete("nodes", "", node).unwrap();
    }
    world.add_node("own-1", "v1.36.0");
    world.add_node("own-2", "v1.36.0");
    world.create(&service("placeholder", json!({"spec": {"type": "ClusterIP"}})));
    (other, world)
}

/// Its members say whose an untagged load balancer is, whatever it is called.
#[rstest]
#[case::found_by_its_name(false)]
#[case::named_by_its_id(true)]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_leads_to_no_node_of_this_cluster_is_not_taken(
    #[case] named: bool,
    #[values("", CLOSED)] cloud_conf: &str,
) {
    let (other, mut world) = beside_occm(cloud_conf).await;
    let theirs = id(&other.cloud.load_balancers()[0]);
    world.start().await;
    let made = if named { annotated(&[(LB_ID, &theirs)]) } else { annotated(&[]) };
    assert_refused(&world, &made, NOT_OURS).await;
}

/// Who has had the address before goes on, though all its nodes were replaced.
#[rstest]
#[case::address("203.0.113.1", json!({"ip": "ADDRESS"}))]
#[case::hostname("203.0.113.1", json!({"hostname": "ADDRESS.nip.io"}))]
#[tokio::test(start_paused = true)]
async fn a_published_address_shows_whose_a_load_balancer_is(#[case] _name: &str, #[case] entry: Value) {
    let (other, mut world) = beside_occm("").await;
    let address = only_floating_ip(&other)["floating_ip_address"].as_str().unwrap().to_owned();
    world.create(&annotated(&[]));
    let entry: Value = serde_json::from_str(&entry.to_string().replace("ADDRESS", &address)).unwrap();
    let status = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
    world.kube.patch_status("services", "default", "web", &status).unwrap();
    world.start().await;
    world.until("its nodes are members", |world| member_names(world) == ["own-1", "own-2"]).await;
}

const NAME: &str = "shop.example.org";
const OTHER_ADDRESS: &str = "203.0.113.99";

/// What OCCM writes into a Service that it publishes by a name of the user's own: in the annotations, with what the other cluster's load
/// balancer has, and in the status.
fn named(world: &World, annotations: &[(&str, &str)], published: Option<&str>) {
    let there = world.cloud.load_balancers().remove(0);
    let of_floating_ip = only_floating_ip(world);
    let filled = annotations.iter().map(|(key, value)| match *value {
        "ID" => (*key, there["id"].as_str().unwrap()),
        "VIP" => (*key, there["vip_address"].as_str().unwrap()),
        "FLOATING" => (*key, of_floating_ip["floating_ip_address"].as_str().unwrap()),
        value => (*key, value),
    });
    world.create(&annotated(&filled.collect::<Vec<_>>()));
    if let Some(hostname) = published {
        let status = json!({"status": {"loadBalancer": {"ingress": [{"hostname": hostname}]}}});
        world.kube.patch_status("services", "default", "web", &status).unwrap();
    }
}

/// A status is this cluster's own. With it the annotations of the controller say what a hostname stands for.
#[rstest]
#[case::by_name(&[(LB_ID, "ID"), ("hostname", NAME)])]
#[case::by_the_floating_ip(&[(LB_ID, "ID"), (ADDRESS, "FLOATING")])]
#[case::by_the_vip(&[(LB_ID, "ID"), (ADDRESS, "VIP"), (OWNED, "ID")])]
#[tokio::test(start_paused = true)]
async fn a_name_of_its_own_with_what_the_controller_wrote_shows_whose_a_load_balancer_is(
    #[case] annotations: &[(&str, &str)],
) {
    let (_, mut world) = beside_occm("").await;
    named(&world, annotations, Some(NAME));
    world.start().await;
    world.until("its nodes are members", |world| member_names(world) == ["own-1", "own-2"]).await;
    world.quiet_unplanned().await;
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
}

/// Annotations travel with a copy, and two clusters of one name give the same names and descriptions.
#[rstest]
#[case::a_copy(&[(LB_ID, "ID"), (ADDRESS, "FLOATING"), ("hostname", NAME)], None)]
#[case::without_an_id(&[(ADDRESS, "FLOATING"), ("hostname", NAME)], Some(NAME))]
#[case::published_by_another_name(&[(LB_ID, "ID"), ("hostname", NAME)], Some("other.example.org"))]
#[case::with_another_address(&[(LB_ID, "ID"), (ADDRESS, OTHER_ADDRESS)], Some(NAME))]
#[case::of_another_load_balancer(&[(LB_ID, "ID"), (OWNED, OTHER_UID), ("hostname", NAME)], Some(NAME))]
#[case::with_its_description_alone(&[], Some(NAME))]
#[tokio::test(start_paused = true)]
async fn less_than_that_shows_nothing(
    #[case] annotations: &[(&str, &str)],
    #[case] published: Option<&str>,
    #[values("", CLOSED)] cloud_conf: &str,
) {
    let (_, mut world) = beside_occm(cloud_conf).await;
    named(&world, annotations, published);
    let before = world.cloud_state();
    world.start().await;
    world.until_warned("web", NOT_OURS).await;
    world.quiet_unplanned().await;
    world.release("web").await;
    assert_eq!(world.cloud_state(), before);
    assert!(world.take_cloud_writes().is_empty());
}

/// The operator may say so, in the list of the namespace.
#[tokio::test(start_paused = true)]
async fn the_list_of_a_namespace_lets_it_take_a_load_balancer() {
    let (other, mut world) = beside_occm("").await;
    let theirs = id(&other.cloud.load_balancers()[0]);
    world.settings.cloud_conf =
        format!("[LoadBalancerNamespace \"default\"]\nallowed-load-balancers={theirs}\n");
    world.start().await;
    world.serve(&annotated(&[(LB_ID, &theirs)])).await;
    assert_eq!(member_names(&world), ["own-1", "own-2"]);
}
