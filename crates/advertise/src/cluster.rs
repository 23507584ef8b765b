//! What is known of a cluster's support for `ipMode`.

use std::fmt;

use crate::node::{Cause, Fitness};

/// Whether the API server keeps `ipMode` in a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerSupport {
    /// A dry-run write without the field came back with its default.
    Keeps,
    /// The write came back without the field: the server is older than 1.29, or its gate is off.
    Drops,
    /// Not probed yet, or the probe failed.
    Unknown,
}

/// What is known of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// `--feature-gates=LoadBalancerIPMode=...`; the operator's setting replaces the detection.
    pub gate: Option<bool>,
    /// The API server.
    pub server: ServerSupport,
    /// The service proxies on the nodes.
    pub data_plane: Fitness,
}

/// Why a cluster cannot honour `ipMode: Proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The operator turned the mode off.
    GateOff,
    /// The API server drops the field.
    ServerDrops,
    /// The API server has not been probed successfully.
    ServerUnknown,
    /// Service proxies on nodes ignore the field.
    DataPlane {
        /// Number of such nodes.
        count: usize,
        /// One of these nodes.
        node: String,
        /// Why that node ignores the field.
        cause: Cause,
    },
}

impl Obstacle {
    /// Stable label value for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::GateOff => "gate_off",
            Self::ServerDrops => "server_drops_ip_mode",
            Self::ServerUnknown => "server_unknown",
            Self::DataPlane { cause, .. } => cause.as_str(),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GateOff => f.write_str("the flag --feature-gates=LoadBalancerIPMode=false disables ipMode"),
            Self::ServerDrops => f.write_str(
                "the API server drops ipMode (it is older than 1.29, or feature gate LoadBalancerIPMode is off)",
            ),
            Self::ServerUnknown => {
                f.write_str("openstack-ccm does not know yet whether the API server stores ipMode")
            }
            Self::DataPlane { count: 1, node, cause } => {
                write!(f, "node {node} does not honour ipMode: {cause}")
            }
            Self::DataPlane { count, node, cause } => {
                write!(f, "{count} nodes do not honour ipMode, for example {node}: {cause}")
            }
        }
    }
}

impl Cluster {
    /// Returns what keeps the API server from storing the field, if anything does.
    ///
    /// A server that was seen to drop the field outweighs a flag that says otherwise: the answer to a write is the final
    /// word for that write.
    pub fn server_obstacle(&self) -> Option<Obstacle> {
        match (self.gate, self.server) {
            (Some(false), _) => Some(Obstacle::GateOff),
            (_, ServerSupport::Drops) => Some(Obstacle::ServerDrops),
            (Some(true), ServerSupport::Unknown) | (_, ServerSupport::Keeps) => None,
            (None, ServerSupport::Unknown) => Some(Obstacle::ServerUnknown),
        }
    }

    /// Returns what keeps `ipMode: Proxy` from having its effect, if anything does.
    pub fn obstacle(&self) -> Option<Obstacle> {
        self.server_obstacle().or_else(|| match (&self.gate, &self.data_plane) {
            (Some(_), _) | (None, Fitness::Fit) => None,
            (None, Fitness::Unfit { count, node, cause, source: _ }) => {
                Some(Obstacle::DataPlane { count: *count, node: node.clone(), cause: cause.clone() })
            }
        })
    }
}
