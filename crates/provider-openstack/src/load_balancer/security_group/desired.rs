//! The security group that a Service wants. Pure.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{Protocol, Service};

use super::model::{DesiredGroup, Opening};
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::Features;
use crate::load_balancer::resolve::NodePorts;
use crate::load_balancer::settings::node_address::family_of;
use crate::load_balancer::settings::{Aspect, Settings};

/// OCCM uses the same reason.
const RANGES_IGNORED: &str = "LoadBalancerSourceRangesIgnored";

/// The inputs for a desired group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupSources<'a> {
    pub(crate) service: &'a Service,
    pub(crate) settings: &'a Settings,
    pub(crate) names: &'a Names,
    pub(crate) features: Features,
    /// Networks from which the load balancer reaches the members.
    pub(crate) member_networks: &'a BTreeSet<IpNet>,
    pub(crate) node_ports: &'a NodePorts,
}

/// Returns the group with a rule for each node port and for the health check node port.
pub(crate) fn desired(sources: GroupSources<'_>, notices: &mut Vec<Notice>) -> DesiredGroup {
    let GroupSources { service, names, node_ports, .. } = sources;
    let clients = clients(sources, notices);
    let open = |protocol: Protocol, port: u16, networks: &BTreeSet<IpNet>| -> Vec<Opening> {
        networks.iter().map(|from| Opening { protocol, port, from: *from }).collect()
    };
    let node_port_openings = service
        .ports
        .iter()
        .filter_map(|port| Some((port.protocol, port.node_port?)))
        .flat_map(|(protocol, port)| open(protocol, port, &clients));
    let health_check = service.health_check_node_port.into_iter();
    let health_check = health_check.flat_map(|port| open(Protocol::Tcp, port, sources.member_networks));
    DesiredGroup {
        name: names.security_group(),
        description: names.security_group_description(),
        tags: &names.identity_tags() | &sources.settings.user_tags.all,
        openings: node_port_openings.chain(health_check).collect(),
        ports: node_ports.filtering.clone(),
        keeps_rules: sources.features.keeps_client_addresses()
            && sources.settings.is_unreadable(Aspect::SourceRanges),
        servers: node_ports.servers.clone(),
    }
}

/// Returns the sources of packets to the node ports. A proxying load balancer sends from its own networks; one that only forwards
/// packets keeps the clients' addresses, so that the rules enforce the source ranges.
fn clients(sources: GroupSources<'_>, notices: &mut Vec<Notice>) -> BTreeSet<IpNet> {
    let GroupSources { settings, features, member_networks, .. } = sources;
    if !features.keeps_client_addresses() {
        return member_networks.clone();
    }
    let family = |network: &IpNet| family_of(network.addr());
    let fits = |range: &IpNet| member_networks.iter().any(|network| family(network) == family(range));
    let (mut clients, others): (BTreeSet<IpNet>, BTreeSet<IpNet>) =
        settings.source_ranges.networks.iter().copied().partition(fits);
    if settings.source_ranges.requested && !others.is_empty() {
        let list: Vec<String> = others.iter().map(IpNet::to_string).collect();
        let message = format!(
            "these source ranges have no effect on the security group because their IP family is not that of the members' subnet: {}",
            list.join(", ")
        );
        notices.push(Notice::warning(RANGES_IGNORED, message));
    }
    if settings.health_monitor.is_some() {
        clients.extend(member_networks);
    }
    clients
}
