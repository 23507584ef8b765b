//! Listeners: their key on a load balancer and their comparable attributes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ipnet::IpNet;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::octavia::{ListenerLimits, ListenerProtocol};

use super::Tags;

/// Identifies a listener on its load balancer: Octavia allows one per transport protocol and port, so HTTP and TCP on one port
/// conflict, UDP and TCP do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListenerKey {
    pub(crate) transport: Protocol,
    pub(crate) port: u16,
}

impl ListenerKey {
    /// The key of a Service port.
    pub(crate) fn new(transport: Protocol, port: u16) -> Self {
        Self { transport, port }
    }

    /// Returns the key of a listener. An unknown protocol counts as TCP: all protocols that Octavia added use TCP, and a wrongly
    /// assumed conflict does less harm than an overlooked one.
    pub(crate) fn of(protocol: &ListenerProtocol, port: u16) -> Self {
        let transport = match protocol {
            ListenerProtocol::Udp => Protocol::Udp,
            ListenerProtocol::Sctp => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        Self { transport, port }
    }
}

impl fmt::Display for ListenerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.transport, self.port)
    }
}

/// A listener as it is created. The step that creates it names its default pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenerSpec {
    /// Name. Not compared: children keep the name, and the index in it, from their creation.
    pub(crate) name: String,
    /// Protocol. Cannot be changed.
    pub(crate) protocol: ListenerProtocol,
    /// Port. Cannot be changed.
    pub(crate) port: u16,
    pub(crate) attributes: ListenerAttributes,
    /// Minimum tags. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

impl ListenerSpec {
    pub(crate) fn key(&self) -> ListenerKey {
        ListenerKey::of(&self.protocol, self.port)
    }
}

/// The attributes of a listener that are compared.
///
/// An absent desired value means that the attribute is not managed (the cloud lacks the feature); an absent observed value, that
/// Octavia shows none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenerAttributes {
    pub(crate) limits: ListenerLimits,
    /// Headers that the listener inserts; the values are Octavia's strings `true` and `false`. Headers that a Service may ask for
    /// are compared ([`super::header`]); others belong to an administrator and stay.
    pub(crate) insert_headers: BTreeMap<String, String>,
    /// Networks that may connect. Octavia shows "all networks" as null or as an empty list.
    pub(crate) allowed_cidrs: Option<BTreeSet<IpNet>>,
    /// Barbican reference of the certificate.
    pub(crate) tls_container_ref: Option<String>,
    /// TLS attributes other than the certificate.
    pub(crate) tls: TlsAttributes,
}

/// TLS attributes other than the certificate. An attribute that is not wanted is left alone, unless a tag shows that this
/// controller set it before ([`super::tls`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TlsAttributes {
    /// References to additional certificates, for SNI.
    pub(crate) sni_container_refs: Option<BTreeSet<String>>,
    pub(crate) versions: Option<BTreeSet<String>>,
    /// Ciphers in OpenSSL format.
    pub(crate) ciphers: Option<String>,
    /// ALPN protocols in order of preference.
    pub(crate) alpn_protocols: Option<Vec<String>>,
}
