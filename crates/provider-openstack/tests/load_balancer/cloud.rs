//! A simulated cloud behind a line that can be watched and cut.

use std::time::Duration;

use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_api::transport::{FnTransport, Request, Response, Service};
use openstack_ccm_openstack_sim::{OperationKind, Sim, WorkerFault};
use openstack_ccm_provider_openstack::config::Config;
use serde_json::{Value, json};

use crate::line::Line;

pub(crate) const FIRST_FLOATING_IP: &str = "198.19.0.11";
pub(crate) const NODE_1: &str = "198.18.0.50";
pub(crate) const NODE_2: &str = "198.18.0.51";
pub(crate) const NODE_3: &str = "198.18.0.52";

/// How long Octavia works on each change.
const WORK: Duration = Duration::from_secs(2);

const OCTAVIA: &str = "load-balancer";
const NEUTRON: &str = "network";

/// The cloud of all scenarios.
#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) sim: Sim,
    pub(crate) line: Line,
    /// Network of the nodes.
    pub(crate) net1: String,
    /// Its subnet with the nodes.
    pub(crate) sub1: String,
    /// Another subnet of it.
    pub(crate) sub2: String,
    /// External network.
    pub(crate) ext1: String,
}

impl Cloud {
    pub(crate) fn new() -> Self {
        let sim = Sim::builder().nodes(2).build();
        sim.set_delays(WORK);
        let seed = sim.seed().clone();
        let mut cloud = Self {
            sim,
            line: Line::default(),
            net1: seed.network_id,
            sub1: seed.subnet_id,
            sub2: String::new(),
            ext1: seed.public_network_id,
        };
        cloud.sub2 = cloud.new_subnet(&cloud.net1, "sub2", "198.18.1.0/24");
        let body = json!({"subnet_id": cloud.sub2});
        let path = format!("/v2.0/routers/{}/add_router_interface", cloud.sim.seed().router_id);
        expect_ok(cloud.sim.user().put(NEUTRON, &path, &body));
        cloud
    }

    /// cloud.conf of all scenarios.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::default();
        config.load_balancer.subnet_id = Some(self.sub1.clone());
        config.load_balancer.floating_network_id = Some(self.ext1.clone());
        config
    }

    /// The services, as the program reaches them.
    pub(crate) fn openstack(&self) -> OpenStack {
        let (line, sim) = (self.line.clone(), self.sim.clone());
        OpenStack::new(Client::over(FnTransport::new(move |request| {
            let (line, sim) = (line.clone(), sim.clone());
            async move { line.carry(request, |request| answer(sim, request)).await }
        })))
    }

    /// Id of the server of a node of the cluster.
    pub(crate) fn server(&self, node: &str) -> Option<String> {
        let index: usize = node.trim_start_matches('n').parse().ok()?;
        self.sim.nodes().get(index - 1).map(|node| node.server_id.clone())
    }

    // What is there.

    pub(crate) fn load_balancers(&self) -> Vec<Value> {
        self.sim.load_balancers()
    }

    pub(crate) fn load_balancer(&self, name: &str) -> Value {
        self.sim.load_balancer(name).unwrap_or_else(|| panic!("no load balancer {name}"))
    }

    pub(crate) fn load_balancer_id(&self, name: &str) -> String {
        text(&self.load_balancer(name)["id"])
    }

    pub(crate) fn listeners(&self) -> Vec<Value> {
        self.sim.listeners()
    }

    /// Ports of the listeners of a load balancer, sorted.
    pub(crate) fn listener_ports(&self, load_balancer_id: &str) -> Vec<u64> {
        let listeners = self.listeners();
        let its = listeners.iter().filter(|listener| listener["loadbalancers"][0]["id"] == load_balancer_id);
        let mut ports: Vec<u64> = its.filter_map(|listener| listener["protocol_port"].as_u64()).collect();
        ports.sort_unstable();
        ports
    }

    pub(crate) fn pools(&self) -> Vec<Value> {
        self.sim.pools()
    }

    /// The members of all pools of a load balancer, by name.
    pub(crate) fn members(&self, load_balancer: &str) -> Vec<Value> {
        let id = self.load_balancer_id(load_balancer);
        let pools = self.pools();
        let its = pools.iter().filter(|pool| pool["loadbalancers"][0]["id"] == id);
        let mut members: Vec<Value> = its.flat_map(|pool| self.sim.members(&text(&pool["id"]))).collect();
        members.sort_by_key(|member| text(&member["name"]));
        members
    }

    pub(crate) fn member_names(&self, load_balancer: &str) -> Vec<String> {
        self.members(load_balancer).iter().map(|member| text(&member["name"])).collect()
    }

    pub(crate) fn monitors(&self) -> Vec<Value> {
        self.sim.health_monitors()
    }

    pub(crate) fn floating_ips(&self) -> Vec<Value> {
        self.sim.floating_ips()
    }

    pub(crate) fn only_floating_ip(&self) -> Value {
        let floating_ips = self.floating_ips();
        assert_eq!(floating_ips.len(), 1, "{floating_ips:#?}");
        floating_ips[0].clone()
    }

    /// Ports that Octavia made.
    pub(crate) fn vip_ports(&self) -> Vec<Value> {
        self.sim.ports().into_iter().filter(|port| port["device_owner"] == "Octavia").collect()
    }

    pub(crate) fn vip_port(&self) -> String {
        text(&self.load_balancers()[0]["vip_port_id"])
    }

    /// Everything that matters, without ids and times, in a fixed order.
    pub(crate) fn snapshot(&self) -> Value {
        let names: std::collections::BTreeMap<String, String> = self
            .load_balancers()
            .iter()
            .chain(&self.pools())
            .map(|object| (text(&object["id"]), text(&object["name"])))
            .chain(
                self.load_balancers()
                    .iter()
                    .map(|lb| (text(&lb["vip_port_id"]), format!("VIP {}", text(&lb["name"])))),
            )
            .collect();
        let named = |id: &Value| names.get(&text(id)).cloned();
        let keep = |object: &Value, keys: &[&str]| -> Value {
            keys.iter()
                .map(|key| ((*key).to_owned(), sorted(&object[*key])))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let load_balancers: Vec<Value> = self
            .load_balancers()
            .iter()
            .map(|one| {
                keep(one, &["name", "description", "tags", "provisioning_status", "vip_address", "provider"])
            })
            .collect();
        let listeners: Vec<Value> = self
            .listeners()
            .iter()
            .map(|one| {
                let keys = [
                    "name",
                    "protocol",
                    "protocol_port",
                    "tags",
                    "provisioning_status",
                    "allowed_cidrs",
                    "insert_headers",
                    "connection_limit",
                ];
                json!([
                    keep(one, &keys),
                    named(&one["default_pool_id"]),
                    named(&one["loadbalancers"][0]["id"])
                ])
            })
            .collect();
        let pools: Vec<Value> = self.pools().iter().map(|pool| self.pool_snapshot(pool, keep)).collect();
        let floating_ips: Vec<Value> = self
            .floating_ips()
            .iter()
            .map(|one| {
                json!([keep(one, &["floating_ip_address", "description", "tags"]), named(&one["port_id"])])
            })
            .collect();
        json!({
            "load_balancers": sorted(&load_balancers.into()),
            "listeners": sorted(&listeners.into()),
            "pools": sorted(&pools.into()),
            "floating_ips": sorted(&floating_ips.into()),
            "ports": self.sim.ports().len(),
            "leaked_ports": self.sim.leaked_ports().len(),
        })
    }

    fn pool_snapshot(&self, pool: &Value, keep: impl Fn(&Value, &[&str]) -> Value) -> Value {
        let keys = ["name", "protocol", "lb_algorithm", "tags", "provisioning_status", "session_persistence"];
        let members: Vec<Value> = self
            .sim
            .members(&text(&pool["id"]))
            .iter()
            .map(|one| {
                keep(one, &["name", "address", "protocol_port", "monitor_port", "provisioning_status"])
            })
            .collect();
        let monitors: Vec<Value> = self
            .monitors()
            .iter()
            .filter(|monitor| monitor["id"] == pool["healthmonitor_id"])
            .map(|one| keep(one, &["name", "type", "delay", "timeout", "provisioning_status"]))
            .collect();
        json!([keep(pool, &keys), sorted(&members.into()), monitors])
    }

    // What others do.

    pub(crate) fn new_subnet(&self, network: &str, name: &str, cidr: &str) -> String {
        let mut subnet = json!({"name": name, "network_id": network, "ip_version": 4, "cidr": cidr});
        if network == self.net1 {
            subnet["project_id"] = json!(self.sim.seed().project_id);
        }
        let answer = expect_ok(self.sim.admin().post(NEUTRON, "/v2.0/subnets", &json!({"subnet": subnet})));
        text(&answer["subnet"]["id"])
    }

    /// A port of the user on the nodes' subnet.
    pub(crate) fn new_port(&self, address: &str) -> String {
        let fixed_ips = json!([{"subnet_id": self.sub1, "ip_address": address}]);
        let port = json!({"port": {"network_id": self.net1, "fixed_ips": fixed_ips}});
        text(&expect_ok(self.sim.user().post(NEUTRON, "/v2.0/ports", &port))["port"]["id"])
    }

    pub(crate) fn detach_floating_ip(&self, id: &str) {
        let body = json!({"floatingip": {"port_id": null}});
        expect_ok(self.sim.user().put(NEUTRON, &format!("/v2.0/floatingips/{id}"), &body));
    }

    /// A finished load balancer that this program did not make.
    pub(crate) fn new_load_balancer(&self, name: &str, attributes: Value) -> String {
        let id = self.start_load_balancer(name, attributes);
        self.sim.settle();
        id
    }

    /// The same, still PENDING.
    pub(crate) fn start_load_balancer(&self, name: &str, mut attributes: Value) -> String {
        attributes["name"] = json!(name);
        attributes["vip_subnet_id"] = json!(self.sub1);
        let body = json!({"loadbalancer": attributes});
        text(
            &expect_ok(self.sim.user().post(OCTAVIA, "/v2.0/lbaas/loadbalancers", &body))["loadbalancer"]["id"],
        )
    }

    pub(crate) fn delete_load_balancer(&self, id: &str) {
        let path = format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true");
        expect_ok(self.sim.user().delete(OCTAVIA, &path));
    }

    /// A change of a load balancer fails inside Octavia: it is in ERROR, and serves nobody.
    pub(crate) fn break_load_balancer(&self, name: &str) {
        self.sim.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerUpdate).of(name).times(1));
        let path = format!("/v2.0/lbaas/loadbalancers/{}", self.load_balancer_id(name));
        expect_ok(self.sim.user().put(OCTAVIA, &path, &json!({"loadbalancer": {"admin_state_up": false}})));
        self.sim.settle();
        let broken = self.load_balancer(name);
        assert_eq!(
            (&broken["provisioning_status"], &broken["operating_status"]),
            (&json!("ERROR"), &json!("OFFLINE"))
        );
    }

    /// An administrator changes an object of Octavia; `path` is relative to its root.
    pub(crate) fn edit(&self, path: &str, body: &Value) {
        expect_ok(self.sim.user().put(OCTAVIA, &format!("/v2.0/lbaas/{path}"), body));
        self.sim.settle();
    }

    /// An administrator deletes an object of Octavia.
    pub(crate) fn remove(&self, path: &str) {
        expect_ok(self.sim.user().delete(OCTAVIA, &format!("/v2.0/lbaas/{path}")));
        self.sim.settle();
    }

    /// The next operations of a kind fail inside Octavia.
    pub(crate) fn fail(&self, kind: OperationKind, times: u32) {
        self.sim.faults().add_worker(WorkerFault::fail(kind).times(times));
    }

    /// Operations of a kind never end.
    pub(crate) fn hold(&self, kind: OperationKind, object: &str) {
        self.sim.faults().add_worker(WorkerFault::hold(kind).of(object));
    }
}

async fn answer(sim: Sim, mut request: Request) -> Response {
    let service: Service = request.service;
    request.headers.insert("x-auth-token", sim.token().parse().expect("a header value"));
    let request = request.into_http().expect("a request");
    sim.call(service.catalog_type(), request).await.expect("faults are on the line").into()
}

fn expect_ok((status, body): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status} {body}");
    body
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Arrays of objects and texts have no order in OpenStack.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items = items.clone();
            items.sort_by_key(Value::to_string);
            items.into()
        }
        other => other.clone(),
    }
}
