//! Reads the ports of servers, and the sub-ports of their trunks.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::address::InstanceAddress;
use openstack_ccm_openstack_api::neutron::{NetworkFilter, Neutron, Port, PortFilter};
use openstack_ccm_openstack_api::nova::Server;

use super::addresses::{self, SubPort};
use crate::config::Networking;
use crate::load_balancer::failure::{Answered as _, present};

/// The ports that were read for a set of servers.
#[derive(Debug, Default)]
pub(super) struct Ports {
    /// Ports by id.
    ports: BTreeMap<String, Port>,
    /// Port ids by server.
    of_server: BTreeMap<String, Vec<String>>,
    /// Names of networks by id, if there are sub-ports.
    networks: BTreeMap<String, String>,
}

impl Ports {
    /// Reads the ports of these servers: those of one server by its id, those of several in one list.
    pub(super) async fn of(neutron: &Neutron, servers: &[&Server]) -> Result<Self, Failure> {
        let filter = match servers {
            [] => return Ok(Self::default()),
            [server] => PortFilter::device(&server.id),
            several => PortFilter { project_id: common_project(several), ..PortFilter::default() },
        };
        let list = neutron.list_ports(&filter).await.while_doing("listing the ports of servers")?;
        let mut ports = Self::default();
        for port in list {
            ports.of_server.entry(port.device_id.clone()).or_default().push(port.id.clone());
            ports.ports.insert(port.id.clone(), port);
        }
        ports.add_sub_ports(neutron, servers).await?;
        Ok(ports)
    }

    /// Reads the sub-ports that the list lacks, and the names of their networks. Without trunks this costs nothing.
    async fn add_sub_ports(&mut self, neutron: &Neutron, servers: &[&Server]) -> Result<(), Failure> {
        let wanted: BTreeSet<String> =
            servers.iter().flat_map(|server| self.sub_port_ids(&server.id)).collect();
        let missing: Vec<&String> = wanted.iter().filter(|id| !self.ports.contains_key(*id)).collect();
        let mut read = Vec::new();
        for id in missing {
            // A missing sub-port was just removed from the trunk, or belongs to another project.
            let port = present(neutron.get_port(id).await);
            read.extend(port.while_doing(format_args!("reading the sub-port {id}"))?);
        }
        self.ports.extend(read.into_iter().map(|port| (port.id.clone(), port)));
        if wanted.iter().any(|id| self.ports.contains_key(id)) {
            let networks = neutron.list_networks(&NetworkFilter::default()).await;
            let networks = networks.while_doing("listing the networks")?;
            self.networks = networks.into_iter().map(|network| (network.id, network.name)).collect();
        }
        Ok(())
    }

    fn ports_of(&self, server: &str) -> Vec<&Port> {
        self.of_server.get(server).into_iter().flatten().filter_map(|id| self.ports.get(id)).collect()
    }

    fn sub_port_ids(&self, server: &str) -> Vec<String> {
        let trunks = self.ports_of(server).into_iter().filter_map(|port| port.trunk_details.as_ref());
        trunks.flat_map(|trunk| &trunk.sub_ports).map(|sub_port| sub_port.port_id.clone()).collect()
    }

    /// Returns the addresses of a server as addresses of its node.
    pub(super) fn addresses(&self, server: &Server, networking: &Networking) -> Vec<InstanceAddress> {
        let sub_ports = self.sub_port_ids(&server.id);
        let sub_ports: Vec<SubPort<'_>> = sub_ports
            .iter()
            .filter_map(|id| {
                let port = self.ports.get(id)?;
                Some(SubPort { network: self.networks.get(&port.network_id)?, port })
            })
            .collect();
        addresses::addresses(server, &self.ports_of(&server.id), &sub_ports, networking)
    }
}

/// Returns the common project of these servers, if any: an administrator would see the ports of all projects.
fn common_project(servers: &[&Server]) -> Option<String> {
    let projects: BTreeSet<&str> =
        servers.iter().map(|server| server.project_id.as_deref().unwrap_or_default()).collect();
    match projects.into_iter().collect::<Vec<_>>().as_slice() {
        [project] if !project.is_empty() => Some((*project).to_owned()),
        _ => None,
    }
}
