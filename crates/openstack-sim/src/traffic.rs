//! What carries the traffic of users, as plain data, and a hook that shows it around every write of a client.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;

use crate::request::Request;
use crate::service::Service;
use crate::sim::Sim;
use crate::world::World;
use crate::world::load_balancing::{Entity, Provisioning};

/// Everything that carries traffic, by id. What Octavia has accepted to delete is left out: nobody can keep it any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    pub load_balancers: BTreeMap<String, LoadBalancerTraffic>,
    pub listeners: BTreeMap<String, ListenerTraffic>,
    pub pools: BTreeMap<String, PoolTraffic>,
    pub members: BTreeMap<String, MemberTraffic>,
    pub floating_ips: BTreeMap<String, FloatingIpTraffic>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancerTraffic {
    pub name: String,
    pub tags: BTreeSet<String>,
    /// Port of its address.
    pub vip_port_id: String,
    pub vip_address: String,
    /// Whether it has ever been finished.
    pub built: bool,
    /// Stands for everything that a client can see of it.
    pub fingerprint: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerTraffic {
    pub name: String,
    pub load_balancer_id: String,
    /// Protocol, as Octavia writes it.
    pub protocol: String,
    pub port: u16,
    /// Default pool.
    pub pool_id: Option<String>,
    pub active: bool,
    /// Whether it is administratively up.
    pub up: bool,
    /// Stands for everything that a client can see of it.
    pub fingerprint: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTraffic {
    pub name: String,
    pub load_balancer_id: String,
    /// Protocol, as Octavia writes it.
    pub protocol: String,
    pub active: bool,
    /// Stands for everything that a client can see of it, its health monitor included.
    pub fingerprint: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberTraffic {
    pub pool_id: String,
    pub address: String,
    pub port: u16,
    pub active: bool,
    /// Whether it is administratively up and has a weight.
    pub up: bool,
    /// Stands for everything that a client can see of it.
    pub fingerprint: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloatingIpTraffic {
    pub address: String,
    /// Port that it leads to.
    pub port_id: Option<String>,
    pub description: String,
    /// Stands for everything that a client can see of it.
    pub fingerprint: u64,
}

/// A write of a client, when the service has answered it.
#[derive(Debug)]
pub struct Write<'a> {
    /// The service that was asked.
    pub service: Service,
    pub method: &'a Method,
    /// The path below the service root, with its query.
    pub path: String,
    /// `User-Agent`: who asked; empty where the client did not say.
    pub user_agent: &'a str,
    /// What carried traffic right before.
    pub before: &'a Traffic,
    /// What carries traffic right after.
    pub after: &'a Traffic,
}

type Watcher = Arc<dyn Fn(&Write<'_>) + Send + Sync>;

/// Who is shown the writes.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<Vec<Watcher>>);

impl fmt::Debug for Watchers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Watchers")
    }
}

impl Watchers {
    pub(crate) fn get(&self) -> Vec<Watcher> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, watcher: Watcher) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
    }
}

impl Sim {
    /// Shows every write of a client from now on, whether its answer gets through or not; those of an
    /// [`Actor`](crate::Actor) are not shown. What the watcher does changes no answer.
    pub fn watch_writes(&self, watcher: impl Fn(&Write<'_>) + Send + Sync + 'static) {
        self.watchers().add(Arc::new(watcher));
    }

    /// What carries traffic now.
    pub fn traffic(&self) -> Traffic {
        self.read(Traffic::of)
    }
}

/// Shows a write to all who watch; `before` is what carried traffic before it.
pub(crate) fn show(sim: &Sim, watchers: &[Watcher], request: &Request, before: &Traffic) {
    let after = sim.traffic();
    let query = if request.raw_query.is_empty() { String::new() } else { format!("?{}", request.raw_query) };
    let write = Write {
        service: request.service,
        method: &request.method,
        path: format!("{}{query}", request.path),
        user_agent: request.header("user-agent").unwrap_or_default(),
        before,
        after: &after,
    };
    for watcher in watchers {
        watcher(&write);
    }
}

impl Traffic {
    fn of(world: &World) -> Self {
        let state = &world.load_balancing;
        let load_balancers = state.load_balancers.iter().filter(|(_, one)| stays(&one.entity));
        let listeners = state.listeners.iter().filter(|(_, one)| stays(&one.entity));
        let pools = state.pools.iter().filter(|(_, one)| stays(&one.entity));
        let members = state.members.values().filter(|one| stays(&one.entity));
        Self {
            load_balancers: load_balancers
                .map(|(id, one)| {
                    let traffic = LoadBalancerTraffic {
                        name: one.entity.text("name").to_owned(),
                        tags: tags(&one.entity),
                        vip_port_id: one.vip.port_id.clone(),
                        vip_address: one.vip.address.clone(),
                        built: one.built,
                        fingerprint: fingerprint(&one.entity, &()),
                    };
                    (id.clone(), traffic)
                })
                .collect(),
            listeners: listeners
                .map(|(id, one)| {
                    let traffic = ListenerTraffic {
                        name: one.entity.text("name").to_owned(),
                        load_balancer_id: one.load_balancer_id.clone(),
                        protocol: one.entity.text("protocol").to_owned(),
                        port: one.entity.port("protocol_port").unwrap_or_default(),
                        pool_id: one.default_pool_id.clone(),
                        active: one.entity.provisioning == Provisioning::Active,
                        up: one.entity.is_up(),
                        fingerprint: fingerprint(&one.entity, &one.default_pool_id),
                    };
                    (id.clone(), traffic)
                })
                .collect(),
            pools: pools
                .map(|(id, one)| {
                    let monitor = state.monitor_of(id).map(|monitor| fingerprint(&monitor.entity, &()));
                    let traffic = PoolTraffic {
                        name: one.entity.text("name").to_owned(),
                        load_balancer_id: one.load_balancer_id.clone(),
                        protocol: one.entity.text("protocol").to_owned(),
                        active: one.entity.provisioning == Provisioning::Active,
                        fingerprint: fingerprint(&one.entity, &monitor),
                    };
                    (id.clone(), traffic)
                })
                .collect(),
            members: members
                .map(|one| {
                    let weight = one.entity.attributes.get("weight").and_then(serde_json::Value::as_u64);
                    let traffic = MemberTraffic {
                        pool_id: one.pool_id.clone(),
                        address: one.entity.text("address").to_owned(),
                        port: one.entity.port("protocol_port").unwrap_or_default(),
                        active: one.entity.provisioning == Provisioning::Active,
                        up: one.entity.is_up() && weight != Some(0),
                        fingerprint: fingerprint(&one.entity, &()),
                    };
                    (one.entity.id.clone(), traffic)
                })
                .collect(),
            floating_ips: world.network.floating_ips.iter().map(floating_ip).collect(),
        }
    }
}

fn floating_ip((id, one): (&String, &crate::world::network::Resource)) -> (String, FloatingIpTraffic) {
    let mut hasher = DefaultHasher::new();
    (&one.tags, serde_json::to_string(&one.attributes).unwrap_or_default()).hash(&mut hasher);
    let port_id = one.text("port_id");
    let traffic = FloatingIpTraffic {
        address: one.text("floating_ip_address").to_owned(),
        port_id: (!port_id.is_empty()).then(|| port_id.to_owned()),
        description: one.text("description").to_owned(),
        fingerprint: hasher.finish(),
    };
    (id.clone(), traffic)
}

fn stays(entity: &Entity) -> bool {
    entity.provisioning != Provisioning::PendingDelete
}

fn tags(entity: &Entity) -> BTreeSet<String> {
    let tags = entity.attributes.get("tags").and_then(serde_json::Value::as_array);
    tags.into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect()
}

fn fingerprint(entity: &Entity, further: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    let attributes = serde_json::to_string(&entity.attributes).unwrap_or_default();
    (attributes, entity.provisioning.to_string(), further).hash(&mut hasher);
    hasher.finish()
}
