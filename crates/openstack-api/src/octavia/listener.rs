//! Listeners.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{
    ChildFilter, CreatePool, IdRef, LBAAS, Octavia, OperatingStatus, ProvisioningStatus, UpdateChild, Values,
};
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

/// The numeric attributes of a listener. Timeouts are in milliseconds and need Octavia 2.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListenerLimits {
    /// The most concurrent connections; -1 for no limit.
    pub connection_limit: Option<i64>,
    /// The inactivity timeout of a client.
    pub timeout_client_data: Option<i64>,
    /// The timeout of connecting to a member.
    pub timeout_member_connect: Option<i64>,
    /// The inactivity timeout of a member.
    pub timeout_member_data: Option<i64>,
    /// The timeout of waiting for data to inspect.
    pub timeout_tcp_inspect: Option<i64>,
}

/// The attributes of a listener that terminates TLS, beside its certificate. Octavia shows no list where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TlsAttributes {
    /// Barbican containers of further certificates.
    pub sni_container_refs: Option<BTreeSet<String>>,
    /// The TLS versions to offer; needs Octavia 2.17.
    pub tls_versions: Option<BTreeSet<String>>,
    /// The ciphers to offer, in OpenSSL's form; needs Octavia 2.15.
    pub tls_ciphers: Option<String>,
    /// The protocols to offer in ALPN, in order of preference; needs Octavia 2.20.
    pub alpn_protocols: Option<Vec<String>>,
}

impl TlsAttributes {
    /// Returns the first API that has an attribute, unless all have it.
    pub fn since(name: &str) -> Option<(u32, u32)> {
        match name {
            "tls_ciphers" => Some((2, 15)),
            "tls_versions" => Some((2, 17)),
            "alpn_protocols" => Some((2, 20)),
            _ => None,
        }
    }
}

/// The attributes of a listener that can be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListenerAttributes {
    #[serde(flatten)]
    pub limits: ListenerLimits,
    /// Headers added to requests, with `true` as their values. HTTP and TERMINATED_HTTPS only.
    #[serde(default, deserialize_with = "null_as_default")]
    pub insert_headers: BTreeMap<String, String>,
    /// Networks that may connect; needs Octavia 2.12. Each must be of an address family of the VIPs. Without any, all clients may.
    pub allowed_cidrs: Option<BTreeSet<IpNet>>,
    /// Barbican container or secret of the certificate.
    #[serde(rename = "default_tls_container_ref")]
    pub tls_container_ref: Option<String>,
    #[serde(flatten)]
    pub tls: TlsAttributes,
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
    /// Networks that may connect; null, absent and empty all read as empty, which admits all clients.
    #[serde(default, deserialize_with = "null_as_default")]
    pub allowed_cidrs: Vec<String>,
    /// What can be changed, but for the networks.
    #[serde(flatten)]
    pub attributes: ListenerAttributes,
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
    #[serde(flatten)]
    pub attributes: Values,
    /// Tags; needs Octavia 2.5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
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
            attributes: Values::default(),
            tags: Vec::new(),
            default_pool_id: None,
            default_pool: None,
        }
    }
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
    pub async fn update_listener(&self, id: &str, changes: &UpdateChild) -> Result<Listener, ApiError> {
        let call = LBAAS.put("loadbalancer_listener_update", &["listeners", id]).body("listener", changes);
        self.client.fetch(&call, "listener").await
    }

    /// Starts to delete a listener. Its default pool stays.
    pub async fn delete_listener(&self, id: &str) -> Result<(), ApiError> {
        self.client.execute(&LBAAS.delete("loadbalancer_listener_delete", &["listeners", id])).await
    }
}
