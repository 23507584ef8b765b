//! The hops of a packet, and where it may come from.

use std::collections::BTreeSet;
use std::fmt;

use openstack_ccm_core::service::Protocol;
use serde::Serialize;

/// A hop, in the order in which a packet meets them; no packet meets the controller, which keeps up all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hop {
    /// The controller that serves the Service.
    Controller,
    /// What the name resolves to.
    Name,
    /// What the status of the Service publishes.
    Status,
    /// What the service proxy of the client's node does.
    Node,
    /// The way to the load balancer.
    Way,
    LoadBalancer,
    /// The PROXY protocol header that it adds.
    Header,
    /// The members of its pools.
    Member,
    /// The node port, and the endpoints behind it.
    NodePort,
    /// The application.
    Backend,
}

impl Hop {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Controller,
        Self::Name,
        Self::Status,
        Self::Node,
        Self::Way,
        Self::LoadBalancer,
        Self::Header,
        Self::Member,
        Self::NodePort,
        Self::Backend,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Name => "name",
            Self::Status => "status",
            Self::Node => "node",
            Self::Way => "way to the load balancer",
            Self::LoadBalancer => "load balancer",
            Self::Header => "header",
            Self::Member => "members",
            Self::NodePort => "node port",
            Self::Backend => "backend",
        }
    }

    /// Its number: that of the controller is 0.
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|hop| *hop == self).unwrap_or_default()
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hop {} ({})", self.number(), self.title())
    }
}

/// Where a packet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A pod of the cluster.
    Pod,
    /// A process on the network of a node.
    Node,
    /// A client that is not in the cluster.
    Outside,
}

impl Origin {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pod, Self::Node, Self::Outside];
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "pods",
            Self::Node => "nodes",
            Self::Outside => "outside",
        })
    }
}

/// A port of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    pub number: u16,
    pub protocol: Protocol,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.protocol)
    }
}

/// Packets to one port of one address or hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The address or the hostname; empty where nothing is published.
    pub to: String,
    pub port: Port,
}

/// Which packets something is about: all, unless it says which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Those to these ports.
    pub ports: Option<BTreeSet<Port>>,
    /// Those to this address or hostname.
    pub to: Option<String>,
}

impl Scope {
    /// Packets to one port.
    pub fn port(port: Port) -> Self {
        Self { ports: Some([port].into()), to: None }
    }

    /// Packets to one address or hostname.
    pub fn to(to: impl Into<String>) -> Self {
        Self { ports: None, to: Some(to.into()) }
    }

    /// Whether it is about these packets.
    pub fn holds(&self, flow: &Flow) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.contains(&flow.port))
            && self.to.as_ref().is_none_or(|to| *to == flow.to)
    }
}
