//! The machines behind nodes: what a provider knows of them, and what follows for the Node objects.
//!
//! | module | decides |
//! | --- | --- |
//! | [`address`] | which addresses a node gets, given what its kubelet asked for |
//! | [`label`] | which labels a node gets |
//! | [`missing`] | whether an answer that many machines are gone is believed |

pub mod address;
pub mod label;
pub mod missing;

use std::collections::BTreeMap;
use std::net::IpAddr;

use async_trait::async_trait;

use crate::failure::Failure;
use address::InstanceAddress;

/// Taint of a kubelet that waits for a cloud provider; recognised by its key alone.
pub const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Taint of a node whose machine is shut down, with effect [`NO_SCHEDULE`] and without a value.
pub const SHUT_DOWN_TAINT: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// The effect of a taint that keeps new pods off a node.
pub const NO_SCHEDULE: &str = "NoSchedule";

/// The machines of a cloud.
///
/// Both methods return one answer per node, in the order of the request. A request about one node costs a few calls; a
/// request about many costs a fixed number of lists, never a call for each node. `Err` means that nothing is known about
/// any of them.
#[async_trait]
pub trait Instances: Send + Sync {
    /// Returns whether the machines of these nodes exist and run.
    async fn presence(&self, nodes: &[NodeIdentity]) -> Result<Vec<Presence>, Failure>;

    /// Describes the machines of these nodes.
    async fn describe(&self, nodes: &[NodeIdentity]) -> Result<Vec<Description>, Failure>;
}

/// The attributes by which a node's machine is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeIdentity {
    /// `metadata.name`; the name of the machine while the node has no provider id.
    pub name: String,
    /// `spec.providerID`
    pub provider_id: Option<String>,
    /// `status.nodeInfo.systemUUID`, an unverified claim of the kubelet.
    pub system_uuid: Option<String>,
    /// Addresses in the node's status or from its kubelet's `--node-ip`.
    pub addresses: Vec<IpAddr>,
}

/// Whether a machine exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The machine exists and is not known to be shut down, whatever its state.
    Exists,
    /// The machine exists and is shut down.
    ShutDown,
    /// The cloud reports that no machine has the node's provider id.
    Gone,
    /// The node belongs to another provider or region: nothing may be concluded, and nothing done.
    Foreign(String),
    /// The node has no provider id, and no machine in the cloud matches it: perhaps there never was one.
    Unnamed(Failure),
    /// The state of the machine could not be determined.
    Unknown(Failure),
}

/// What is known of a node's machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// The machine was found.
    Found(Box<Instance>),
    /// No machine has the node's provider id.
    Gone {
        /// The failure to report.
        failure: Failure,
        /// Provider id of the machine that has the node's name, if there is one.
        namesake: Option<String>,
    },
    /// The node belongs to another provider or region and stays as it is.
    Foreign(String),
    /// The node has no provider id, and no machine in this cloud matches it: another instance, for another region, may know it.
    PerhapsForeign(Failure),
    /// The machine could not be looked up.
    Unknown(Failure),
}

/// A machine. Empty texts count as absent: they set nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// `spec.providerID` of its node.
    pub provider_id: Option<String>,
    /// Kind of machine, for `node.kubernetes.io/instance-type`.
    pub instance_type: Option<String>,
    /// Availability zone, for `topology.kubernetes.io/zone`.
    pub zone: Option<String>,
    /// Region, for `topology.kubernetes.io/region`.
    pub region: Option<String>,
    /// Addresses, in the order for `status.addresses`.
    pub addresses: Vec<InstanceAddress>,
    /// Further labels, which change with the machine; one without a value goes. See [`label::initial`] for those that are not taken.
    pub labels: BTreeMap<String, String>,
}
