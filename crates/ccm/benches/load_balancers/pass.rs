//! One pass of the provider over a Service that did not change, in all its steps and without a call.

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::node::{AddressKind, Node, NodeAddress};
use openstack_ccm_core::provider::{LoadBalancers as _, Outcome, Wake};
use openstack_ccm_core::service::{Goal, Intent, IpFamily, Protocol, Service, ServiceKey, ServicePort};
use openstack_ccm_provider_openstack::load_balancer::OpenStackLoadBalancers;
use serde::{Deserialize, Serialize};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio_util::sync::CancellationToken;

use crate::cloud::world;
use crate::support::line::{Journal, Line};
use crate::support::{PROXY, World};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PASSES: u32 = 500;

/// What one pass took, on average.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pass {
    /// Nodes, all of them members.
    pub(crate) nodes: usize,
    /// Calls to OpenStack.
    pub(crate) calls: f64,
    /// Allocations.
    pub(crate) allocations: f64,
    /// Their bytes.
    pub(crate) bytes: f64,
    /// Time on a processor, in microseconds.
    pub(crate) processor: f64,
}

pub(crate) async fn run() -> Vec<Pass> {
    let mut passes = Vec::new();
    for nodes in [3, 100, 1000] {
        passes.push(measure(nodes).await);
    }
    passes
}

async fn measure(nodes: usize) -> Pass {
    let world = world(nodes, "");
    let journal = Journal::default();
    let line = Line::new(&journal, None, Duration::ZERO, "c1", None);
    let cluster =
        ClusterIdentity { name: "c1".to_owned(), uid: "00000000-0000-4000-8000-000000000001".to_owned() };
    let (provider, poller) = OpenStackLoadBalancers::new(
        line.openstack(&world.cloud, world.settings.user),
        Arc::new(world.config()),
        cluster,
        Arc::new(Nobody),
    );
    let poller = tokio::spawn(poller.run(CancellationToken::new()));
    let goal =
        until_ready(&provider, Intent { service: web(), nodes: members(&world), left_out: Arc::default() })
            .await;
    journal.lock().unwrap().clear();
    let region = Region::new(ALLOCATOR);
    let before = processor_time();
    for _ in 0..PASSES {
        provider.reconcile(&goal).await.result.unwrap();
    }
    let processor = processor_time() - before;
    let change = region.change();
    poller.abort();
    let each = |total: f64| total / f64::from(PASSES);
    #[allow(clippy::cast_precision_loss, reason = "these are small")]
    Pass {
        nodes,
        calls: each(journal.lock().unwrap().len() as f64),
        allocations: each((change.allocations + change.reallocations) as f64),
        bytes: each(change.bytes_allocated as f64),
        processor: each(processor.as_secs_f64() * 1e6),
    }
}

/// Passes until everything agrees twice: what the second found is what the measured ones find.
async fn until_ready(provider: &OpenStackLoadBalancers, mut intent: Intent) -> Goal {
    let mut agreed = 0;
    for _ in 0..100 {
        let goal = Goal::Serve(intent.clone());
        let pass = provider.reconcile(&goal).await;
        for (key, value) in pass.annotations {
            match value {
                Some(value) => drop(intent.service.annotations.insert(key, value)),
                None => drop(intent.service.annotations.remove(&key)),
            }
        }
        if matches!(pass.result.unwrap(), Outcome::Ready(ready) if !ready.changed) {
            agreed += 1;
        }
        if agreed == 2 {
            return Goal::Serve(intent);
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    panic!("the load balancer is never ready");
}

fn web() -> Service {
    Service {
        annotations: BTreeMap::from([(PROXY.to_owned(), "v2".to_owned())]),
        ports: vec![ServicePort {
            name: Some("http".to_owned()),
            protocol: Protocol::Tcp,
            port: 80,
            node_port: Some(30_080),
            app_protocol: None,
        }],
        ip_families: vec![IpFamily::V4],
        ..Service::new(ServiceKey::new("default", "web"), "00000000-0000-4000-8000-000000000002")
    }
}

fn members(world: &World) -> Arc<[Arc<Node>]> {
    let mut servers = world.cloud.nodes();
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    let nodes = servers.into_iter().map(|server| {
        Arc::new(Node {
            name: server.name,
            provider_id: Some(format!("openstack:///{}", server.server_id)),
            addresses: vec![NodeAddress {
                kind: AddressKind::InternalIp,
                address: server.addresses[0].clone(),
            }],
            labels: BTreeMap::new(),
            backend: true,
        })
    });
    nodes.collect()
}

/// Nobody waits.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _key: &ServiceKey) {}
}

/// Time on a processor, of the one thread that there is.
fn processor_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(statistics.split(' ').next().unwrap().parse().unwrap())
}
