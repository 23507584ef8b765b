//! Listeners.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    ChildFilter, CreatePool, IdRef, LBAAS, ListenerLimits, Octavia, OperatingStatus, ProvisioningStatus,
};
use crate::change::Change;
use crate::decode::{enabled, null_as_default};
use crate::error::ApiError;
use crate::open_enum::open_enum;
use crate::optional::OptionalPart;

open_enum! {
    /// The protocol of a listener with its clients. It cannot be changed.
    ListenerProtocol {
        /// TCP streams, passed through.
        Tcp = "TCP",
        /// Datagrams.
        Udp = "UDP",
        /// SCTP; needs Octavia 2.23.
        Sctp = "SCTP",
        Http = "HTTP",
        /// TLS, passed through.
        Https = "HTTPS",
        /// HTTPS, decrypted by the load balancer.
        TerminatedHttps = "TERMINATED_HTTPS",
        /// The load balancer's own metrics; needs Octavia 2.25.
        Prometheus = "PROMETHEUS",
    }
}

/// A listener as Octavia shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Listener {
    pub id: String,
    /// Name; not unique.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Whether the last change of this listener succeeded.
    pub provisioning_status: ProvisioningStatus,
    /// The status that the amphorae, or another provider, report.
    pub operating_status: Option<OperatingStatus>,
    /// Whether it is enabled.
    #[serde(default = "enabled")]
    pub admin_state_up: bool,
    /// The protocol with clients.
    pub protocol: ListenerProtocol,
    /// The port on which it listens.
    pub protocol_port: u16,
    /// The numeric attributes.
    #[serde(flatten)]
    pub limits: ListenerLimits,
    /// Headers added to requests, with `true` as their values.
    #[serde(default, deserialize_with = "null_as_default")]
    pub insert_headers: BTreeMap<String, String>,
    /// Networks that may connect; null, absent and empty all read as empty, which admits all clients.
    #[serde(default, deserialize_with = "null_as_default")]
    pub allowed_cidrs: Vec<String>,
    /// Barbican container or secret of the certificate.
    pub default_tls_container_ref: Option<String>,
    /// Barbican containers of further certificates.
    #[serde(default, deserialize_with = "null_as_default")]
    pub sni_container_refs: Vec<String>,
    /// The offered TLS versions.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tls_versions: Vec<String>,
    /// The offered ciphers, in OpenSSL's form.
    pub tls_ciphers: Option<String>,
    /// The protocols offered in ALPN.
    #[serde(default, deserialize_with = "null_as_default")]
    pub alpn_protocols: Vec<String>,
    /// The pool for requests that no L7 policy sends elsewhere.
    pub default_pool_id: Option<String>,
    /// L7 policies.
    #[serde(default, deserialize_with = "null_as_default")]
    pub l7policies: Vec<IdRef>,
    /// The load balancer, in a list of one.
    #[serde(default, deserialize_with = "null_as_default")]
    pub loadbalancers: Vec<IdRef>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: BTreeSet<String>,
}

/// A new listener, on its own or within a whole tree. Only what is set is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CreateListener {
    pub name: String,
    /// The protocol with clients.
    pub protocol: ListenerProtocol,
    /// The port on which it listens.
    pub protocol_port: u16,
    /// The load balancer; not set within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loadbalancer_id: Option<String>,
    /// The numeric attributes.
    #[serde(flatten)]
    pub limits: ListenerLimits,
    /// Tags; needs Octavia 2.5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Headers to add to requests, with `true` as their values. HTTP and TERMINATED_HTTPS only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub insert_headers: BTreeMap<String, String>,
    /// Networks that may connect; needs Octavia 2.12. Each must be of an address family of the VIPs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidrs: Vec<String>,
    /// Barbican container or secret of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tls_container_ref: Option<String>,
    /// Barbican containers of further certificates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sni_container_refs: Vec<String>,
    /// TLS versions to offer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls_versions: Vec<String>,
    /// Ciphers to offer, in OpenSSL's form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ciphers: Option<String>,
    /// Protocols to offer in ALPN.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alpn_protocols: Vec<String>,
    /// An existing default pool; must not be set within a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool_id: Option<String>,
    /// A new default pool, which needs a name; within a tree only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool: Option<Box<CreatePool>>,
}

impl CreateListener {
    /// Creates a listener with only the required attributes.
    pub fn new(name: impl Into<String>, protocol: ListenerProtocol, protocol_port: u16) -> Self {
        Self {
            name: name.into(),
            protocol,
            protocol_port,
            loadbalancer_id: None,
            limits: ListenerLimits::default(),
            tags: Vec::new(),
            insert_headers: BTreeMap::new(),
            allowed_cidrs: Vec::new(),
            default_tls_container_ref: None,
            sni_container_refs: Vec::new(),
            tls_versions: Vec::new(),
            tls_ciphers: None,
            alpn_protocols: Vec::new(),
            default_pool_id: None,
            default_pool: None,
        }
    }
}

/// Changes of a listener. Only what is set is sent. Protocol and port cannot be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdateListener {
    /// New name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The numeric attributes.
    #[serde(flatten)]
    pub limits: ListenerLimits,
    /// All tags after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeSet<String>>,
    /// All headers to add after the change; an empty map removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert_headers: Option<BTreeMap<String, String>>,
    /// All networks that may connect after the change; cleared, all clients may.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub allowed_cidrs: Change<Vec<String>>,
    /// Barbican container or secret of the certificate.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub default_tls_container_ref: Change<String>,
    /// Barbican containers of further certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sni_container_refs: Option<BTreeSet<String>>,
    /// TLS versions to offer; cleared, Octavia's default.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub tls_versions: Change<BTreeSet<String>>,
    /// Ciphers to offer; cleared, Octavia's default.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub tls_ciphers: Change<String>,
    /// Protocols to offer in ALPN; cleared, Octavia's default.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub alpn_protocols: Change<Vec<String>>,
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub default_pool_id: Change<String>,
}

impl Octavia {
    pub async fn list_listeners(&self, filter: &ChildFilter) -> Result<Vec<Listener>, ApiError> {
        let call = LBAAS
            .get("loadbalancer_listener_list", &["listeners"])
            .query_if("loadbalancer_id", filter.load_balancer_id.as_deref())
            .query_if("project_id", filter.project_id.as_deref());
        self.client.list(call, "listeners").await
    }

    pub async fn get_listener(&self, id: &str) -> Result<Listener, ApiError> {
        self.client.fetch(&LBAAS.get("loadbalancer_listener_get", &["listeners", id]), "listener").await
    }

    /// Starts to create a listener.
    pub async fn create_listener(&self, new: &CreateListener) -> Result<Listener, ApiError> {
        let call = LBAAS.post("loadbalancer_listener_create", &["listeners"]).body("listener", new);
        self.client.noting(OptionalPart::LoadBalancerTags, &call, self.client.fetch(&call, "listener")).await
    }

    /// Starts to change a listener.
    pub async fn update_listener(&self, id: &str, changes: &UpdateListener) -> Result<Listener, ApiError> {
        let call = LBAAS.put("loadbalancer_listener_update", &["listeners", id]).body("listener", changes);
        self.client.fetch(&call, "listener").await
    }

    /// Starts to delete a listener. Its default pool stays.
    pub async fn delete_listener(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&LBAAS.delete("loadbalancer_listener_delete", &["listeners", id])).await
    }
}
