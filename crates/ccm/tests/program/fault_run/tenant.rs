//! Another tenant of the cluster who means no good: Services that name load balancers and addresses of others, that change all the
//! time, and whose load balancers never become ready.

use std::time::Duration;

use fastrand::Rng;
use openstack_ccm_openstack_sim::{OperationKind, WorkerFault};
use serde_json::{Value, json};

use crate::support::{ADDRESS, LB_ID, World, service};

const NAMESPACE: &str = "tenant";
const LIMIT: &str = "loadbalancer.openstack.org/connection-limit";
const FIRST_NODE_PORT: usize = 30_000;
/// Changes of a Service that changes all the time, and the pause between two.
const FLAPS: usize = 60;
const BETWEEN_FLAPS: Duration = Duration::from_millis(500);

/// What the tenant has done.
#[derive(Default)]
pub(super) struct Tenant {
    services: usize,
    /// Names of load balancers that never become ready.
    hanging: Vec<String>,
}

impl Tenant {
    /// The tenant creates one more Service.
    pub(super) fn act(&mut self, world: &World, random: &mut Rng) {
        if self.services == 0 {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
            world.kube.create(&namespace).unwrap();
        }
        let name = format!("mean-{}", self.services);
        self.services += 1;
        let annotations = match random.u8(0..4) {
            0 => {
                self.hang(world, &name);
                json!({})
            }
            1 => {
                flap(world, name.clone());
                json!({LIMIT: "100"})
            }
            _ => forged(world, random),
        };
        // Node ports that are given to nobody who does not ask for them: those of others are the same as in a run without the tenant.
        let port = json!({"name": "http", "port": 80, "protocol": "TCP", "nodePort": FIRST_NODE_PORT + self.services});
        let change = json!({
            "metadata": {"namespace": NAMESPACE, "annotations": annotations}, "spec": {"ports": [port]},
        });
        world.create(&service(&name, change));
    }

    fn hang(&mut self, world: &World, name: &str) {
        let load_balancer = format!("kube_service_c1_{NAMESPACE}_{name}");
        hold(world, &load_balancer);
        self.hanging.push(load_balancer);
    }

    /// The other faults have ended.
    pub(super) fn go_on(&self, world: &World) {
        self.hanging.iter().for_each(|load_balancer| hold(world, load_balancer));
    }

    /// The tenant takes everything back.
    pub(super) fn leave(self, world: &World) {
        world.cloud.faults().clear();
        for number in 0..self.services {
            // A Service that was restored with an older state may have gone for good before.
            let _ = world.kube.delete("services", NAMESPACE, &format!("mean-{number}"));
        }
    }
}

fn hold(world: &World, load_balancer: &str) {
    let hold = WorkerFault::hold(OperationKind::LoadBalancerCreate).of(load_balancer);
    world.cloud.faults().add_worker(hold);
}

/// Changes a Service again and again, as long as it is there.
fn flap(world: &World, name: String) {
    let kube = world.kube.clone();
    tokio::spawn(async move {
        for flap in 0..FLAPS {
            tokio::time::sleep(BETWEEN_FLAPS).await;
            let limit = format!("{}", 100 + flap % 7);
            let change = json!({"metadata": {"annotations": {LIMIT: limit}}});
            let _ = kube.patch("services", NAMESPACE, &name, &change);
        }
    });
}

/// Annotations by which a Service claims a load balancer of somebody else, its address, or both.
fn forged(world: &World, random: &mut Rng) -> Value {
    let load_balancers = world.cloud.load_balancers();
    let victim = &load_balancers[random.usize(0..load_balancers.len())];
    let floating_ips = world.cloud.floating_ips();
    let on_vip = |one: &&Value| one["port_id"] == victim["vip_port_id"];
    let floating_ip = floating_ips.iter().find(on_vip).map(|one| &one["floating_ip_address"]);
    let address = floating_ip.unwrap_or(&victim["vip_address"]);
    match random.u8(0..3) {
        0 => json!({LB_ID: victim["id"]}),
        1 => json!({ADDRESS: address}),
        _ => json!({LB_ID: victim["id"], ADDRESS: address}),
    }
}
