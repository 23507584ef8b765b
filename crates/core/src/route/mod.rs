//! Routes of pod networks: each node's pods are reached over a route of the cloud whose next hop is the node.
//!
//! | module | holds |
//! | --- | --- |
//! | [`range`] | the cluster's ranges of pod addresses: which routes may be changed at all |
//! | [`plan`] | which routes are wanted, kept and removed |
//! | [`condition`] | the condition `NetworkUnavailable` of a node |

pub mod condition;
pub mod plan;
pub mod range;

use std::net::IpAddr;

use async_trait::async_trait;
use ipnet::IpNet;

use crate::failure::Failure;
use crate::node::NodeAddress;
use plan::Changes;

/// The routes of a cloud.
#[async_trait]
pub trait Routes: Send + Sync {
    /// Whether this cloud, configured as it is, can hold routes. It is called until it succeeds; the answer is final.
    async fn support(&self) -> Result<Support, Failure>;

    /// Lists all routes, whoever created them.
    ///
    /// # Errors
    /// The whole list could not be read; a part of it is never returned.
    async fn list(&self) -> Result<RouteTable, Failure>;

    /// Makes the changes that were decided on `table`, the last answer of [`Routes::list`]. Incomplete routes that are to be kept
    /// are completed.
    ///
    /// # Guarantees that an implementation gives
    /// - It may be stopped (dropped, killed) at any call to the cloud; the next run ends in the same state.
    /// It never changes a route that is not named in `changes`, even if another client writes at the same time.
    /// - It makes no call where nothing is to be done.
    async fn apply(&self, table: &RouteTable, changes: &Changes) -> Applied;
}

/// Whether a cloud can hold routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The cloud can hold routes.
    Full,
    /// The cloud cannot hold routes, for this reason.
    None(String),
}

/// All routes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable {
    /// The routes, in no fixed order.
    pub routes: Vec<ListedRoute>,
    /// Revision that rises with each change of the table, if the cloud has one.
    pub revision: Option<u64>,
}

/// A route as the cloud writes it. The texts are kept, so that exactly this route can be removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListedRoute {
    /// The network to which the route leads.
    pub destination: String,
    /// The address to which packets are sent.
    pub next_hop: String,
}

/// A route to the pods of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeRoute {
    /// The range of the node's pods, without host bits.
    pub destination: IpNet,
    /// An address of the node, of the same family.
    pub next_hop: IpAddr,
}

/// The fields of a node on which its routes depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedNode {
    /// `metadata.name`
    pub name: String,
    /// `spec.podCIDRs`, in order.
    pub pod_cidrs: Vec<String>,
    /// `status.addresses`, in order.
    pub addresses: Vec<NodeAddress>,
}

/// The parts of [`Changes`] that failed; the rest succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Routes of nodes that are missing or incomplete.
    pub missing: Vec<(NodeRoute, Failure)>,
    /// Routes that could not be removed.
    pub left: Vec<(ListedRoute, Failure)>,
}
