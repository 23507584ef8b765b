//! What is left when the program dies over a Service that then goes: `orphans` names exactly that, and can delete it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_sim::OperationKind;
use openstack_ccm_tools::orphans::delete::{chosen, delete, delete_all};
use openstack_ccm_tools::orphans::inventory::{Inventory, Owners};
use openstack_ccm_tools::orphans::judge::{Orphan, Question, orphans};
use serde_json::{Value, json};

use crate::contract::setup::{as_occm_leaves_it, cluster_uid, configured, id};
use crate::support::line::cloud;
use crate::support::{PROXY, Stop, World, lb_name, service};

fn openstack(world: &World) -> OpenStack {
    let mut openstack = OpenStack::new(Client::over(cloud(&world.cloud, "demo")));
    openstack.project_id = Some(world.cloud.seed().project_id.clone());
    openstack
}

async fn find(world: &World) -> Vec<Orphan> {
    find_at(world, Timestamp::now()).await
}

async fn find_at(world: &World, now: Timestamp) -> Vec<Orphan> {
    let inventory = Inventory::read(&openstack(world), Some("c1")).await.unwrap();
    let owners = Owners::of(kube::Client::new(world.kube.service(), "default")).await.unwrap();
    let cluster = ClusterIdentity { name: "c1".to_owned(), uid: cluster_uid(world) };
    // The group that was made and not yet tagged is known by its name alone.
    let question = Question { cluster, occm_names: true, older_than: Duration::ZERO, now };
    orphans(&inventory, &owners, &question)
}

/// Ids of all that was made for Services.
fn left(world: &World) -> BTreeSet<String> {
    let groups = world.cloud.security_groups().into_iter();
    let groups = groups.filter(|group| group["name"].as_str().is_some_and(|name| name.starts_with("lb-sg-")));
    let all = world.cloud.load_balancers().into_iter().chain(world.cloud.floating_ips()).chain(groups);
    all.map(|object| object["id"].as_str().unwrap().to_owned()).collect()
}

/// The Service goes although nobody took its load balancer away: somebody removed the finalizer.
fn force_away(world: &World, name: &str) {
    world.patch(name, &json!({"metadata": {"finalizers": Value::Null}}));
    world.delete(name);
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_call_what_is_left_is_named_and_can_be_deleted() {
    for number in 0.. {
        let mut world = World::new(ApiVersion::V1_36);
        world.settings.cloud_conf = "manage-security-groups = true\n".to_owned();
        world.create(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}})));
        world.start_until(Some(Stop::After(number))).await;
        let killed = !world.survives().await;
        world.kill().await;
        world.cloud.settle();
        assert!(find(&world).await.is_empty(), "nothing is orphaned while the Service is there");
        force_away(&world, "web");
        let found = find(&world).await;
        let ids: Vec<String> = found.iter().map(|one| one.id.clone()).collect();
        assert_eq!(
            ids.iter().cloned().collect::<BTreeSet<_>>(),
            left(&world),
            "killed after call {number}: {found:#?}"
        );
        for orphan in chosen(&found, &ids).unwrap() {
            delete(&openstack(&world), &orphan).await.unwrap();
        }
        assert_eq!(left(&world), BTreeSet::new(), "killed after call {number}");
        assert!(world.cloud.leaked_ports().is_empty());
        if !killed {
            assert!(number > 15, "only {number} calls");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_serves_is_not_named_and_cannot_be_deleted() {
    let world = World::serving(&service("web", json!({}))).await;
    let found = find(&world).await;
    assert!(found.is_empty(), "{found:#?}");
    let id = world.cloud.load_balancers()[0]["id"].as_str().unwrap().to_owned();
    let refusal = chosen(&found, &[id]).unwrap_err().to_string();
    assert!(refusal.contains("is not orphaned"), "{refusal}");
}

/// The provider ovn refuses a whole load balancer, and leaves the port of its VIP, which has another owner than those of amphora.
#[tokio::test(start_paused = true)]
async fn the_port_that_a_refusal_of_ovn_leaves_is_named() {
    let world = configured(|world| {
        world.cloud.set_default_octavia_provider("ovn");
        "lb-provider =\n".to_owned()
    })
    .await;
    world.serve(&service("web", json!({}))).await;
    let tomorrow = Timestamp::now() + Duration::from_secs(86_400);
    let found = find_at(&world, tomorrow).await;
    let leaked: Vec<String> = world.cloud.leaked_ports().iter().map(id).collect();
    assert_eq!(leaked.len(), 1);
    let ids: Vec<String> = found.iter().map(|one| one.id.clone()).collect();
    assert_eq!(ids, leaked, "{found:#?}");
    delete(&openstack(&world), &found[0]).await.unwrap();
    assert!(world.cloud.leaked_ports().is_empty());
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}

/// Octavia takes minutes for the first, and somebody creates the Service of the second anew.
#[tokio::test(start_paused = true)]
async fn what_is_taken_over_while_others_are_deleted_stays() {
    let mut world = World::started().await;
    for name in ["first", "second"] {
        world.serve(&service(name, json!({}))).await;
    }
    world.stop().await;
    for name in ["first", "second"] {
        force_away(&world, name);
    }
    let of = |name: &str| world.cloud.load_balancer(&lb_name(name)).map(|one| id(&one));
    let ids = ["first", "second"].map(|name| of(name).unwrap());
    world.cloud.set_delay(OperationKind::LoadBalancerDelete, Duration::from_secs(200));
    let openstack = openstack(&world);
    let deletion = delete_all(&openstack, &ids, async || Ok(find(&world).await), |_| Ok(()));
    let creation = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.create(&service("second", json!({})));
    };
    let (result, ()) = tokio::join!(deletion, creation);
    let error = format!("{:#}", result.unwrap_err());
    assert!(error.starts_with("only 1 of 2 were deleted: "), "{error}");
    assert_eq!((of("first"), of("second")), (None, Some(ids[1].clone())));
}

/// Every cluster has a Service of its own API server: a list without any is no list.
#[tokio::test(start_paused = true)]
async fn a_list_of_services_that_is_empty_or_fails_is_not_believed() {
    use openstack_ccm_kube_sim::Fault;
    let world = World::new(ApiVersion::V1_36);
    world.kube.delete("services", "default", "kubernetes").unwrap();
    let client = || kube::Client::new(world.kube.service(), "default");
    let error = Owners::of(client()).await.unwrap_err().to_string();
    assert!(error.contains("everything would look orphaned"), "{error}");
    world.kube.inject(Fault::on("GET", "/services").unavailable());
    assert!(Owners::of(client()).await.is_err());
}

/// Two clusters of one name in one project: what OCCM made for the other one is not this one's to delete.
#[tokio::test(start_paused = true)]
async fn what_leads_to_nodes_of_another_cluster_cannot_be_deleted() {
    let mut other = World::serving(&service("web", json!({}))).await;
    other.stop().await;
    as_occm_leaves_it(&other, "web");
    let mut world = World::in_cloud(ApiVersion::V1_36, other.cloud.clone());
    world.settings.cluster_uid = Some("5ec0ad00-0000-4000-8000-000000000002".to_owned());
    for node in ["node-1", "node-2"] {
        world.kube.delete("nodes", "", node).unwrap();
    }
    world.add_node("own-1", "v1.36.0");
    let of_load_balancer = |found: &[Orphan]| {
        let found = found.iter().find(|one| one.name == lb_name("web"));
        found.expect("it is listed").refused.clone().unwrap_or_default()
    };
    let refused = of_load_balancer(&find(&world).await);
    assert!(refused.contains("none of its members is a node of this cluster"), "{refused:?}");
    let id = id(&other.cloud.load_balancer(&lb_name("web")).unwrap());
    let error = chosen(&find(&world).await, &[id]).expect_err("it cannot be chosen").to_string();
    assert!(error.contains("none of its members is a node of this cluster"), "{error}");
    // In the cluster whose nodes they are it may be deleted.
    force_away(&other, "web");
    assert_eq!(of_load_balancer(&find(&other).await), "");
}
