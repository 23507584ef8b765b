//! Packets to the Service, sent from everywhere, and where they ended.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use openstack_ccm_kube_sim::{
    DataPath, Departure, Destination, Reached, Reading, Sender, Stop, Transport as InCluster,
};
use openstack_ccm_openstack_sim::{Loss, Packet, Transport};
use serde_json::Value;

use super::cluster::CLIENTS;
use super::stage::{FOREIGN, FOREIGN_PROXY, Kind, Stage};
use crate::support::PROXY;

/// Where packets come from, as doctor calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Pods,
    Nodes,
    Outside,
}

impl Origin {
    pub(super) const ALL: [Self; 3] = [Self::Pods, Self::Nodes, Self::Outside];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Nodes => "nodes",
            Self::Outside => "outside",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    /// An address, or a hostname.
    pub(super) to: String,
    pub(super) port: u16,
    pub(super) protocol: String,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to, port, protocol } = self;
        write!(f, "{to} {port}/{protocol}")
    }
}

/// Where a packet ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The name has no address.
    Name,
    /// A policy kept it in the pod.
    Egress,
    Cloud(Loss),
    Cluster(Stop),
    /// The pod got it around the load balancer, and misses the header or does not know it.
    AroundLoadBalancer,
    /// The pool does not send what the Service asks for.
    Pool,
    /// The application wants something else than the Service asks for.
    Application,
}

impl Place {
    /// The hops at which it may be said to end.
    pub(super) fn hops(self) -> &'static [u64] {
        match self {
            Self::Name => &[1, 2],
            Self::Egress => &[4],
            // The address is nobody's, or no longer the load balancer's.
            Self::Cloud(Loss::Address) => &[2, 5],
            Self::Cloud(Loss::Egress) => &[4],
            Self::Cloud(Loss::Listener | Loss::Pool) => &[5],
            Self::Cloud(Loss::Client) => &[4, 5],
            // That all members are down may be seen at what they stand for.
            Self::Cloud(Loss::Member) => &[7, 8],
            Self::Cloud(Loss::Machine) => &[7, 8],
            Self::Cloud(Loss::SecurityGroup) => &[7],
            Self::Cluster(Stop::Node) => &[7, 8],
            Self::Cluster(Stop::NodePort) => &[7, 8],
            // They count only because the address is short-circuited.
            Self::Cluster(Stop::SourceRanges) => &[2, 3, 4],
            Self::Cluster(Stop::Endpoint) => &[8],
            Self::Cluster(Stop::Policy) => &[4, 8],
            Self::Cluster(Stop::Port) => &[8, 9],
            Self::AroundLoadBalancer => &[2, 3],
            Self::Pool => &[6],
            Self::Application => &[9],
        }
    }
}

/// What became of all packets of one flow from one origin.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    pub(super) arrived: usize,
    pub(super) lost: BTreeSet<Place>,
}

impl Sent {
    /// The hops at which packets ended.
    pub(super) fn hops(&self) -> BTreeSet<u64> {
        self.lost.iter().flat_map(|place| place.hops()).copied().collect()
    }

    fn note(&mut self, result: Result<(), Place>) {
        match result {
            Ok(()) => self.arrived += 1,
            Err(place) => drop(self.lost.insert(place)),
        }
    }
}

fn number(value: &Value) -> u16 {
    value.as_u64().and_then(|number| u16::try_from(number).ok()).unwrap_or_default()
}

/// The network of nodes and VIPs.
const INSIDE: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 24));

/// Clients outside: one that source ranges of the worlds let in, and some that none do.
fn outside(kind: Kind, v6: bool) -> [IpAddr; 3] {
    let addresses = match (kind, v6) {
        (_, true) => ["2001:db8::7", "2001:db8:1::9", "2001:db8:2::9"],
        // On the network of the cluster, which alone has a way there.
        (Kind::Internal, false) => ["198.18.0.200", "198.18.0.201", "198.18.0.202"],
        (_, false) => ["203.0.113.7", "192.0.2.9", "100.64.0.9"],
    };
    addresses.map(|address| address.parse().unwrap())
}

/// A world at one moment.
pub(super) struct Moment<'a> {
    stage: &'a Stage,
    web: Value,
    data_path: DataPath,
}

impl<'a> Moment<'a> {
    pub(super) fn of(stage: &'a Stage) -> Self {
        Self { stage, web: stage.web(), data_path: stage.world.kube.data_path() }
    }

    pub(super) fn kind(&self) -> Kind {
        self.stage.kind
    }

    /// Everywhere that clients of the Service go.
    pub(super) fn flows(&self) -> Vec<Flow> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let entries = list(&self.web["status"]["loadBalancer"]["ingress"]);
        let places = entries.iter().filter_map(|entry| entry["ip"].as_str().or(entry["hostname"].as_str()));
        let ports = list(&self.web["spec"]["ports"]);
        let flow = |to: &str, port: &Value| Flow {
            to: to.to_owned(),
            port: number(&port["port"]),
            protocol: port["protocol"].as_str().unwrap_or("TCP").to_owned(),
        };
        places.flat_map(|to| ports.iter().map(move |port| flow(to, port))).collect()
    }

    /// Sends packets of a flow from every client of an origin, by every way that they may take; from outside those that are chosen, and
    /// one of each network that is named.
    pub(super) fn send(
        &self,
        origin: Origin,
        flow: &Flow,
        networks: &[IpNet],
        chosen: impl Fn(IpAddr) -> bool,
    ) -> Sent {
        let mut sent = Sent::default();
        let Some(address) = flow.to.parse().ok().or_else(|| Stage::resolve(&flow.to)) else {
            sent.note(Err(Place::Name));
            return sent;
        };
        let way = Way { moment: self, flow, address };
        match origin {
            Origin::Pods => {
                for (namespace, name, ..) in CLIENTS {
                    way.send_from_inside(&Sender::Pod(namespace.to_owned(), name.to_owned()), &mut sent);
                }
            }
            Origin::Nodes => {
                for node in ["node-1", "node-2"] {
                    way.send_from_inside(&Sender::Node(node.to_owned()), &mut sent);
                }
            }
            Origin::Outside => {
                let named = networks.iter().filter_map(|network| network.hosts().next());
                // The network of the cluster is no place outside, unless it is the only one with a way there.
                let is_inside =
                    |client: &IpAddr| self.stage.kind != Kind::Internal && INSIDE.contains(client);
                let named =
                    named.filter(|client| client.is_ipv6() == address.is_ipv6() && !is_inside(client));
                let clients = outside(self.stage.kind, address.is_ipv6()).into_iter().chain(named);
                for client in clients.filter(|client| chosen(*client)) {
                    way.to_load_balancer(client, &mut sent);
                }
            }
        }
        sent
    }
}

struct Way<'a> {
    moment: &'a Moment<'a>,
    flow: &'a Flow,
    address: IpAddr,
}

impl Way<'_> {
    fn is_udp(&self) -> bool {
        self.flow.protocol == "UDP"
    }

    fn in_cluster(&self) -> InCluster {
        if self.is_udp() { InCluster::Udp } else { InCluster::Tcp }
    }

    fn send_from_inside(&self, sender: &Sender, sent: &mut Sent) {
        let to = Destination { address: self.address, port: self.flow.port, transport: self.in_cluster() };
        match self.moment.data_path.leave(sender, to).unwrap() {
            Departure::Denied => sent.note(Err(Place::Egress)),
            Departure::Leaves(source) => self.to_load_balancer(source, sent),
            Departure::Around(service, results) => {
                for result in results {
                    let elsewhere = service != "default/web";
                    sent.note(if elsewhere {
                        Err(Place::AroundLoadBalancer)
                    } else {
                        self.at_pod(result, None)
                    });
                }
            }
        }
    }

    fn to_load_balancer(&self, source: IpAddr, sent: &mut Sent) {
        if !self.moment.stage.kind.is_in_cloud() {
            return self.to_foreign(sent);
        }
        let transport = if self.is_udp() { Transport::Udp } else { Transport::Tcp };
        let packet = Packet { from: source, to: self.address, port: self.flow.port, transport };
        for result in self.moment.stage.world.cloud.send(&packet) {
            match result {
                Err(loss) => sent.note(Err(Place::Cloud(loss))),
                Ok(delivery) => {
                    self.to_node(delivery.address, delivery.port, delivery.from, delivery.header, sent);
                }
            }
        }
    }

    /// The load balancer of another cloud sends to the node ports of all nodes.
    fn to_foreign(&self, sent: &mut Sent) {
        if self.address != FOREIGN {
            return sent.note(Err(Place::Cloud(Loss::Address)));
        }
        let ports = self.moment.web["spec"]["ports"].as_array().unwrap();
        let Some(port) = ports.iter().find(|port| number(&port["port"]) == self.flow.port) else {
            return sent.note(Err(Place::Cloud(Loss::Listener)));
        };
        let header = self.moment.web["metadata"]["annotations"][FOREIGN_PROXY] == "true";
        let from = "198.18.0.250".parse().unwrap();
        for node in self.moment.stage.world.cloud.nodes() {
            self.to_node(node.addresses[0].parse().unwrap(), number(&port["nodePort"]), from, header, sent);
        }
    }

    fn to_node(&self, address: IpAddr, port: u16, from: IpAddr, header: bool, sent: &mut Sent) {
        let to = Destination { address, port, transport: self.in_cluster() };
        for result in self.moment.data_path.arrive(to, from) {
            sent.note(self.at_pod(result, Some(header)));
        }
    }

    /// What the pod makes of a packet; `header` is whether the load balancer put one before it, absent around it.
    fn at_pod(&self, reached: Result<Reached, Stop>, header: Option<bool>) -> Result<(), Place> {
        let reached = reached.map_err(Place::Cluster)?;
        let has_header = header.unwrap_or_default();
        let fits = match reached.reading {
            Reading::Optional => true,
            Reading::Required => has_header,
            Reading::Never => !has_header,
        };
        if self.is_udp() || fits {
            return Ok(());
        }
        let expected = reached.reading == Reading::Required;
        // With a value that is none the pools stay as they are: what they send is what is asked for.
        let asked = self.asks_for_header().or(header);
        Err(match header {
            _ if asked.is_some_and(|asked| asked != expected) => Place::Application,
            None => Place::AroundLoadBalancer,
            Some(_) => Place::Pool,
        })
    }

    /// Absent where the value is none.
    fn asks_for_header(&self) -> Option<bool> {
        let annotations = &self.moment.web["metadata"]["annotations"];
        let value = annotations[PROXY].as_str().or(annotations[FOREIGN_PROXY].as_str());
        match value {
            None | Some("false") => Some(false),
            Some("true" | "v1" | "v2") => Some(true),
            Some(_) => None,
        }
    }
}
