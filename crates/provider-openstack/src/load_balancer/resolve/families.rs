//! Selects the subnets of a dual-stack Service: one per IP family, on one network.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::node::Node;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Subnet, SubnetFilter};

use super::Resolver;
use super::lookup::{Lookup, family_of_subnet};
use super::subnets::Places;
use crate::load_balancer::failure::Answered as _;
use crate::load_balancer::objects::{ObservedLoadBalancer, Ownership, ResolvedVip};
use crate::load_balancer::settings::node_address::{self, family_name, family_of};

/// The load balancer has addresses of one family, but the Service wants two.
const SINGLE_STACK: &str = "LoadBalancerSingleStack";

impl Resolver {
    /// Selects a subnet for each IP family of the Service. If that is impossible, the load balancer gets one address, with a
    /// notice.
    pub(super) async fn second_family(
        &self,
        lookup: &Lookup<'_>,
        places: &mut Places,
    ) -> Result<(), Failure> {
        let [first, second] = lookup.settings.families.as_slice() else { return Ok(()) };
        if let Some(obstacle) = obstacle(lookup) {
            places.notices.push(single_stack(obstacle));
            return Ok(());
        }
        let Some((base, network_id)) = self.base(places).await? else { return Ok(()) };
        let siblings = self.subnets_of(&network_id).await?;
        let vip = &lookup.settings.vip;
        let of =
            |family| choose(base.as_ref(), &siblings, family, vip.address_of(family), &lookup.intent.nodes);
        match (of(*first), of(*second)) {
            (Some(primary), other) => {
                places.vip_family = *first;
                places.vip_addresses = primary.cidr.parse().ok();
                places.vip_subnet_id = Some(primary.id);
                match other {
                    Some(other) => {
                        places.additional_vips = vec![ResolvedVip {
                            previous_address: lookup.previous_address_in(&other),
                            subnet_id: other.id,
                            family: *second,
                        }];
                    }
                    None => places.notices.push(no_subnet(&network_id, *second)),
                }
            }
            (None, Some(_)) => places.notices.push(no_subnet(&network_id, *first)),
            (None, None) => {}
        }
        Ok(())
    }

    /// Returns the subnet that is already selected, if any, and the network of all candidates.
    async fn base(&self, places: &Places) -> Result<Option<(Option<Subnet>, String)>, Failure> {
        if let Some(id) = &places.vip_subnet_id {
            let subnet = self.subnet(id, "subnet-id").await?;
            let network_id = subnet.network_id.clone();
            return Ok(Some((Some(subnet), network_id)));
        }
        Ok(places.vip_network_id.clone().map(|network_id| (None, network_id)))
    }

    pub(super) async fn subnets_of(&self, network_id: &str) -> Result<Vec<Subnet>, Failure> {
        self.list_subnets_of(network_id).await.when_asked("looking for the network's subnets")
    }

    pub(super) async fn list_subnets_of(&self, network_id: &str) -> Result<Vec<Subnet>, Arc<ApiError>> {
        let filter = SubnetFilter { network_id: Some(network_id.to_owned()), ..SubnetFilter::default() };
        let list = self.openstack.neutron.list_subnets(&filter);
        self.subnets_of_network.get_or_fetch(network_id, list).await
    }

    /// Selects a member subnet of the first IP family, if the configured one is of the other family.
    pub(super) async fn members_in_family(
        &self,
        lookup: &Lookup<'_>,
        places: &mut Places,
    ) -> Result<(), Failure> {
        let [first, _] = lookup.settings.families.as_slice() else { return Ok(()) };
        let Some(id) = &places.member_subnet_id else { return Ok(()) };
        let subnet = self.subnet(id, lookup.settings.member_subnet_key).await?;
        if family_of_subnet(&subnet) == *first {
            return Ok(());
        }
        let siblings = self.subnets_of(&subnet.network_id).await?;
        if let Some(fitting) = choose(None, &siblings, *first, None, &lookup.intent.nodes) {
            places.member_subnet_id = Some(fitting.id);
        }
        Ok(())
    }

    /// Returns the notice about a load balancer that lacks an address of one of the Service's families.
    pub(super) async fn lacking_family(
        &self,
        lookup: &Lookup<'_>,
        existing: &ObservedLoadBalancer,
    ) -> Result<Option<Notice>, Failure> {
        let [_, _] = lookup.settings.families.as_slice() else { return Ok(None) };
        let has = |family: &IpFamily| existing.vip_addresses().any(|address| family_of(address) == *family);
        let Some(lacking) = lookup.settings.families.iter().find(|family| !has(family)) else {
            return Ok(None);
        };
        if existing.ownership == Ownership::Guest {
            return Ok(Some(single_stack("choose another load balancer")));
        }
        if let Some(obstacle) = obstacle(lookup) {
            return Ok(Some(single_stack(obstacle)));
        }
        let Some(network_id) = &existing.made_with.vip_network_id else { return Ok(None) };
        let siblings = self.subnets_of(network_id).await?;
        if choose(None, &siblings, *lacking, None, &[]).is_none() {
            return Ok(Some(no_subnet(network_id, *lacking)));
        }
        Ok(Some(single_stack(&format!(
            "the load balancer was created without an {} address, and Octavia cannot add one later; delete the Service and create it \
             again",
            family_name(*lacking)
        ))))
    }
}

/// Selects the subnet of a family: the already selected one, else that of the requested address, else the one with most nodes; of
/// two equal ones, the one with the smaller id.
fn choose(
    base: Option<&Subnet>,
    siblings: &[Subnet],
    family: IpFamily,
    asked: Option<IpAddr>,
    nodes: &[Arc<Node>],
) -> Option<Subnet> {
    if let Some(base) = base.filter(|base| family_of_subnet(base) == family) {
        return Some(base.clone());
    }
    let addresses: Vec<IpAddr> =
        nodes.iter().filter_map(|node| node_address::of(node, Some(family))).collect();
    let has = |subnet: &Subnet, address: &IpAddr| {
        subnet.cidr.parse::<IpNet>().is_ok_and(|network| network.contains(address))
    };
    let lacks_asked = |subnet: &Subnet| asked.is_some_and(|asked| !has(subnet, &asked));
    let inside = |subnet: &Subnet| addresses.iter().filter(|address| has(subnet, address)).count();
    let fitting = siblings.iter().filter(|subnet| family_of_subnet(subnet) == family);
    fitting.min_by_key(|subnet| (lacks_asked(subnet), std::cmp::Reverse(inside(subnet)), &subnet.id)).cloned()
}

/// Returns why the load balancer can have only one address, if so.
fn obstacle(lookup: &Lookup<'_>) -> Option<&'static str> {
    if !lookup.features.additional_vips {
        return Some("a second address requires Octavia API 2.26, which this cloud does not have");
    }
    lookup.settings.vip.port_id.as_ref().map(|_| "the port of port-id has only one address")
}

fn no_subnet(network_id: &str, family: IpFamily) -> Notice {
    single_stack(&format!("network {network_id} has no {} subnet", family_name(family)))
}

fn single_stack(why: &str) -> Notice {
    let message =
        format!("spec.ipFamilies asks for two IP families, but the load balancer has only one: {why}");
    Notice::warning(SINGLE_STACK, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(id: &str, cidr: &str) -> Subnet {
        let version = if cidr.contains(':') { 6 } else { 4 };
        serde_json::from_value(serde_json::json!({
            "id": id, "name": id, "network_id": "n", "cidr": cidr, "ip_version": version,
        }))
        .unwrap()
    }

    #[test]
    fn the_subnet_that_is_chosen_already_wins_in_its_family_only() {
        let base = subnet("z", "10.0.0.0/24");
        let siblings = [subnet("a", "10.1.0.0/24"), base.clone(), subnet("six", "2001:db8::/64")];
        let id = |family| choose(Some(&base), &siblings, family, None, &[]).map(|subnet| subnet.id);
        assert_eq!(id(IpFamily::V4).as_deref(), Some("z"));
        assert_eq!(id(IpFamily::V6).as_deref(), Some("six"));
    }

    #[test]
    fn among_several_the_smallest_id_is_taken_and_none_is_none() {
        let siblings = [subnet("b", "10.1.0.0/24"), subnet("a", "10.2.0.0/24")];
        assert_eq!(choose(None, &siblings, IpFamily::V4, None, &[]).unwrap().id, "a");
        assert_eq!(choose(None, &siblings, IpFamily::V6, None, &[]), None);
    }
}
