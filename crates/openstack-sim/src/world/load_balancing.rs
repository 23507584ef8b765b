//! What Octavia keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::members::Members;
use super::operation::{Operation, OperationKind};
use crate::octavia::capacity::Workload;
use crate::octavia::major_version::OctaviaRelease;

/// Octavia's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadBalancing {
    pub(crate) load_balancers: BTreeMap<String, LoadBalancer>,
    pub(crate) listeners: BTreeMap<String, Listener>,
    pub(crate) pools: BTreeMap<String, Pool>,
    pub(crate) members: Members,
    pub(crate) health_monitors: BTreeMap<String, HealthMonitor>,
    /// Work that is not finished, oldest first.
    pub(crate) operations: Vec<Operation>,
    /// How long each kind of operation takes; zero where there is no entry.
    pub(crate) delays: BTreeMap<OperationKind, Duration>,
    /// What it has under way, where it cannot do everything at once.
    pub(crate) workload: Option<Workload>,
    /// Flavors by id, as on the wire.
    pub(crate) flavors: BTreeMap<String, Value>,
    /// Flavor profiles by id, as on the wire.
    pub(crate) flavor_profiles: BTreeMap<String, Value>,
    /// Availability zones by name, as on the wire.
    pub(crate) availability_zones: BTreeMap<String, Value>,
    /// Providers in the order of the configuration: name and description.
    pub(crate) providers: Vec<(String, String)>,
    /// The provider of load balancers that name none; absent, amphora.
    pub(crate) default_provider: Option<String>,
    /// Limits that differ from the default -1, by project and resource.
    pub(crate) quotas: BTreeMap<String, BTreeMap<String, i64>>,
    /// Addresses that no new member may have, beside Octavia's default (`[networking] reserved_ips`).
    pub(crate) reserved_ips: BTreeSet<String>,
    /// Which Octavia answers.
    pub(crate) release: OctaviaRelease,
    /// The newest API version 2.x that this Octavia knows.
    pub(crate) api_minor: u8,
    /// Whether `operating_status` of monitored members comes from [`Self::check_results`]; without that all are ONLINE.
    pub(crate) real_health_checks: bool,
    /// The last result of a real health check, by member.
    pub(crate) check_results: BTreeMap<String, bool>,
}

/// `provisioning_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provisioning {
    Active,
    PendingCreate,
    PendingUpdate,
    PendingDelete,
    Error,
}

impl fmt::Display for Provisioning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Active => "ACTIVE",
            Self::PendingCreate => "PENDING_CREATE",
            Self::PendingUpdate => "PENDING_UPDATE",
            Self::PendingDelete => "PENDING_DELETE",
            Self::Error => "ERROR",
        })
    }
}

/// `operating_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operating {
    Online,
    Offline,
    Degraded,
    Error,
    NoMonitor,
}

impl fmt::Display for Operating {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Online => "ONLINE",
            Self::Offline => "OFFLINE",
            Self::Degraded => "DEGRADED",
            Self::Error => "ERROR",
            Self::NoMonitor => "NO_MONITOR",
        })
    }
}

/// What load balancers, listeners, pools, members and monitors share.
#[derive(Debug, Clone)]
pub(crate) struct Entity {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) provisioning: Provisioning,
    pub(crate) operating: Operating,
    pub(crate) created_at: String,
    pub(crate) updated_at: Option<String>,
    /// The attributes that a user may give, as on the wire; always complete.
    pub(crate) attributes: Map<String, Value>,
}

impl Entity {
    /// A text attribute; empty when null.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.attributes.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A port number attribute.
    pub(crate) fn port(&self, name: &str) -> Option<u16> {
        self.attributes.get(name).and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok())
    }

    /// Whether the object is administratively up.
    pub(crate) fn is_up(&self) -> bool {
        self.attributes.get("admin_state_up").and_then(Value::as_bool).unwrap_or(true)
    }

    pub(crate) fn set_provisioning(&mut self, status: Provisioning, now: &str) {
        self.provisioning = status;
        self.updated_at = Some(now.to_owned());
    }
}

#[derive(Debug, Clone)]
pub(crate) struct LoadBalancer {
    pub(crate) entity: Entity,
    pub(crate) vip: Vip,
    /// Further addresses on the same port.
    pub(crate) additional_vips: Vec<(String, String)>,
    /// Whether Octavia made the VIP port, and so deletes it.
    pub(crate) owns_vip_port: bool,
    /// Whether the worker has ever finished building it.
    pub(crate) built: bool,
    /// Octavia's own security group on the VIP port, once plugged in.
    pub(crate) security_group_id: Option<String>,
    /// How many connections have passed it.
    pub(crate) connections: u64,
    /// Whether answers do not show the port of the VIP.
    pub(crate) hides_port: bool,
}

/// The primary address of a load balancer.
#[derive(Debug, Clone)]
pub(crate) struct Vip {
    pub(crate) address: String,
    pub(crate) port_id: String,
    pub(crate) subnet_id: String,
    pub(crate) network_id: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Listener {
    pub(crate) entity: Entity,
    pub(crate) load_balancer_id: String,
    pub(crate) default_pool_id: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) entity: Entity,
    pub(crate) load_balancer_id: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) entity: Entity,
    pub(crate) pool_id: String,
}

#[derive(Debug, Clone)]
pub(crate) struct HealthMonitor {
    pub(crate) entity: Entity,
    pub(crate) pool_id: String,
}

impl LoadBalancing {
    pub(crate) fn listeners_of(&self, load_balancer_id: &str) -> Vec<&Listener> {
        self.listeners.values().filter(|listener| listener.load_balancer_id == load_balancer_id).collect()
    }

    pub(crate) fn pools_of(&self, load_balancer_id: &str) -> Vec<&Pool> {
        self.pools.values().filter(|pool| pool.load_balancer_id == load_balancer_id).collect()
    }

    /// The members of a pool, oldest first.
    pub(crate) fn members_of(&self, pool_id: &str) -> Vec<&Member> {
        let mut members: Vec<&Member> = self.members.of(pool_id).collect();
        members.sort_by(|one, other| one.entity.created_at.cmp(&other.entity.created_at));
        members
    }

    pub(crate) fn monitor_of(&self, pool_id: &str) -> Option<&HealthMonitor> {
        self.health_monitors.values().find(|monitor| monitor.pool_id == pool_id)
    }

    /// The listeners whose default pool this is.
    pub(crate) fn listeners_using(&self, pool_id: &str) -> Vec<&Listener> {
        self.listeners
            .values()
            .filter(|listener| listener.default_pool_id.as_deref() == Some(pool_id))
            .collect()
    }

    /// Removes a pool with its members and its monitor; listeners lose their default pool.
    pub(crate) fn remove_pool(&mut self, pool_id: &str) {
        self.pools.remove(pool_id);
        self.members.retain_in(pool_id, |_| false);
        self.health_monitors.retain(|_, monitor| monitor.pool_id != pool_id);
        for listener in self.listeners.values_mut() {
            if listener.default_pool_id.as_deref() == Some(pool_id) {
                listener.default_pool_id = None;
            }
        }
    }

    /// Removes a load balancer and everything that belongs to it.
    pub(crate) fn remove_tree(&mut self, load_balancer_id: &str) {
        let pools: Vec<String> =
            self.pools_of(load_balancer_id).into_iter().map(|pool| pool.entity.id.clone()).collect();
        for pool_id in pools {
            self.remove_pool(&pool_id);
        }
        self.listeners.retain(|_, listener| listener.load_balancer_id != load_balancer_id);
        self.load_balancers.remove(load_balancer_id);
    }

    /// The entities of a load balancer's whole tree except its own.
    pub(crate) fn children_mut(&mut self, load_balancer_id: &str) -> Vec<&mut Entity> {
        let pools: BTreeSet<String> = self
            .pools
            .values()
            .filter(|pool| pool.load_balancer_id == load_balancer_id)
            .map(|pool| pool.entity.id.clone())
            .collect();
        let mut entities: Vec<&mut Entity> = Vec::new();
        entities.extend(
            self.listeners
                .values_mut()
                .filter(|listener| listener.load_balancer_id == load_balancer_id)
                .map(|listener| &mut listener.entity),
        );
        entities.extend(
            self.pools
                .values_mut()
                .filter(|pool| pool.load_balancer_id == load_balancer_id)
                .map(|pool| &mut pool.entity),
        );
        entities.extend(
            self.members.of_pools_mut(|pool_id| pools.contains(pool_id)).map(|member| &mut member.entity),
        );
        entities.extend(
            self.health_monitors
                .values_mut()
                .filter(|monitor| pools.contains(&monitor.pool_id))
                .map(|monitor| &mut monitor.entity),
        );
        entities
    }
}
