//! The world of a run, and what the edits of a story do in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_kube_sim::{ApiVersion, Sim as Kubernetes};
use serde_json::{Value, json};

use super::annotation::{ID, Setting, is_of_tags};
use super::inherited;
use super::story::{Edit, LASTING_NODES, Story};
use crate::support::{ANNOTATION, LB_ID, PROXY, World, lb_name, node, service};
use crate::watch::Watch;

/// The load balancer that a person made for all who name it.
pub(super) const SHARED: &str = "shared by hand";
/// What the names of the cluster's own load balancers begin with.
const OURS: &str = "kube_service_c1_";
/// Services that one load balancer may serve, in the stories.
const MAX_SHARED: &str = "max-shared-lb = 50\n";
/// The Services of the other cluster; copies are made of them.
pub(super) const NEIGHBOURS: usize = 2;

/// All controllers, some nodes, and things of somebody else.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(super) watch: Watch,
    /// Another cluster in the same project, whose program runs as well.
    neighbour: Option<World>,
    /// The load balancer that a person made.
    shared: String,
    flavor: String,
    /// Annotations that each Service was created with.
    created_with: BTreeMap<usize, Vec<Setting>>,
    /// Annotations that were set since, and those that OCCM passed over.
    set_since: BTreeMap<usize, BTreeSet<&'static str>>,
    /// How many load balancers there are that are not this cluster's.
    others: usize,
    /// Whether the API server once showed less than there was, or an older state.
    pub(super) restored: bool,
}

impl Stage {
    /// A stage without a past.
    pub(super) async fn new() -> Self {
        Self::of(&Story::default()).await
    }

    /// The stage on which a story is played.
    pub(crate) async fn of(story: &Story) -> Self {
        Self::with(story, "").await
    }

    /// The same with more lines in `[LoadBalancer]` of cloud.conf.
    pub(crate) async fn with(story: &Story, more: &str) -> Self {
        let mut world = World::without_nodes();
        // Stories that are planned say themselves what is compared.
        world.settings.plans = false;
        world.cloud.set_delays(Duration::from_secs(2));
        // The program reads it until it can; a test that starts it does not.
        world.settings.cluster_uid = Some("c1c1c1c1-0000-4000-8000-000000000001".to_owned());
        // What a fault kept from being written is written after the next comparison with the cloud.
        let router = &world.cloud.seed().router_id;
        world.settings.cloud_conf =
            format!("{MAX_SHARED}{more}drift-check-interval = 5m\n[Route]\nrouter-id = {router}\n");
        let ranges = ClusterRanges::new(vec!["10.244.0.0/16".parse().unwrap()]);
        world.settings.route = Some(RouteControllerOptions {
            period: Duration::from_secs(60),
            ..RouteControllerOptions::new(ranges)
        });
        world.settings.node = Some(NodeControllerOptions::default());
        world.settings.node_lifecycle = Some(NodeLifecycleOptions::default());
        let watch = Watch::over(&world.cloud);
        watch.cluster("c1", &world.kube);
        tokio::spawn(watch.clone().keep_following());
        let flavor = world.cloud.add_octavia_flavor("small");
        let mut stage = Self {
            world,
            watch,
            neighbour: None,
            shared: String::new(),
            flavor,
            created_with: BTreeMap::new(),
            set_since: BTreeMap::new(),
            others: 0,
            restored: false,
        };
        stage.theirs();
        if story.neighbour {
            stage.start_neighbour().await;
        }
        stage.others = stage.world.cloud.load_balancers().len();
        (0..=LASTING_NODES).for_each(|node| stage.join(node));
        for inherited in &story.inherited {
            inherited::plant(&stage, inherited);
            let keys = inherited.settings.iter().map(|setting| setting.key);
            stage.set_since.entry(inherited.service).or_default().extend(keys);
        }
        stage.world.start().await;
        for node in 0..=LASTING_NODES {
            stage.world.until_initialised(&node_name(node)).await;
        }
        stage
    }

    /// A load balancer, a floating IP and a route of somebody else, and a load balancer for all.
    fn theirs(&mut self) {
        let (user, seed) = (self.world.cloud.user(), self.world.cloud.seed());
        let balancer = |name: &str| json!({"loadbalancer": {"name": name, "vip_subnet_id": seed.subnet_id}});
        let path = "/v2.0/lbaas/loadbalancers";
        let made = user.post("load-balancer", path, &balancer("theirs"));
        let shared = user.post("load-balancer", path, &balancer(SHARED));
        let address =
            json!({"floatingip": {"floating_network_id": seed.public_network_id, "description": "theirs"}});
        let given = user.post("network", "/v2.0/floatingips", &address);
        assert_eq!((made.0, shared.0, given.0), (201, 201, 201));
        self.world.cloud.settle();
        let listener = json!({"listener": {"name": "by hand", "protocol": "TCP", "protocol_port": 9,
            "loadbalancer_id": shared.1["loadbalancer"]["id"]}});
        assert_eq!(user.post("load-balancer", "/v2.0/lbaas/listeners", &listener).0, 201);
        let address = json!({"floatingip": {"floating_network_id": seed.public_network_id,
            "port_id": shared.1["loadbalancer"]["vip_port_id"], "description": SHARED}});
        assert_eq!(user.post("network", "/v2.0/floatingips", &address).0, 201);
        self.world.cloud.settle();
        shared.1["loadbalancer"]["id"].as_str().unwrap().clone_into(&mut self.shared);
        self.set_routes(&|routes| routes.push(route("192.168.0.0/24", "198.18.0.77")));
    }

    /// The other cluster serves its Services from the beginning to the end.
    async fn start_neighbour(&mut self) {
        let mut neighbour = World::in_cloud(ApiVersion::V1_36, self.world.cloud.clone());
        neighbour.kube = Kubernetes::numbered(ApiVersion::V1_36, 2);
        "c2".clone_into(&mut neighbour.settings.cluster_name);
        neighbour.settings.plans = false;
        neighbour.settings.cluster_uid = Some("c2c2c2c2-0000-4000-8000-000000000002".to_owned());
        self.watch.cluster("c2", &neighbour.kube);
        let server = self.world.cloud.add_node("elsewhere");
        neighbour.kube.create(&node(&server, "v1.36.0")).unwrap();
        neighbour.start().await;
        for number in 0..NEIGHBOURS {
            neighbour.create(&service(&neighbour_name(number), json!({})));
        }
        for number in 0..NEIGHBOURS {
            neighbour.until_published(&neighbour_name(number)).await;
        }
        neighbour.quiet().await;
        self.neighbour = Some(neighbour);
    }

    pub(crate) fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Create { service: number, proxy, settings } => self.create(*number, *proxy, settings),
            Edit::Share { service: number } => {
                let port = json!([{"port": 10_000 + number, "protocol": "TCP"}]);
                let change =
                    json!({"metadata": {"annotations": {LB_ID: self.shared}}, "spec": {"ports": port}});
                self.world.create(&service(&name(*number), change));
            }
            Edit::Copy { neighbour } => self.copy(*neighbour),
            Edit::Annotate { service, setting } => {
                self.set_since.entry(*service).or_default().insert(setting.key);
                let value = self.resolve(setting);
                self.world.annotate(&name(*service), setting.key, Some(&value));
            }
            Edit::Settle { service } => self.settle(*service),
            Edit::SetProxy { service, on } => self.world.annotate(&name(*service), PROXY, on.then_some("v2")),
            Edit::SetPorts { service, ports } => {
                let ports: Vec<Value> = (0..*ports)
                    .map(|port| json!({"name": format!("p{port}"), "port": 8000 + port, "protocol": "TCP"}))
                    .collect();
                self.patch(*service, json!({"ports": ports}));
            }
            Edit::SetAffinity { service, on } => {
                self.patch(*service, json!({"sessionAffinity": if *on { "ClientIP" } else { "None" }}));
            }
            Edit::SetRanges { service, on } => {
                let ranges = on.then(|| json!(["192.0.2.0/24"]));
                self.patch(*service, json!({"loadBalancerSourceRanges": ranges}));
            }
            Edit::Retype { service } => {
                self.patch(*service, json!({"type": "ClusterIP", "loadBalancerSourceRanges": null}));
            }
            Edit::Delete { service } => self.world.delete(&name(*service)),
            Edit::Break { service, operating } => {
                self.world.cloud.break_load_balancer(&lb_name(&name(*service)), operating);
            }
            Edit::FailOver { service } => self.fail_over(*service),
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

    #[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
    fn patch(&self, service: usize, spec: Value) {
        self.world.patch(&name(service), &json!({"spec": spec}));
    }

    fn create(&mut self, number: usize, proxy: bool, settings: &[Setting]) {
        let mut annotations = json!({});
        for setting in settings {
            annotations[setting.key] = json!(self.resolve(setting));
        }
        if proxy {
            annotations[PROXY] = json!("v2");
        }
        self.created_with.insert(number, settings.to_vec());
        self.world.create(&service(&name(number), json!({"metadata": {"annotations": annotations}})));
    }

    /// Creates a Service of the other cluster here, as a backup that is restored does.
    fn copy(&self, number: usize) {
        let Some(neighbour) = &self.neighbour else { return };
        let theirs = neighbour.service(&neighbour_name(number));
        let ports = json!([{"name": "http", "port": 80, "protocol": "TCP"}]);
        let change = json!({
            "metadata": {"annotations": theirs["metadata"]["annotations"]}, "spec": {"ports": ports},
        });
        self.world.create(&service(&neighbour_name(number), change));
    }

    /// Takes back what was set since a Service was created. Source ranges too: which mode is kept with them depends on the
    /// mode that was published when they came.
    fn settle(&mut self, number: usize) {
        let mut set = self.set_since.remove(&number).unwrap_or_default();
        // Tags are not taken off what has them, so the wish stays as well.
        set.retain(|key| !is_of_tags(key));
        let before = self.created_with.get(&number).cloned().unwrap_or_default();
        let mut annotations: BTreeMap<&str, Option<String>> =
            set.into_iter().map(|key| (key, None)).collect();
        for setting in &before {
            if annotations.contains_key(setting.key) {
                annotations.insert(setting.key, Some(self.resolve(setting)));
            }
        }
        let change = json!({
            "metadata": {"annotations": annotations}, "spec": {"loadBalancerSourceRanges": null},
        });
        self.world.patch(&name(number), &change);
    }

    /// An administrator fails a load balancer over, if it is in ERROR.
    fn fail_over(&self, service: usize) {
        let Some(broken) = self.world.cloud.load_balancer(&lb_name(&name(service))) else { return };
        if broken["provisioning_status"] == "ERROR" {
            let path = format!("/v2.0/lbaas/loadbalancers/{}/failover", broken["id"].as_str().unwrap());
            self.world.cloud.admin().change("load-balancer", &path, &Value::Null);
        }
    }

    /// The value of a setting; an id is that of something which is there.
    fn resolve(&self, setting: &Setting) -> String {
        if setting.value != ID {
            return setting.value.clone();
        }
        let seed = self.world.cloud.seed();
        let id = match setting.key.strip_prefix(ANNOTATION).unwrap_or_default() {
            "flavor-id" => &self.flavor,
            "subnet-id" | "member-subnet-id" => &seed.subnet_id,
            "network-id" => &seed.network_id,
            "floating-network-id" => &seed.public_network_id,
            "floating-subnet-id" => &seed.public_subnet_id,
            // One of somebody else, for a port; and whatever else a new annotation may name.
            _ => &seed.router_id,
        };
        id.clone()
    }

    pub(super) fn delete_services(&self) {
        for service in self.world.kube.list("services", "default").unwrap() {
            let name = service["metadata"]["name"].as_str().unwrap();
            if name != "kubernetes" {
                self.world.delete(name);
            }
        }
    }

    /// Where a backup was restored, an operator deletes the load balancers of Services that are gone: the program deletes none that it
    /// did not see deleted, and reports them. Those that are there in the calm run too stay.
    pub(super) async fn delete_orphans(&self, story: &Story, calm: &[String]) {
        if !self.restored {
            return;
        }
        let services = self.world.kube.list("services", "").unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let owned: BTreeSet<String> = services
            .iter()
            .filter(|service| {
                service["spec"]["type"] == "LoadBalancer" || !service["metadata"]["finalizers"].is_null()
            })
            .map(|service| &service["metadata"])
            .map(|metadata| format!("{OURS}{}_{}", text(&metadata["namespace"]), text(&metadata["name"])))
            .collect();
        let (admin, floating_ips) = (self.world.cloud.admin(), self.world.cloud.floating_ips());
        for orphan in self.world.cloud.load_balancers() {
            let name = text(&orphan["name"]);
            let is_calm = calm.iter().any(|line| line.contains(&format!("\"name\": \"{name}\"")));
            if !name.starts_with(OURS) || owned.contains(&name) || is_calm {
                continue;
            }
            let metrics = self.world.metrics();
            let reported = metrics.lines().any(|line| {
                line.strip_prefix("openstack_ccm_load_balancers_without_service ")
                    .is_some_and(|count| count != "0")
            });
            let reported = reported || self.was_left(&orphan);
            let tags = orphan["tags"].to_string();
            let is_user = |service: &Value| tags.contains(&text(&service["metadata"]["uid"]));
            // While a Service that used it is there, as one of another type, it is not reported yet.
            // An Event is lost with a program that is killed before it is written. It is about what OCCM made alone: what this program
            // made or adopted has a tag of the Service, and is in the gauge.
            let may_be_lost = self.world.kills() > 0
                && story.inherited.iter().any(|one| name == lb_name(&self::name(one.service)))
                && !tags.contains("openstack-ccm-service=");
            let is_known = reported || may_be_lost || services.iter().any(is_user);
            assert!(is_known, "{name} is left, and not reported: {orphan:#}");
            let path = format!("/v2.0/lbaas/loadbalancers/{}?cascade=true", text(&orphan["id"]));
            assert_eq!(admin.delete("load-balancer", &path).0, 204, "{orphan}");
            for floating_ip in floating_ips.iter().filter(|one| one["port_id"] == orphan["vip_port_id"]) {
                admin.delete("network", &format!("/v2.0/floatingips/{}", text(&floating_ip["id"])));
            }
        }
        self.delete_orphaned_floating_ips(&services);
        self.clear_shared(&owned);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    /// Those that lead nowhere and bear the tag of a Service that is gone, which `orphans` lists. One stays where the load balancer went only
    /// after Kubernetes had forgotten the Service and its nodes.
    fn delete_orphaned_floating_ips(&self, services: &[Value]) {
        let living: String = services.iter().map(|service| service["metadata"]["uid"].to_string()).collect();
        let is_of_gone = |tag: &Value| {
            let uid = tag.as_str().and_then(|tag| tag.strip_prefix("openstack-ccm-service="));
            uid.is_some_and(|uid| !living.contains(uid))
        };
        for floating_ip in self.world.cloud.floating_ips() {
            let is_free = floating_ip["port_id"].is_null();
            if is_free && floating_ip["tags"].as_array().is_some_and(|tags| tags.iter().any(is_of_gone)) {
                let path = format!("/v2.0/floatingips/{}", floating_ip["id"].as_str().unwrap());
                assert_eq!(self.world.cloud.admin().delete("network", &path).0, 204, "{floating_ip}");
            }
        }
    }

    /// Whether an Event says that a load balancer stays although its Service goes: one that OCCM made, and that leads to no node which the
    /// API server shows.
    fn was_left(&self, load_balancer: &Value) -> bool {
        let id = load_balancer["id"].as_str().unwrap();
        self.world.kube.list("events", "").unwrap().iter().any(|event| {
            event["reason"] == "LoadBalancerLeft"
                && event["message"].as_str().unwrap_or_default().contains(id)
        })
    }

    /// Takes off the load balancers that stay what Services have left there that are gone: off the one that a person made, and off those
    /// of OCCM that other Services use, where an Event says that the Service left it for want of evidence.
    fn clear_shared(&self, owned: &BTreeSet<String>) {
        let (cloud, admin) = (&self.world.cloud, self.world.cloud.admin());
        let is_left = |text: &Value| {
            let text = text.as_str().unwrap();
            text.find(OURS).is_some_and(|start| !owned.contains(&text[start..]))
        };
        let load_balancers = cloud.load_balancers();
        for (path, children) in [("listeners", cloud.listeners()), ("pools", cloud.pools())] {
            for child in children.iter().filter(|child| is_left(&child["name"])) {
                let stays = |one: &&Value| one["id"] == child["loadbalancers"][0]["id"];
                let host = load_balancers.iter().find(stays);
                let is_cleared = |host: &Value| {
                    host["id"] == self.shared
                        || (host["provisioning_status"] == "ACTIVE" && self.was_left(host))
                };
                if host.is_some_and(is_cleared) {
                    let path = format!("/v2.0/lbaas/{path}/{}", child["id"].as_str().unwrap());
                    assert_eq!(admin.delete("load-balancer", &path).0, 204, "{child}");
                    cloud.settle();
                }
            }
        }
        let shared = cloud.load_balancers().into_iter().find(|one| one["id"] == self.shared).unwrap();
        let tags = shared["tags"].as_array().unwrap();
        // Nobody who is there has a name among them: only those of the cluster and of Services that are gone are left.
        let is_named = |tag: &Value| tag.as_str().unwrap().contains(OURS) && !is_left(tag);
        if tags.iter().any(is_left) && !tags.iter().any(is_named) {
            let path = format!("/v2.0/lbaas/loadbalancers/{}", self.shared);
            let change = json!({"loadbalancer": {"tags": []}});
            assert_eq!(admin.put("load-balancer", &path, &change).0, 200);
            cloud.settle();
        }
    }

    /// What must not have happened so far.
    pub(super) fn assert_nothing_taken(&self, story: &Story) {
        let breaches = self.watch.take_breaches();
        assert!(breaches.is_empty(), "{}\nin {story:#?}", breaches.join("\n"));
    }

    /// Once all Services are gone.
    pub(super) fn assert_only_others_left(&self, story: &Story) {
        let cloud = &self.world.cloud;
        assert!(cloud.leaked_ports().is_empty(), "ports of load balancers are left");
        let left = cloud.load_balancers();
        assert_eq!(left.len(), self.others, "only those of others are to be left: {left:#?}\nin {story:#?}");
        if let Some(neighbour) = &self.neighbour {
            for number in 0..NEIGHBOURS {
                assert!(!neighbour.ingress(&neighbour_name(number)).is_empty());
            }
        }
    }

    pub(crate) async fn end(mut self) {
        self.world.stop().await;
        if let Some(mut neighbour) = self.neighbour {
            neighbour.stop().await;
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
        self.world.cloud.user().change("network", &path, &json!({"router": {"routes": routes}}));
    }
}

fn route(destination: &str, next_hop: &str) -> Value {
    json!({"destination": destination, "nexthop": next_hop})
}

pub(super) fn name(service: usize) -> String {
    format!("web-{service}")
}

fn neighbour_name(service: usize) -> String {
    format!("next-{service}")
}

fn node_name(node: usize) -> String {
    format!("node-{node}")
}
