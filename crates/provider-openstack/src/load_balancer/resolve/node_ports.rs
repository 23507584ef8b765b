//! The Neutron ports that carry the addresses of the nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use ipnet::IpNet;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Intent;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Port, PortFilter};

use super::Resolver;
use super::node_subnet::server_id;
use super::subnets::skipped;
use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::model::facts::Facts;
use crate::load_balancer::settings::{Settings, node_address};

/// So many servers are named in one question: their ids make up a query of 2 KB.
const SERVERS_AT_ONCE: usize = 40;
/// So many questions are asked at once.
const AT_ONCE: usize = 4;

/// The ports of the nodes that take traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodePorts {
    /// Ports with a node's address to which security groups apply, by id: the server of each.
    pub(crate) filtering: BTreeMap<String, String>,
    /// The servers of all nodes.
    pub(crate) servers: BTreeSet<String>,
}

/// The port that carries a node's address.
#[derive(Clone, Debug)]
pub(super) struct NodePort {
    id: String,
    filters: bool,
}

/// A node's address on its server.
#[derive(Clone, Debug)]
struct ServerAddress {
    server: String,
    address: IpAddr,
}

impl ServerAddress {
    fn key(&self) -> String {
        format!("{} {}", self.server, self.address)
    }
}

impl Resolver {
    /// The ports of the nodes that become members. Nodes without a server of this cloud are left out, with a notice.
    pub(crate) async fn node_ports(
        &self,
        intent: &Intent,
        settings: &Settings,
        notices: &mut Vec<Notice>,
    ) -> Result<NodePorts, Failure> {
        let mut strangers = Vec::new();
        let mut places = Vec::new();
        for node in intent.nodes.iter().filter(|node| settings.node_selector.matches(node)) {
            let Some(address) = node_address::of(node, settings.family) else { continue };
            match node.provider_id.as_deref().and_then(server_id) {
                Some(server) => places.push(ServerAddress { server: server.to_owned(), address }),
                None => strangers.push(node.name.clone()),
            }
        }
        notices.extend(skipped("get no security group", &strangers));
        let found = self.find_node_ports(&places).await;
        found.map_err(|error| failure::of_call(&error, "looking for the nodes' ports", Missing::Race))
    }

    async fn find_node_ports(&self, places: &[ServerAddress]) -> Result<NodePorts, Arc<ApiError>> {
        let known = &self.node_ports;
        let unknown: BTreeSet<&str> = places
            .iter()
            .filter(|place| known.get(&place.key()).is_none())
            .map(|place| place.server.as_str())
            .collect();
        let unknown: Vec<String> = unknown.into_iter().map(str::to_owned).collect();
        let lists: Vec<Vec<Port>> = stream::iter(unknown.chunks(SERVERS_AT_ONCE).map(<[String]>::to_vec))
            .map(|servers| self.ports_of(servers))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let ports: Vec<Port> = lists.into_iter().flatten().collect();
        let mut found = NodePorts::default();
        for place in places {
            found.servers.insert(place.server.clone());
            let port = known.get(&place.key()).or_else(|| {
                let port = ports.iter().find(|port| carries(port, place))?;
                let port = NodePort { id: port.id.clone(), filters: port.port_security_enabled };
                // A node may get its port later: that there is none is not kept.
                known.put(&place.key(), port.clone());
                Some(port)
            });
            if let Some(port) = port.filter(|port| port.filters) {
                found.filtering.insert(port.id, place.server.clone());
            }
        }
        Ok(found)
    }

    async fn ports_of(&self, servers: Vec<String>) -> Result<Vec<Port>, Arc<ApiError>> {
        let key = servers.join(" ");
        self.ports_of_servers
            .get_or_ask(&key, self.openstack.neutron.list_ports(&PortFilter::devices(servers)))
            .await
    }

    /// Forgets what is known of the nodes' ports: one of them is gone.
    pub(crate) fn forget_node_ports(&self) {
        self.node_ports.clear();
        self.ports_of_servers.clear();
    }

    /// The networks from which the load balancer reaches its members. Absent while the subnet of a new load balancer
    /// is not known.
    pub(crate) async fn member_networks(&self, facts: &Facts) -> Result<Option<BTreeSet<IpNet>>, Failure> {
        let subnet = facts.member_subnet_id.as_deref().or(facts.vip_subnet_id.as_deref());
        let subnets = self.subnets(&subnet.into_iter().collect(), "member-subnet-id").await?;
        let networks = subnets.iter().filter_map(|subnet| subnet.cidr.parse::<IpNet>().ok());
        let networks: BTreeSet<IpNet> = networks.map(|network| network.trunc()).collect();
        Ok((!networks.is_empty()).then_some(networks))
    }
}

fn carries(port: &Port, place: &ServerAddress) -> bool {
    port.device_id == place.server
        && port.fixed_ips.iter().any(|fixed| fixed.ip_address.parse() == Ok(place.address))
}
