//! The hops of a packet, and where it may come from.

use std::fmt;

use serde::Serialize;

/// A hop, in the order in which a packet meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hop {
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
    pub const ALL: [Self; 9] = [
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

    /// Its number, from 1.
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|hop| *hop == self).map_or(0, |place| place + 1)
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
            Self::Pod => "a pod",
            Self::Node => "a node",
            Self::Outside => "outside",
        })
    }
}
