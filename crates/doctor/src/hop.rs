//! The hops of a packet, and its origins.

use std::collections::BTreeSet;
use std::fmt;

use openstack_ccm_core::service::Protocol;
use serde::Serialize;

/// A hop, in the order in which a packet meets them; no packet meets the controller, which maintains all the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hop {
    /// The controller that serves the Service.
    Controller,
    /// The addresses of a hostname of the Service.
    Name,
    /// The published entries in the status of the Service.
    Status,
    /// The service proxy of the client's node.
    Node,
    /// The way to the load balancer.
    Way,
    LoadBalancer,
    /// The PROXY protocol header that the load balancer adds.
    Header,
    /// The members of the load balancer's pools.
    Member,
    /// The node port, and the endpoints behind it.
    NodePort,
    /// The application.
    Backend,
}

impl Hop {
    /// All hops, in order.
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

    /// Returns the number of the hop: 0 for the controller.
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|hop| *hop == self).unwrap_or_default()
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hop {} ({})", self.number(), self.title())
    }
}

/// The origin of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A pod of the cluster.
    Pod,
    /// A process on the network of a node.
    Node,
    /// A client outside the cluster.
    Outside,
}

impl Origin {
    /// All origins.
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
    /// The address or the hostname; empty where none is published.
    pub to: String,
    pub port: Port,
}

/// Which packets a result is about: without limits, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only packets to these ports.
    pub ports: Option<BTreeSet<Port>>,
    /// Only packets to this address or hostname.
    pub to: Option<String>,
}

impl Scope {
    /// Returns the scope of packets to one port.
    pub fn port(port: Port) -> Self {
        Self { ports: Some([port].into()), to: None }
    }

    /// Returns the scope of packets to one address or hostname.
    pub fn to(to: impl Into<String>) -> Self {
        Self { ports: None, to: Some(to.into()) }
    }

    /// Returns whether the packets of a flow are in the scope.
    pub fn holds(&self, flow: &Flow) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.contains(&flow.port))
            && self.to.as_ref().is_none_or(|to| *to == flow.to)
    }
}
