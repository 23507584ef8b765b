//! Each part, in each way in which a cloud can lack it: a Service is published, follows nodes, changes and goes, and nothing of
//! anybody else does.

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, OddCloud, Rewrite};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::floating_ip;
use crate::refused::{leads, on_port_80};
use crate::support::{World, service};

const OCTAVIA: &str = "load-balancer";
const NEUTRON: &str = "network";

/// A world that needs every part, not started yet.
fn needy() -> World {
    let mut world = World::new(ApiVersion::V1_36);
    // A plan learns what a cloud lacks when it is carried out.
    world.settings.plans = false;
    let network = &world.cloud.seed().public_network_id;
    world.settings.cloud_conf =
        format!("manage-security-groups = true\nlb-provider =\nfloating-network-id = {network}");
    world
}

/// What a stranger has in the same project.
struct Strangers(Vec<Value>);

impl Strangers {
    fn settle(world: &World) -> Self {
        let user = world.cloud.user();
        let body = json!({"loadbalancer": {"name": "mine", "vip_subnet_id": world.cloud.seed().subnet_id}});
        let made = user.make(OCTAVIA, "/v2.0/lbaas/loadbalancers", &body);
        world.cloud.settle();
        let listener = json!({"listener": {"name": "mine", "protocol": "TCP", "protocol_port": 9000,
            "loadbalancer_id": made["loadbalancer"]["id"]}});
        assert_eq!(user.post(OCTAVIA, "/v2.0/lbaas/listeners", &listener).0, 201);
        world.cloud.settle();
        floating_ip(&world.cloud, "198.19.0.77", "of a stranger");
        Self(Self::now(world))
    }

    fn now(world: &World) -> Vec<Value> {
        [world.cloud.load_balancers(), world.cloud.listeners(), world.cloud.floating_ips()].concat()
    }
}

/// A Service from its beginning to its end, beside another one. Answers how many floating IPs are left in the project: who says
/// nowhere whose they are cannot have them deleted.
async fn lives(mut world: World) -> usize {
    let strangers = Strangers::settle(&world);
    world.start().await;
    let other = json!([{"name": "http", "port": 90, "protocol": "TCP", "nodePort": 30090}]);
    world.create(&service("other", json!({"spec": {"ports": other}})));
    world.create(&on_port_80());
    world.until_published("web").await;
    world.until_published("other").await;
    world.until("all nodes are members", |world| leads(world, &[80, 90], 2)).await;
    let published = world.ingress("other");
    world.add_node("node-3", "v1.36.0");
    world.until("the new node is a member", |world| leads(world, &[80, 90], 3)).await;
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
        {"name": "more", "port": 81, "protocol": "TCP", "nodePort": 30081}]);
    world.patch("web", &json!({"spec": {"ports": ports, "sessionAffinity": "ClientIP"}}));
    world.until("the new port is open", |world| leads(world, &[80, 81, 90], 3)).await;
    world.quiet_unplanned().await;
    world.restart().await;
    world.quiet_unplanned().await;
    assert!(leads(&world, &[80, 81, 90], 3), "a restart takes nothing away: {}", world.state());
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.until("the node that went is no member", |world| leads(world, &[80, 81, 90], 2)).await;
    world.quiet_unplanned().await;
    world.release("web").await;
    world.quiet_unplanned().await;
    assert_eq!(world.ingress("other"), published);
    assert!(leads(&world, &[90], 2), "{}", world.state());
    world.release("other").await;
    world.quiet_unplanned().await;
    let left: Vec<Value> = Strangers::now(&world);
    assert!(strangers.0.iter().all(|one| left.contains(one)), "{left:#?}");
    let others = left.into_iter().filter(|one| !strangers.0.contains(one));
    let others: Vec<Value> = others.collect();
    assert!(others.iter().all(|one| one["port_id"].is_null() && one["description"] == ""), "{others:#?}");
    others.len()
}

/// How a cloud lacks something.
enum How {
    /// Requests with this method, path and text in their body are refused: by Neutron or Octavia, with status and text.
    Refuses(&'static str, Method, &'static str, &'static str, u16, &'static str),
    Rewrites(Rewrite),
}
use How::{Refuses, Rewrites};

const fn ignores(service: &'static str, path: &'static str, names: &'static [&'static str]) -> How {
    Rewrites(Rewrite::IgnoresFilters { service, path, names })
}

const fn hides(service: &'static str, place: &'static str) -> How {
    Rewrites(Rewrite::Hides { service, place })
}

const FORBIDDEN: &str = "Policy does not allow this request to be performed.";
const NO_TAG: &str = "['tags'] is invalid attribute for filtering";
const NO_DESCRIPTION: &str = "['description'] is invalid attribute for filtering";
const NO_FILTER: &str = "One or more arguments are either duplicate or invalid";
const TAGS_PATH: &str = "/floatingips/[^/]+/tags$";

#[rstest]
#[case::tags_of_floating_ips_written(vec![Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN)])]
#[case::tags_of_floating_ips_filtered(vec![Refuses(NEUTRON, Method::GET, r"/floatingips\?.*tags=", "", 400, NO_TAG)])]
#[case::tags_of_floating_ips_ignored(vec![ignores(NEUTRON, "/floatingips", &["tags"])])]
#[case::tags_of_floating_ips_absent(vec![hides(NEUTRON, "floatingip.tags"), hides(NEUTRON, "floatingips[].tags")])]
#[case::tags_of_floating_ips_written_and_filtered(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 404, "The resource could not be found."),
    Refuses(NEUTRON, Method::GET, r"/floatingips\?.*tags=", "", 400, NO_TAG),
])]
#[case::descriptions_written(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN),
    Refuses(NEUTRON, Method::PUT, "/floatingips/[^/]+$", "\"description\":", 400, "Unrecognized attribute(s) 'description'"),
])]
#[case::descriptions_created(vec![
    Refuses(NEUTRON, Method::POST, "/floatingips$", "\"description\":", 400, "Unrecognized attribute(s) 'description'"),
])]
#[case::descriptions_filtered(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN),
    Refuses(NEUTRON, Method::GET, r"/floatingips\?.*description=", "", 400, NO_DESCRIPTION),
])]
#[case::descriptions_ignored(vec![
    Refuses(NEUTRON, Method::PUT, TAGS_PATH, "", 403, FORBIDDEN),
    ignores(NEUTRON, "/floatingips", &["description"]),
])]
#[case::descriptions_absent(vec![hides(NEUTRON, "floatingip.description"), hides(NEUTRON, "floatingips[].description")])]
#[case::tags_of_load_balancers_written(vec![
    Refuses(OCTAVIA, Method::POST, "/loadbalancers$", "\"tags\":", 400, "Unknown attribute for argument load_balancer.loadbalancer: tags"),
    Refuses(OCTAVIA, Method::POST, "/listeners$", "\"tags\":", 400, "Unknown attribute for argument listener_.listener: tags"),
    Refuses(OCTAVIA, Method::POST, "/pools$", "\"tags\":", 400, "Unknown attribute for argument pool_.pool: tags"),
])]
#[case::tags_of_load_balancers_filtered(vec![Refuses(OCTAVIA, Method::GET, r"\?.*tags=", "", 400, NO_FILTER)])]
#[case::tags_of_load_balancers_ignored(vec![ignores(OCTAVIA, "/loadbalancers", &["tags"])])]
#[case::tags_of_load_balancers_absent(vec![hides(OCTAVIA, "loadbalancer.tags"), hides(OCTAVIA, "loadbalancers[].tags"),
    hides(OCTAVIA, "listener.tags"), hides(OCTAVIA, "listeners[].tags"), hides(OCTAVIA, "pool.tags"), hides(OCTAVIA, "pools[].tags")])]
#[case::versions_read(vec![Refuses(OCTAVIA, Method::GET, "^/$", "", 403, FORBIDDEN)])]
#[case::status_tree_read(vec![Refuses(OCTAVIA, Method::GET, "/status$", "", 403, FORBIDDEN)])]
#[case::additive_batches_written(vec![Refuses(OCTAVIA, Method::PUT, "additive_only", "", 400, "Unknown argument: \"additive_only\"")])]
#[case::networks_by_id_read(vec![Refuses(NEUTRON, Method::GET, "^/v2.0/networks/[^/]+$", "", 404, "The resource could not be found.")])]
#[case::networks_filtered(vec![Refuses(NEUTRON, Method::GET, r"/networks\?", "", 400, "['router:external', 'id'] is invalid attribute for filtering")])]
#[case::networks_ignored(vec![ignores(NEUTRON, "/networks", &[]), ignores(NEUTRON, "/subnets", &[])])]
#[case::security_groups_written(vec![Refuses(NEUTRON, Method::POST, "/security-groups$", "", 403, FORBIDDEN)])]
#[case::security_groups_tagged(vec![Refuses(NEUTRON, Method::PUT, "/security-groups/[^/]+/tags$", "", 404, "The resource could not be found.")])]
#[case::security_groups_read(vec![Refuses(NEUTRON, Method::GET, "/security-groups", "", 404, "The resource could not be found.")])]
#[case::security_groups_filtered(vec![Refuses(NEUTRON, Method::GET, r"/security-groups\?", "", 400, "['name', 'project_id'] is invalid attribute for filtering")])]
#[case::security_groups_ignored(vec![ignores(NEUTRON, "/security-groups", &[]), ignores(NEUTRON, "/ports", &[])])]
#[case::security_groups_absent(vec![
    Refuses(NEUTRON, Method::GET, "/security-groups", "", 404, "The resource could not be found."),
    hides(NEUTRON, "ports[].security_groups"), hides(NEUTRON, "port.security_groups")])]
#[case::providers_read(vec![Refuses(OCTAVIA, Method::GET, "/providers$", "", 403, FORBIDDEN)])]
#[case::quotas_read(vec![Refuses(OCTAVIA, Method::GET, "/quotas/", "", 403, FORBIDDEN)])]
#[case::load_balancers_filtered(vec![Refuses(OCTAVIA, Method::GET, r"/loadbalancers\?.*(name|tags|vip_port_id)=", "", 400, NO_FILTER)])]
#[case::load_balancers_ignored(vec![ignores(OCTAVIA, "/loadbalancers", &[])])]
#[case::children_filtered(vec![Refuses(OCTAVIA, Method::GET, r"/(listeners|pools)\?.*loadbalancer_id=", "", 400, NO_FILTER)])]
#[case::children_ignored(vec![ignores(OCTAVIA, "/listeners", &[]), ignores(OCTAVIA, "/pools", &[])])]
#[case::ports_of_floating_ips_ignored(vec![ignores(NEUTRON, "/floatingips", &[])])]
#[tokio::test(start_paused = true)]
async fn a_service_lives_where_a_part_is_missing(#[case] ways: Vec<How>) {
    let world = needy();
    for how in ways {
        match how {
            Refuses(service, method, path, body, status, text) => {
                let answer = match service {
                    NEUTRON if status == 404 => {
                        json!({"NeutronError": {"type": "HTTPNotFound", "message": text, "detail": ""}})
                    }
                    NEUTRON if status == 403 => {
                        json!({"NeutronError": {"type": "PolicyNotAuthorized", "message": text, "detail": ""}})
                    }
                    NEUTRON => {
                        json!({"NeutronError": {"type": "HTTPBadRequest", "message": text, "detail": ""}})
                    }
                    _ => json!({"faultcode": "Client", "faultstring": text, "debuginfo": null}),
                };
                let refused = Fault::new().service(service).method(method).path(path).with_body(body);
                world.cloud.faults().add(refused.answer(status, answer));
            }
            Rewrites(rule) => world.cloud.rewrite(rule),
        }
    }
    assert_eq!(lives(world).await, 0);
}

#[rstest]
#[case(0)]
#[case(1)]
#[case(2)]
#[case(3)]
#[case(4)]
#[case(5)]
#[case(6)]
#[case(7)]
#[case(8)]
#[case(9)]
#[tokio::test(start_paused = true)]
async fn a_service_lives_in_an_odd_cloud(#[case] number: usize) {
    let world = needy();
    let odd = OddCloud::ALL[number];
    world.cloud.become_odd(odd);
    let has_no_marks = odd == OddCloud::NeutronWithoutDescriptions;
    assert_eq!(lives(world).await, if has_no_marks { 2 } else { 0 });
}
