//! Finds the Neutron ports with the nodes' addresses, and what they show: where security groups apply, and which subnet the nodes
//! share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use ipnet::IpNet;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Intent;
use openstack_ccm_core::text::some_of;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Port, PortFilter};

use super::Resolver;
use crate::limits::{MAX_CONCURRENT_CALLS, MAX_NAMES};
use crate::load_balancer::failure::Answered as _;
use crate::load_balancer::objects::Facts;
use crate::load_balancer::settings::Settings;
use crate::load_balancer::settings::node_address::AddressChoice;
use crate::provider_id::ProviderId;

/// Maximum number of servers or subnets in one query: their ids make up 2 KB of its URL.
pub(super) const MAX_IDS_PER_QUERY: usize = 40;
/// Nodes are ignored, because their servers are not known.
const NODES_SKIPPED: &str = "LoadBalancerNodesSkipped";

/// The ports of the nodes that receive traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodePorts {
    /// Ports with a node's address to which security groups apply: server by port id.
    pub(crate) filtering: BTreeMap<String, String>,
    pub(crate) servers: BTreeSet<String>,
}

/// The port with a node's address.
#[derive(Clone, Debug)]
pub(super) struct NodePort {
    id: String,
    filters: bool,
    subnet_id: String,
}

/// A node that receives traffic, with its address for load balancers.
struct Candidate<'a> {
    node: &'a str,
    address: IpAddr,
    /// Id of the node's server; absent if the server is not in this cloud.
    server: Option<String>,
}

impl Candidate<'_> {
    /// Returns the cache key of the node's port.
    fn key(&self) -> Option<String> {
        Some(format!("{} {}", self.server.as_ref()?, self.address))
    }

    fn port_among(&self, ports: &[Port]) -> Option<NodePort> {
        let of_server = ports.iter().filter(|port| Some(&port.device_id) == self.server.as_ref());
        let mut fixed_ips = of_server.flat_map(|port| port.fixed_ips.iter().map(move |fixed| (port, fixed)));
        let (port, fixed) = fixed_ips.find(|(_, fixed)| fixed.ip_address.parse() == Ok(self.address))?;
        let (filters, subnet_id) = (port.port_security_enabled, fixed.subnet_id.clone());
        Some(NodePort { id: port.id.clone(), filters, subnet_id })
    }
}

fn candidates<'a>(intent: &'a Intent, settings: &Settings, addresses: &AddressChoice) -> Vec<Candidate<'a>> {
    let nodes = intent.nodes.iter().filter(|node| settings.node_selector.matches(node));
    let candidate = |node: &'a Arc<_>| {
        let address = addresses.of(node)?;
        let id = node.provider_id.as_deref().and_then(|id| ProviderId::parse(id).ok());
        Some(Candidate { node: &node.name, address, server: id.map(|id| id.server) })
    };
    nodes.filter_map(candidate).collect()
}

impl Resolver {
    /// Returns the ports of the nodes that become members. Nodes without a server in this cloud are ignored, with a notice.
    pub(crate) async fn node_ports(
        &self,
        intent: &Intent,
        settings: &Settings,
        addresses: &AddressChoice,
        notices: &mut Vec<Notice>,
    ) -> Result<NodePorts, Failure> {
        let candidates = candidates(intent, settings, addresses);
        let strangers = candidates.iter().filter(|candidate| candidate.server.is_none());
        notices.extend(skipped("get no security group", strangers));
        let ports = self.find_ports(&candidates).await?;
        let mut found = NodePorts::default();
        for (candidate, port) in candidates.into_iter().zip(ports) {
            let Some(server) = candidate.server else { continue };
            if let Some(port) = port.filter(|port| port.filters) {
                found.filtering.insert(port.id, server.clone());
            }
            found.servers.insert(server);
        }
        Ok(found)
    }

    /// Returns the subnet that most nodes share, for a Service without a configured one; of two equal ones, the one with the
    /// smaller id. Nodes without a port are ignored, with a notice.
    pub(super) async fn node_subnet(
        &self,
        intent: &Intent,
        settings: &Settings,
        notices: &mut Vec<Notice>,
    ) -> Result<String, Failure> {
        let addresses = AddressChoice { family: settings.family, ..AddressChoice::default() };
        let candidates = candidates(intent, settings, &addresses);
        let ports = self.find_ports(&candidates).await?;
        let silent = candidates.iter().zip(&ports).filter(|(_, port)| port.is_none());
        let silent = silent.map(|(candidate, _)| candidate);
        notices.extend(skipped("were not considered for the subnet of the load balancer", silent));
        most_shared(ports.into_iter().flatten().map(|port| port.subnet_id)).ok_or_else(|| {
            Failure::user_input(
                "no subnet is configured, and no node's address belongs to a port in this project: set subnet-id in cloud.conf or \
                 loadbalancer.openstack.org/subnet-id on the Service",
            )
        })
    }

    async fn find_ports(&self, candidates: &[Candidate<'_>]) -> Result<Vec<Option<NodePort>>, Failure> {
        let begun = Moment::now();
        let known = |candidate: &Candidate<'_>| self.node_ports.get(&candidate.key()?);
        let unknown = candidates.iter().filter(|candidate| known(candidate).is_none());
        let unknown: BTreeSet<&String> = unknown.filter_map(|candidate| candidate.server.as_ref()).collect();
        let unknown: Vec<String> = unknown.into_iter().cloned().collect();
        let lists: Result<Vec<Vec<Port>>, _> =
            stream::iter(unknown.chunks(MAX_IDS_PER_QUERY).map(<[String]>::to_vec))
                .map(|servers| self.ports_of(servers))
                .buffered(MAX_CONCURRENT_CALLS)
                .try_collect()
                .await;
        let ports = lists.while_doing("looking for the nodes' ports")?.concat();
        let found = candidates.iter().map(|candidate| {
            known(candidate).or_else(|| {
                let port = candidate.port_among(&ports)?;
                // A missing port is not cached, since a node may get its port later.
                self.node_ports.insert(candidate.key()?, begun, port.clone());
                Some(port)
            })
        });
        Ok(found.collect())
    }

    async fn ports_of(&self, servers: Vec<String>) -> Result<Vec<Port>, Arc<ApiError>> {
        let key = servers.join(" ");
        self.ports_of_servers
            .get_or_fetch(&key, self.openstack.neutron.list_ports(&PortFilter::devices(servers)))
            .await
    }

    /// Clears the cache of the nodes' ports, because one of them is gone.
    pub(crate) fn forget_node_ports(&self) {
        // In this order, a query in between sends a request of its own.
        self.ports_of_servers.clear();
        self.node_ports.clear();
    }

    /// Returns the networks from which the load balancer reaches its members. `None` while the subnet of a new load balancer is not
    /// known.
    pub(crate) async fn member_networks(&self, facts: &Facts) -> Result<Option<BTreeSet<IpNet>>, Failure> {
        let subnet = facts.member_subnet_id.as_deref().or(facts.vip_subnet_id.as_deref());
        let subnets = self.subnets(&subnet.into_iter().collect(), "member-subnet-id").await?;
        let networks = subnets.iter().filter_map(|subnet| subnet.cidr.parse::<IpNet>().ok());
        let networks: BTreeSet<IpNet> = networks.map(|network| network.trunc()).collect();
        Ok((!networks.is_empty()).then_some(networks))
    }
}

fn most_shared(subnets: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for subnet in subnets {
        *counts.entry(subnet).or_default() += 1;
    }
    // Take the first maximum in the order of ids.
    let most = counts.values().copied().max();
    counts.into_iter().find(|(_, count)| Some(*count) == most).map(|(subnet, _)| subnet)
}

/// Returns the notice about nodes without a server in this cloud; `what` is the effect.
fn skipped<'a>(what: &str, nodes: impl Iterator<Item = &'a Candidate<'a>>) -> Option<Notice> {
    let nodes: Vec<&str> = nodes.map(|candidate| candidate.node).collect();
    let names = some_of(&nodes, MAX_NAMES);
    (!nodes.is_empty()).then(|| {
        let message = format!(
            "nodes {names} {what}: their providerID does not refer to a server with a port in this project"
        );
        Notice::warning(NODES_SKIPPED, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(subnets: &[&str]) -> Option<String> {
        most_shared(subnets.iter().map(|subnet| (*subnet).to_owned()))
    }

    /// Defect: 27, better: the choice does not depend on the order of the nodes.
    #[test]
    fn the_subnet_of_most_nodes_wins_whatever_their_order() {
        assert_eq!(shared(&["s2", "s1", "s2"]).as_deref(), Some("s2"));
    }

    #[test]
    fn a_tie_goes_to_the_smaller_id() {
        assert_eq!(shared(&["s2", "s1"]).as_deref(), Some("s1"));
    }

    #[test]
    fn no_node_gives_no_subnet() {
        assert_eq!(shared(&[]), None);
    }
}
