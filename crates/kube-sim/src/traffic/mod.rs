//! What the nodes of a cluster do with packets: the service proxy, as kube-proxy was recorded to do it, and NetworkPolicies, as
//! Kubernetes defines them. Nothing is sent; pods, nodes, Services and slices of the simulator say all of it.
//!
//! | module | holds |
//! | --- | --- |
//! | `kube_proxy` | what the service proxy of a node is, and how it is set up |
//! | `objects` | reading the objects that matter |
//! | `policy` | NetworkPolicies |
//! | `proxy` | the service proxy of a node |

mod kube_proxy;
mod objects;
mod policy;
mod proxy;

use std::net::IpAddr;

use serde_json::Value;

use crate::sim::Sim;
use kube_proxy::KubeProxy;
use objects::Objects;
use policy::{Direction, Peer};

pub use kube_proxy::honours_ip_mode;
pub use objects::{READS_HEADER, Reading};

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// Who sends a packet in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// A pod, by namespace and name.
    Pod(String, String),
    /// A process on the network of the node with this name.
    Node(String),
}

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination {
    pub address: IpAddr,
    pub port: u16,
    pub transport: Transport,
}

/// What becomes of a packet on the node of its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    /// A NetworkPolicy keeps it in.
    Denied,
    /// The service proxy sends it to a pod of this Service, `namespace/name`, at once: what becomes of it at each that it may be.
    Around(String, Vec<Result<Reached, Stop>>),
    /// It leaves the node for its destination, with this address as its source.
    Leaves(IpAddr),
}

/// A pod that gets a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    pub namespace: String,
    pub pod: String,
    /// The port of the pod.
    pub port: u16,
    pub transport: Transport,
    /// What the port makes of the PROXY protocol header of this connection.
    pub reading: Reading,
}

/// Where a packet ends in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stop {
    /// The cluster has no such node.
    Node,
    /// No Service has the node port, or the service proxy opens none at this address.
    NodePort,
    /// `loadBalancerSourceRanges` lack the client, which counts where the node sends to a pod at once.
    SourceRanges,
    /// No endpoint of that port, protocol and family is ready, or none on this node with `externalTrafficPolicy: Local`.
    Endpoint,
    /// A NetworkPolicy keeps the packet out of the pod.
    Policy,
    /// No container of the pod runs, or none listens.
    Port,
}

/// A cluster at one moment, as packets meet it.
pub struct DataPath(Objects);

impl Sim {
    /// What packets meet now.
    pub fn data_path(&self) -> DataPath {
        DataPath(Objects::read(self))
    }
}

impl DataPath {
    /// What becomes of a packet on the node of its sender.
    ///
    /// # Errors
    /// The sender is not there.
    pub fn leave(&self, sender: &Sender, to: Destination) -> Result<Departure, Stop> {
        let objects = &self.0;
        let (node, pod) = match sender {
            Sender::Node(name) => (name.clone(), None),
            Sender::Pod(namespace, name) => {
                let pod = objects.pod(namespace, name).ok_or(Stop::Node)?;
                (text(&pod["spec"]["nodeName"]).to_owned(), Some(pod))
            }
        };
        let node = objects.node(&node).ok_or(Stop::Node)?;
        let own = objects::address_of(node, to.address.is_ipv6()).ok_or(Stop::Node)?;
        let Some(captured) = proxy::captured(objects, node, to) else {
            let denied = pod.is_some_and(|pod| {
                !policy::lets(objects, pod, Direction::Egress, Peer::Address(to.address), to)
            });
            // A pod leaves the cluster with the address of its node.
            return Ok(if denied { Departure::Denied } else { Departure::Leaves(own) });
        };
        let source = pod.and_then(objects::pod_address).unwrap_or(own);
        let proxy::Captured { service, port, external } = captured;
        let metadata = &service["metadata"];
        let name = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
        if !external && !proxy::in_ranges(service, source) {
            return Ok(Departure::Around(name, vec![Err(Stop::SourceRanges)]));
        }
        // The destination is rewritten before a policy sees it, and the source of a pod stays what it is.
        let found = proxy::endpoints(objects, service, port, to.address.is_ipv6(), None);
        let reached = found.into_iter().map(|endpoint| {
            let at = Destination { address: endpoint.address, port: endpoint.port, ..to };
            let egress = |pod: &Value| {
                let peer = objects.pod_at(at.address).map_or(Peer::Address(at.address), Peer::Pod);
                policy::lets(objects, pod, Direction::Egress, peer, at)
            };
            if pod.is_some_and(|pod| !egress(pod)) {
                return Err(Stop::Policy);
            }
            let peer = pod.map_or(Peer::Address(own), Peer::Pod);
            // Kubernetes: whatever policies say, a node reaches the pods that run on it.
            let is_own = pod.is_none()
                && objects
                    .pod_at(at.address)
                    .is_some_and(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"]);
            reach(objects, at, if is_own { &[] } else { std::slice::from_ref(&peer) }, source)
        });
        Ok(Departure::Around(name, at_least_one(reached.collect())))
    }

    /// What becomes of a packet that comes to a node port: of each endpoint that may get it, whether it arrives there.
    pub fn arrive(&self, to: Destination, from: IpAddr) -> Vec<Result<Reached, Stop>> {
        let objects = &self.0;
        let Some(node) = objects.node_at(to.address) else { return vec![Err(Stop::Node)] };
        let opened = KubeProxy::of(objects, node).opens_at(node, to.address);
        let Some((service, port)) = proxy::behind_node_port(objects, to).filter(|_| opened) else {
            return vec![Err(Stop::NodePort)];
        };
        let local = service["spec"]["externalTrafficPolicy"] == "Local";
        let here = local.then(|| text(&node["metadata"]["name"]));
        let found = proxy::endpoints(objects, service, port, to.address.is_ipv6(), here);
        let reached = found.into_iter().map(|endpoint| {
            let at = Destination { address: endpoint.address, port: endpoint.port, ..to };
            // Without `Local` the node puts its own address in the place of the sender's; whether a policy on the same node sees
            // that one or the other is a matter of the network plugin.
            let masquerade = (!local).then_some(Peer::Address(to.address));
            let peers: Vec<Peer<'_>> = std::iter::once(Peer::Address(from)).chain(masquerade).collect();
            reach(objects, at, &peers, if local { from } else { to.address })
        });
        at_least_one(reached.collect())
    }
}

fn at_least_one(reached: Vec<Result<Reached, Stop>>) -> Vec<Result<Reached, Stop>> {
    if reached.is_empty() { vec![Err(Stop::Endpoint)] } else { reached }
}

/// Whether a pod takes a packet that policies see come from these, and the pod from that address.
fn reach(objects: &Objects, at: Destination, peers: &[Peer<'_>], from: IpAddr) -> Result<Reached, Stop> {
    let pod = objects.pod_at(at.address).ok_or(Stop::Port)?;
    if !peers.iter().all(|peer| policy::lets(objects, pod, Direction::Ingress, *peer, at)) {
        return Err(Stop::Policy);
    }
    if !objects::runs(pod) || !objects::listens(pod, at.port, at.transport) {
        return Err(Stop::Port);
    }
    Ok(Reached {
        namespace: text(&pod["metadata"]["namespace"]).to_owned(),
        pod: text(&pod["metadata"]["name"]).to_owned(),
        port: at.port,
        transport: at.transport,
        reading: objects::reading(pod, at.port, from),
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
