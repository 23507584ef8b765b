//! What users and machines do in a run.

use std::time::Duration;

use fastrand::Rng;
use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_core::route::range::ClusterRanges;
use serde_json::{Value, json};

use crate::support::{PROXY, World, service};

/// Nodes that are there from the beginning to the end; one more is there until it vanishes.
const LASTING_NODES: usize = 4;

/// One change from outside. Names are used once, so that an edit never depends on how far the program is.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Create { service: usize, proxy: bool },
    SetProxy { service: usize, on: bool },
    SetPorts { service: usize, ports: usize },
    Retype { service: usize },
    Delete { service: usize },
    Join { node: usize },
    Vanish { node: usize },
    DropRoutes,
    AddStrayRoute { third: usize },
}

/// Edits that are made at once, and the time until the next ones.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) edits: Vec<Edit>,
    pub(super) pause: Duration,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    pub(super) steps: Vec<Step>,
}

/// What is there at a point of a story.
#[derive(Default)]
struct Draft {
    services: Vec<usize>,
    next: usize,
    vanished: bool,
}

impl Story {
    pub(super) fn of(random: &mut Rng) -> Self {
        let mut draft = Draft { next: LASTING_NODES + 1, ..Draft::default() };
        let steps = (0..random.usize(3..8)).map(|_| Step {
            edits: (0..random.usize(1..4)).map(|_| draft.edit(random)).collect(),
            pause: Duration::from_millis(random.u64(0..40_000)),
        });
        Self { steps: steps.collect() }
    }
}

impl Draft {
    fn edit(&mut self, random: &mut Rng) -> Edit {
        let some_service = random.choice(&self.services).copied();
        match (random.u8(0..12), some_service) {
            (0, Some(service)) => Edit::SetProxy { service, on: random.bool() },
            (1, Some(service)) => Edit::SetPorts { service, ports: random.usize(1..4) },
            (2, Some(service)) => {
                self.services.retain(|one| *one != service);
                Edit::Retype { service }
            }
            (3 | 4, Some(service)) => {
                self.services.retain(|one| *one != service);
                Edit::Delete { service }
            }
            // One that joins afterwards may get the address of the one that vanished.
            (5 | 6, _) if !self.vanished => Edit::Join { node: self.fresh() },
            // Many at once would be held up, and one that was never initialised is nobody's to delete.
            (7, _) if !self.vanished => {
                self.vanished = true;
                Edit::Vanish { node: LASTING_NODES }
            }
            (8, _) => Edit::DropRoutes,
            (9, _) => Edit::AddStrayRoute { third: 100 + self.fresh() },
            _ => {
                let service = self.fresh();
                self.services.push(service);
                Edit::Create { service, proxy: random.bool() }
            }
        }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }
}

/// The world of a run: all controllers, some nodes, and things of somebody else.
pub(super) struct Stage {
    pub(super) world: World,
}

impl Stage {
    pub(super) async fn new() -> Self {
        let mut world = World::without_nodes();
        world.cloud.set_delays(Duration::from_secs(2));
        // The program reads it until it can; a test that starts it does not.
        world.settings.cluster_uid = Some("c1c1c1c1-0000-4000-8000-000000000001".to_owned());
        // What a fault kept from being written comes with the next look at the cloud.
        let router = &world.cloud.seed().router_id;
        world.settings.cloud_conf = format!("drift-check-interval = 5m\n[Route]\nrouter-id = {router}\n");
        let ranges = ClusterRanges::new(vec!["10.244.0.0/16".parse().unwrap()]);
        world.settings.route = Some(RouteControllerOptions {
            period: Duration::from_secs(60),
            ..RouteControllerOptions::new(ranges)
        });
        world.settings.node = Some(NodeControllerOptions::default());
        world.settings.node_lifecycle = Some(NodeLifecycleOptions::default());
        let mut stage = Self { world };
        stage.theirs();
        (0..=LASTING_NODES).for_each(|node| stage.join(node));
        stage.world.start().await;
        for node in 0..=LASTING_NODES {
            stage.world.until_initialised(&node_name(node)).await;
        }
        stage
    }

    /// A load balancer, a floating IP and a route of somebody else.
    fn theirs(&self) {
        let (user, seed) = (self.world.cloud.user(), self.world.cloud.seed());
        let balancer = json!({"loadbalancer": {"name": "theirs", "vip_subnet_id": seed.subnet_id}});
        let made = user.post("load-balancer", "/v2.0/lbaas/loadbalancers", &balancer);
        let address =
            json!({"floatingip": {"floating_network_id": seed.public_network_id, "description": "theirs"}});
        let given = user.post("network", "/v2.0/floatingips", &address);
        assert_eq!((made.0, given.0), (201, 201));
        self.set_routes(&|routes| routes.push(route("192.168.0.0/24", "198.18.0.77")));
    }

    pub(super) fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Create { service: number, proxy } => {
                let annotations = if *proxy { json!({PROXY: "v2"}) } else { json!({}) };
                self.world
                    .create(&service(&name(*number), json!({"metadata": {"annotations": annotations}})));
            }
            Edit::SetProxy { service, on } => self.world.annotate(&name(*service), PROXY, on.then_some("v2")),
            Edit::SetPorts { service, ports } => {
                let ports: Vec<Value> = (0..*ports)
                    .map(|port| json!({"name": format!("p{port}"), "port": 8000 + port, "protocol": "TCP"}))
                    .collect();
                self.world.patch(&name(*service), &json!({"spec": {"ports": ports}}));
            }
            Edit::Retype { service } => {
                self.world.patch(&name(*service), &json!({"spec": {"type": "ClusterIP"}}));
            }
            Edit::Delete { service } => self.world.delete(&name(*service)),
            Edit::Join { node } => self.join(*node),
            Edit::Vanish { node } => {
                self.world.cloud.remove_node(&node_name(*node));
                self.world.set_ready(&node_name(*node), "Unknown");
            }
            Edit::DropRoutes => {
                self.set_routes(&|routes| {
                    routes.retain(|route| route["destination"].as_str().unwrap().starts_with("192.168."));
                });
            }
            Edit::AddStrayRoute { third } => {
                self.set_routes(&|routes| routes.push(route(&format!("10.244.{third}.0/24"), "198.18.0.78")));
            }
        }
    }

    pub(super) fn delete_services(&self) {
        for service in self.world.kube.list("services", "default").unwrap() {
            let name = service["metadata"]["name"].as_str().unwrap();
            if name != "kubernetes" {
                self.world.delete(name);
            }
        }
    }

    fn join(&self, node: usize) {
        let range = format!("10.244.{node}.0/24");
        self.world.cloud.add_node(&node_name(node));
        self.world.register_with(&node_name(node), &json!({"podCIDR": range, "podCIDRs": [range]}));
    }

    fn set_routes(&self, change: &dyn Fn(&mut Vec<Value>)) {
        let mut routes = self.world.cloud.routers()[0]["routes"].as_array().unwrap().clone();
        change(&mut routes);
        let path = format!("/v2.0/routers/{}", self.world.cloud.seed().router_id);
        let (status, answer) =
            self.world.cloud.user().put("network", &path, &json!({"router": {"routes": routes}}));
        assert_eq!(status, 200, "{answer}");
    }
}

fn route(destination: &str, next_hop: &str) -> Value {
    json!({"destination": destination, "nexthop": next_hop})
}

fn name(service: usize) -> String {
    format!("web-{service}")
}

fn node_name(node: usize) -> String {
    format!("node-{node}")
}
