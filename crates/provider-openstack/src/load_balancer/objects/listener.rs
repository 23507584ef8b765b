//! Listeners: their key on a load balancer and their comparable attributes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ipnet::IpNet;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::octavia::{ListenerLimits, ListenerProtocol};

use super::Tags;

/// What makes a listener unique on its load balancer: Octavia allows one for each transport protocol and port, so
/// HTTP beside TCP on one port is a conflict, UDP beside TCP is not.
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

    /// The key that a listener takes. A protocol that is not known here counts as TCP: every protocol that Octavia
    /// ever added runs over it, and a conflict that is not there does less harm than one that is overlooked.
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

/// A listener as it is created. Its default pool is named by the step that creates it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenerSpec {
    /// Name. Not compared: children keep the name, and with it the index, that they were made with.
    pub(crate) name: String,
    /// Protocol. Cannot be changed.
    pub(crate) protocol: ListenerProtocol,
    /// Port. Cannot be changed.
    pub(crate) port: u16,
    pub(crate) attributes: ListenerAttributes,
    /// Tags that it carries at least. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

impl ListenerSpec {
    pub(crate) fn key(&self) -> ListenerKey {
        ListenerKey::of(&self.protocol, self.port)
    }
}

/// The attributes of a listener that are compared.
///
/// In what is wanted, an absent value means that the attribute is not managed (the cloud lacks the feature); in what
/// is seen, that Octavia shows none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenerAttributes {
    pub(crate) limits: ListenerLimits,
    /// Headers that the listener inserts, with Octavia's texts `true` and `false` as values. Those that a Service may ask for
    /// are compared ([`super::header`]); others are an administrator's and stay.
    pub(crate) insert_headers: BTreeMap<String, String>,
    /// Networks that may connect. Octavia shows "everybody" as null and as an empty list alike.
    pub(crate) allowed_cidrs: Option<BTreeSet<IpNet>>,
    /// Barbican reference of the certificate.
    pub(crate) tls_container_ref: Option<String>,
    /// What TLS looks like beyond its certificate.
    pub(crate) tls: TlsAttributes,
}

/// What TLS looks like beyond its certificate. What is absent in what is wanted is left alone, unless a tag shows that it
/// was set here before ([`super::tls`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TlsAttributes {
    /// References to further certificates.
    pub(crate) sni_container_refs: Option<BTreeSet<String>>,
    pub(crate) versions: Option<BTreeSet<String>>,
    /// Ciphers, as OpenSSL writes them.
    pub(crate) ciphers: Option<String>,
    /// Protocols of ALPN, in the order of preference.
    pub(crate) alpn_protocols: Option<Vec<String>>,
}
