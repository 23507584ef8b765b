//! Pools.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    CreateHealthMonitor, Fields as _, IdRef, LBAAS, MemberSpec, Octavia, OperatingStatus, ProvisioningStatus,
    UpdateChild, Values,
};
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::open_enum::open_enum;
use crate::optional::OptionalPart;

open_enum! {
    /// The protocol of a pool with its members. It cannot be changed.
    PoolProtocol {
        /// TCP streams.
        Tcp = "TCP",
        /// Datagrams.
        Udp = "UDP",
        /// SCTP; needs Octavia 2.23.
        Sctp = "SCTP",
        Http = "HTTP",
        /// TLS, passed through.
        Https = "HTTPS",
        /// TCP streams that begin with a PROXY protocol header, version 1.
        Proxy = "PROXY",
        /// TCP streams that begin with a PROXY protocol header, version 2; needs Octavia 2.22.
        ProxyV2 = "PROXYV2",
    }
}

open_enum! {
    /// How a pool chooses a member.
    LbAlgorithm {
        /// The members in turn.
        RoundRobin = "ROUND_ROBIN",
        /// The member with the fewest connections.
        LeastConnections = "LEAST_CONNECTIONS",
        /// By a hash of the client's address.
        SourceIp = "SOURCE_IP",
        /// By a hash of the client's address and port; the only algorithm of the ovn provider.
        SourceIpPort = "SOURCE_IP_PORT",
    }
}

open_enum! {
    /// The criterion that ties a client to a member.
    SessionPersistenceType {
        /// By the client's address.
        SourceIp = "SOURCE_IP",
        /// By a cookie of the load balancer.
        HttpCookie = "HTTP_COOKIE",
    }
}

/// How clients stay with their member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionPersistence {
    /// The criterion.
    #[serde(rename = "type")]
    pub kind: SessionPersistenceType,
    /// The inactivity timeout of a UDP client, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence_timeout: Option<u32>,
}

impl SessionPersistence {
    /// Returns whether nothing has to change for the wanted one. A timeout that is not asked for is not managed.
    pub fn satisfies(&self, wanted: &Self) -> bool {
        let timeout = wanted.persistence_timeout;
        self.kind == wanted.kind && (timeout.is_none() || self.persistence_timeout == timeout)
    }
}

/// The attributes of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PoolAttributes {
    /// How it chooses a member.
    pub lb_algorithm: LbAlgorithm,
    /// How clients stay with their member.
    pub session_persistence: Option<SessionPersistence>,
}

/// A pool as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Pool {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether the last change of this pool succeeded. A failed member batch does not show here, but on the members.
    pub provisioning_status: ProvisioningStatus,
    /// The worst status of its members.
    pub operating_status: Option<OperatingStatus>,
    /// Whether it is enabled.
    #[serde(default = "enabled")]
    pub admin_state_up: bool,
    /// The protocol with members.
    pub protocol: PoolProtocol,
    /// How it chooses a member.
    pub lb_algorithm: LbAlgorithm,
    /// How clients stay with their member.
    pub session_persistence: Option<SessionPersistence>,
    /// The id of the health monitor.
    #[serde(default, deserialize_with = "none_if_empty")]
    pub healthmonitor_id: Option<String>,
    /// Listeners that use it, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub listeners: Vec<IdRef>,
    /// The load balancer, in a list of one.
    #[serde(default, deserialize_with = "null_as_default")]
    pub loadbalancers: Vec<IdRef>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: BTreeSet<String>,
}

impl Pool {
    /// Returns the attributes. They are not read as a part of their own: that would buffer the ids of all members.
    pub fn attributes(&self) -> PoolAttributes {
        let Self { lb_algorithm, session_persistence, .. } = self.clone();
        PoolAttributes { lb_algorithm, session_persistence }
    }
}

fn enabled() -> bool {
    true
}

/// Reads an empty text as `None`: some answers of Octavia have it for a missing monitor.
fn none_if_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

/// Which listeners or pools to list. Every part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildFilter {
    pub load_balancer_id: Option<String>,
    pub project_id: Option<String>,
}

impl ChildFilter {
    /// Matches the children of one load balancer.
    pub fn load_balancer(id: impl Into<String>) -> Self {
        Self { load_balancer_id: Some(id.into()), ..Self::default() }
    }
}

/// A new pool, on its own or within a whole tree. Only what is set is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CreatePool {
    /// The name; required within a tree.
    pub name: String,
    /// The protocol with members.
    pub protocol: PoolProtocol,
    #[serde(flatten)]
    pub attributes: Values,
    /// The listener whose default pool it becomes; must not be set within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listener_id: Option<String>,
    /// The load balancer, if no listener is given; must not be set within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loadbalancer_id: Option<String>,
    /// Tags; needs Octavia 2.5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The members; within a tree only (a single pool with members is an internal error of Octavia).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberSpec>,
    /// Health monitor; within a tree only, like members.
    #[serde(rename = "healthmonitor", skip_serializing_if = "Option::is_none")]
    pub health_monitor: Option<CreateHealthMonitor>,
}

impl CreatePool {
    /// Creates a pool with only the required attributes.
    pub fn new(name: impl Into<String>, protocol: PoolProtocol, attributes: &PoolAttributes) -> Self {
        Self {
            name: name.into(),
            protocol,
            attributes: attributes.to_create(),
            listener_id: None,
            loadbalancer_id: None,
            tags: Vec::new(),
            members: Vec::new(),
            health_monitor: None,
        }
    }
}

impl Octavia {
    pub async fn list_pools(&self, filter: &ChildFilter) -> Result<Vec<Pool>, ApiError> {
        let call = LBAAS
            .get("loadbalancer_pool_list", &["pools"])
            .query_if("loadbalancer_id", filter.load_balancer_id.as_deref())
            .query_if("project_id", filter.project_id.as_deref());
        self.client.list(call, "pools").await
    }

    pub async fn get_pool(&self, id: &str) -> Result<Pool, ApiError> {
        self.client.fetch(&LBAAS.get("loadbalancer_pool_get", &["pools", id]), "pool").await
    }

    /// Starts to create a pool.
    pub async fn create_pool(&self, new: &CreatePool) -> Result<Pool, ApiError> {
        let call = LBAAS.post("loadbalancer_pool_create", &["pools"]).body("pool", new);
        self.client.noting(OptionalPart::LoadBalancerTags, &call, self.client.fetch(&call, "pool")).await
    }

    /// Starts to change a pool.
    pub async fn update_pool(&self, id: &str, changes: &UpdateChild) -> Result<Pool, ApiError> {
        let call = LBAAS.put("loadbalancer_pool_update", &["pools", id]).body("pool", changes);
        self.client.fetch(&call, "pool").await
    }

    /// Starts to delete a pool with its members and monitor. Listeners that use it lose their default pool.
    pub async fn delete_pool(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&LBAAS.delete("loadbalancer_pool_delete", &["pools", id])).await
    }
}
