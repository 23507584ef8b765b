//! Gathers from Neutron, once for all Services, the floating IPs that lead to load balancers and the security groups of their members.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_doctor::facts::{CloudFacts, CloudObject, Door, DoorRule, GroupSource, Looked};
use openstack_ccm_openstack_api::neutron::{
    Direction, EtherType, FloatingIp, FloatingIpFilter, Port, PortFilter, SecurityGroup, SecurityGroupFilter,
    SecurityGroupRule, Subnet, SubnetFilter,
};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use openstack_ccm_openstack_api::transport::Service;
use openstack_ccm_openstack_api::{ApiError, OpenStack};

/// The objects of Neutron that matter.
pub(super) struct Network {
    ports: Vec<Port>,
    groups: Vec<SecurityGroup>,
    subnets: Vec<Subnet>,
    floating_ips: Vec<FloatingIp>,
}

impl Network {
    pub(super) async fn read(openstack: &OpenStack) -> Looked<Self> {
        if !openstack.has(Service::Network) {
            return Err("the cloud has no Neutron".to_owned());
        }
        let read = async || -> Result<Self, ApiError> {
            let neutron = &openstack.neutron;
            Ok(Self {
                ports: neutron.list_ports(&PortFilter::default()).await?,
                groups: neutron.list_security_groups(&SecurityGroupFilter::default()).await?,
                subnets: neutron.list_subnets(&SubnetFilter::default()).await?,
                floating_ips: neutron.list_floating_ips(&FloatingIpFilter::default()).await?,
            })
        };
        read().await.map_err(|error| error.to_string())
    }

    /// Returns the floating IPs that lead to a VIP port.
    pub(super) fn floating_of(&self, vip_port: Option<&str>) -> Vec<IpAddr> {
        let leads_there = |one: &&FloatingIp| vip_port.is_some() && one.port_id.as_deref() == vip_port;
        let found = self.floating_ips.iter().filter(leads_there);
        found.filter_map(|one| one.floating_ip_address.parse().ok()).collect()
    }

    /// Returns the source addresses of nodes at a floating IP: their own floating IPs, or the addresses of their networks' routers.
    pub(super) async fn translated(&self, openstack: &OpenStack, nodes: &[IpAddr]) -> Looked<Vec<IpAddr>> {
        let floating_of = |node: &IpAddr| {
            let is_it = |one: &&FloatingIp| {
                one.fixed_ip_address.as_ref().and_then(|fixed| fixed.parse().ok()) == Some(*node)
            };
            self.floating_ips.iter().find(is_it)?.floating_ip_address.parse().ok()
        };
        let mut found: Vec<IpAddr> = nodes.iter().filter_map(floating_of).collect();
        if found.len() == nodes.len() {
            return Ok(found);
        }
        let machines = self.ports.iter().filter(|port| nodes.iter().any(|node| has_address(port, *node)));
        let networks: BTreeSet<&str> = machines.map(|port| port.network_id.as_str()).collect();
        let routers: BTreeSet<&str> = self
            .ports
            .iter()
            .filter(|port| networks.contains(port.network_id.as_str()) && is_of_router(port))
            .map(|port| port.device_id.as_str())
            .collect();
        let before = found.len();
        for id in routers {
            let router = openstack.neutron.get_router(id).await.map_err(|error| error.to_string())?;
            let gateway = router.external_gateway_info.iter().flat_map(|gateway| &gateway.external_fixed_ips);
            found.extend(gateway.filter_map(|fixed| fixed.ip_address.parse::<IpAddr>().ok()));
        }
        if found.len() == before {
            return Err("no router with an external address was found for the nodes".to_owned());
        }
        Ok(found)
    }

    /// Returns where a published address leads that is not the load balancer's; absent where it was never a floating IP of the Service.
    pub(super) fn astray(&self, address: IpAddr, facts: &CloudFacts) -> Option<String> {
        let found = self.floating_ips.iter().find(|one| one.floating_ip_address.parse() == Ok(address));
        match found {
            Some(FloatingIp { port_id: None, .. }) => {
                Some("the floating IP is not attached to a port".to_owned())
            }
            Some(FloatingIp { port_id: Some(port), .. }) => {
                Some(format!("the floating IP is attached to port {port}"))
            }
            // The controller would create a new floating IP in its place.
            None => facts
                .changes
                .iter()
                .any(|change| change.kind == "floating IP" && change.mark.starts_with('+'))
                .then(|| "the project has no such floating IP".to_owned()),
        }
    }

    /// Returns the CIDR of a subnet.
    pub(super) fn subnet(&self, id: Option<&str>) -> Option<String> {
        self.subnets.iter().find(|subnet| Some(subnet.id.as_str()) == id).map(|subnet| subnet.cidr.clone())
    }

    /// Returns the doors of all members that are servers of this project. `subnets` are the subnets that members name.
    pub(super) fn doors(
        &self,
        objects: &[CloudObject],
        load_balancer: &LoadBalancer,
        subnets: &BTreeMap<String, String>,
    ) -> Vec<Door> {
        let vip_port = load_balancer.vip_port_id.as_deref();
        let of_balancer = self.ports.iter().find(|port| Some(port.id.as_str()) == vip_port);
        let pool_of = |id: &str| objects.iter().find(|object| object.kind == "pool" && object.id == id);
        let mut doors = Vec::new();
        for member in objects.iter().filter(|object| object.kind == "member") {
            let (Some(port), Some(pool)) = (member.port, member.pool.as_deref()) else { continue };
            let address =
                member.name.rsplit_once(':').and_then(|(address, _)| address.parse::<IpAddr>().ok());
            let Some(address) = address else { continue };
            let Some(machine) = self.ports.iter().find(|port| has_address(port, address)) else { continue };
            let protocol = match pool_of(pool).and_then(|pool| pool.protocol.as_deref()) {
                Some("UDP") => "udp",
                Some("SCTP") => "sctp",
                _ => "tcp",
            };
            // An amphora sends from its own address in the member's subnet, or else in the VIP's subnet.
            let subnet =
                subnets.get(&member.name).map(String::as_str).or(load_balancer.vip_subnet_id.as_deref());
            let from = self.subnet(subnet).and_then(|cidr| cidr.parse::<IpNet>().ok());
            let known: Vec<&SecurityGroup> =
                machine.security_groups.iter().filter_map(|id| self.group(id)).collect();
            let rules = known.iter().flat_map(|group| &group.security_group_rules);
            doors.push(Door {
                address,
                port,
                protocol: protocol.to_owned(),
                pool: pool.to_owned(),
                group: known.first().map(|group| group.id.clone()),
                hidden: known.len() < machine.security_groups.len(),
                guarded: machine.port_security_enabled,
                rules: rules
                    .filter(|rule| rule.direction == Direction::Ingress)
                    .map(|rule| self.rule(rule, of_balancer))
                    .collect(),
                from,
            });
        }
        doors
    }

    fn group(&self, id: &str) -> Option<&SecurityGroup> {
        self.groups.iter().find(|group| group.id == id)
    }

    fn rule(&self, rule: &SecurityGroupRule, of_balancer: Option<&Port>) -> DoorRule {
        let first = rule.port_range_min;
        let source = |group: &String| match of_balancer {
            Some(port) if port.security_groups.contains(group) => GroupSource::Holds,
            // Octavia puts the ports of a load balancer into its own group, and into no group of the project.
            _ if self.group(group).is_some() => GroupSource::Lacks,
            _ => GroupSource::Unknown,
        };
        DoorRule {
            protocol: rule.protocol.clone(),
            ports: first.map(|first| (first, rule.port_range_max.unwrap_or(first))),
            from: rule.remote_ip_prefix.as_ref().and_then(|prefix| prefix.parse().ok()),
            ipv6: rule.ethertype == EtherType::Ipv6,
            from_group: rule.remote_group_id.as_ref().map(source),
        }
    }
}

/// Returns whether a port belongs to a router: plain, distributed or highly available.
fn is_of_router(port: &Port) -> bool {
    let owner = port.device_owner.as_str();
    owner.starts_with("network:router_") || owner == "network:ha_router_replicated_interface"
}

fn has_address(port: &Port, address: IpAddr) -> bool {
    port.fixed_ips.iter().any(|fixed| fixed.ip_address.parse() == Ok(address))
}
