//! Which attributes an update changes. What is absent stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::LbAlgorithm;

use crate::load_balancer::model::Tags;
use crate::load_balancer::model::monitor::HttpCheck;
use crate::load_balancer::model::pool::Persistence;

/// Changes of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerChanges {
    /// Name, where the cluster was renamed.
    pub name: Option<String>,
    /// Description, which says whether the load balancer outlives its Service.
    pub description: Option<String>,
    /// All tags from now on, those of others included.
    pub tags: Option<Tags>,
}

impl LoadBalancerChanges {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Changes of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerChanges {
    /// Name.
    pub name: Option<String>,
    /// Most connections at once; -1 is no limit.
    pub connection_limit: Option<i64>,
    /// Longest silence of a client, ms.
    pub timeout_client_data: Option<u32>,
    /// Longest time to connect to a member, ms.
    pub timeout_member_connect: Option<u32>,
    /// Longest silence of a member, ms.
    pub timeout_member_data: Option<u32>,
    /// Longest time to wait for data to inspect, ms.
    pub timeout_tcp_inspect: Option<u32>,
    /// All headers to insert from now on, those of others included.
    pub insert_headers: Option<BTreeMap<String, String>>,
    /// All networks that may connect from now on.
    pub allowed_cidrs: Option<BTreeSet<IpNet>>,
    /// Barbican reference of the certificate.
    pub tls_container_ref: Option<String>,
    /// What TLS looks like.
    pub tls: TlsChanges,
    /// All tags from now on, those of others included.
    pub tags: Option<Tags>,
}

/// Changes of what TLS looks like. What is cleared goes back to Octavia's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsChanges {
    /// References to further certificates.
    pub sni_container_refs: Option<BTreeSet<String>>,
    /// Versions.
    pub versions: Change<BTreeSet<String>>,
    /// Ciphers.
    pub ciphers: Change<String>,
    /// Protocols of ALPN.
    pub alpn_protocols: Change<Vec<String>>,
}

impl ListenerChanges {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
    pub fn only_tags(&self) -> Option<&Tags> {
        self.tags.as_ref().filter(|_| Self { tags: None, ..self.clone() }.is_empty())
    }
}

/// Changes of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolChanges {
    /// Name.
    pub name: Option<String>,
    /// How it chooses a member.
    pub lb_algorithm: Option<LbAlgorithm>,
    /// What ties a client to a member.
    pub session_persistence: Change<Persistence>,
    /// All tags from now on, those of others included.
    pub tags: Option<Tags>,
}

impl PoolChanges {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
    pub fn only_tags(&self) -> Option<&Tags> {
        self.tags.as_ref().filter(|_| Self { tags: None, ..self.clone() }.is_empty())
    }
}

/// Changes of a health monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorChanges {
    /// Name.
    pub name: Option<String>,
    /// Time between checks, s.
    pub delay: Option<u32>,
    /// Longest time for one check, s.
    pub timeout: Option<u32>,
    /// Good checks until a member is up.
    pub max_retries: Option<u32>,
    /// Bad checks until a member is down.
    pub max_retries_down: Option<u32>,
    /// The HTTP request.
    pub http: Option<HttpCheck>,
    /// All tags from now on, those of others included.
    pub tags: Option<Tags>,
}

impl MonitorChanges {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
    pub fn only_tags(&self) -> Option<&Tags> {
        self.tags.as_ref().filter(|_| Self { tags: None, ..self.clone() }.is_empty())
    }
}
