//! The input of a lookup.

use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::service::{Intent, IpFamily};
use openstack_ccm_openstack_api::neutron::Subnet;

use crate::load_balancer::objects::{Features, ObservedLoadBalancer};
use crate::load_balancer::settings::Settings;
use crate::load_balancer::settings::node_address::family_of;

/// The input of a lookup.
pub(in crate::load_balancer) struct Lookup<'a> {
    /// The Service and its nodes.
    pub(in crate::load_balancer) intent: &'a Intent,
    /// Settings of the Service.
    pub(in crate::load_balancer) settings: &'a Settings,
    /// Features of the cloud.
    pub(in crate::load_balancer) features: Features,
    /// The Service's load balancer, if it exists: then its VIP is fixed.
    pub(in crate::load_balancer) existing: Option<&'a ObservedLoadBalancer>,
    /// Whether a floating IP may have to be created.
    pub(in crate::load_balancer) wants_floating_ip: bool,
    /// VIPs of the load balancer that broke and was deleted.
    pub(in crate::load_balancer) previous_vip_addresses: Vec<IpAddr>,
}

impl Lookup<'_> {
    /// Returns the previous load balancer's address in a subnet.
    pub(super) fn previous_address_in(&self, subnet: &Subnet) -> Option<IpAddr> {
        let network: IpNet = subnet.cidr.parse().ok()?;
        self.previous_vip_addresses.iter().copied().find(|previous| network.contains(previous))
    }
}

/// Returns the IP family of a subnet's addresses.
pub(super) fn family_of_subnet(subnet: &Subnet) -> IpFamily {
    if subnet.ip_version == 6 { IpFamily::V6 } else { IpFamily::V4 }
}

/// Returns the IP family of a load balancer whose subnet is not known.
pub(super) fn family_without_subnet(settings: &Settings) -> IpFamily {
    settings.vip.address.map(family_of).or(settings.family).unwrap_or(IpFamily::V4)
}
