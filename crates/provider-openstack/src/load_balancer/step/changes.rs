//! Which attributes an update changes. What is absent stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{LbAlgorithm, ListenerLimits};

use crate::load_balancer::model::Tags;
use crate::load_balancer::model::monitor::HttpCheck;
use crate::load_balancer::model::pool::Persistence;

/// Changes of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadBalancerChanges {
    /// Name, where the cluster was renamed.
    pub(crate) name: Option<String>,
    /// Description, which says whether the load balancer outlives its Service.
    pub(crate) description: Option<String>,
    /// All tags from now on, those of others included.
    pub(crate) tags: Option<Tags>,
}

impl LoadBalancerChanges {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Changes of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenerChanges {
    /// Name.
    pub(crate) name: Option<String>,
    /// Numbers that change.
    pub(crate) limits: ListenerLimits,
    /// All headers to insert from now on, those of others included.
    pub(crate) insert_headers: Option<BTreeMap<String, String>>,
    /// All networks that may connect from now on.
    pub(crate) allowed_cidrs: Option<BTreeSet<IpNet>>,
    /// Barbican reference of the certificate.
    pub(crate) tls_container_ref: Option<String>,
    /// What TLS looks like.
    pub(crate) tls: TlsChanges,
    /// All tags from now on, those of others included.
    pub(crate) tags: Option<Tags>,
}

/// Changes of what TLS looks like. What is cleared goes back to Octavia's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsChanges {
    /// References to further certificates.
    pub(crate) sni_container_refs: Option<BTreeSet<String>>,
    /// Versions.
    pub(crate) versions: Change<BTreeSet<String>>,
    /// Ciphers.
    pub(crate) ciphers: Change<String>,
    /// Protocols of ALPN.
    pub(crate) alpn_protocols: Change<Vec<String>>,
}

impl ListenerChanges {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
    pub(crate) fn only_tags(&self) -> Option<&Tags> {
        self.tags.as_ref().filter(|_| Self { tags: None, ..self.clone() }.is_empty())
    }
}

/// Changes of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolChanges {
    /// Name.
    pub(crate) name: Option<String>,
    /// How it chooses a member.
    pub(crate) lb_algorithm: Option<LbAlgorithm>,
    /// What ties a client to a member.
    pub(crate) session_persistence: Change<Persistence>,
    /// All tags from now on, those of others included.
    pub(crate) tags: Option<Tags>,
}

impl PoolChanges {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
    pub(crate) fn only_tags(&self) -> Option<&Tags> {
        self.tags.as_ref().filter(|_| Self { tags: None, ..self.clone() }.is_empty())
    }
}

/// Changes of a health monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MonitorChanges {
    /// Name.
    pub(crate) name: Option<String>,
    /// Time between checks, s.
    pub(crate) delay: Option<u32>,
    /// Longest time for one check, s.
    pub(crate) timeout: Option<u32>,
    /// Good checks until a member is up.
    pub(crate) max_retries: Option<u32>,
    /// Bad checks until a member is down.
    pub(crate) max_retries_down: Option<u32>,
    /// The HTTP request.
    pub(crate) http: Option<HttpCheck>,
    /// All tags from now on, those of others included.
    pub(crate) tags: Option<Tags>,
}

impl MonitorChanges {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
    pub(crate) fn only_tags(&self) -> Option<&Tags> {
        self.tags.as_ref().filter(|_| Self { tags: None, ..self.clone() }.is_empty())
    }
}
