//! Listeners: their key on a load balancer and their comparable attributes.

use std::fmt;

use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::octavia::{ListenerAttributes, ListenerProtocol};

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
    /// Compared. One that is absent is not managed, because the cloud lacks it; a TLS attribute that this controller set before, as a
    /// tag shows ([`super::tls`]), is cleared. Of the headers only those are compared that a Service may ask for
    /// ([`super::header`]); others belong to an administrator and stay.
    pub(crate) attributes: ListenerAttributes,
    /// Minimum tags. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

impl ListenerSpec {
    pub(crate) fn key(&self) -> ListenerKey {
        ListenerKey::of(&self.protocol, self.port)
    }
}
