//! Finds the subnets of the VIP and the members.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::node::Node;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{IpFamily, ServiceKey};
use openstack_ccm_core::text::some_of;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::neutron::{Port, Subnet, SubnetFilter};
use openstack_ccm_openstack_api::octavia::{LoadBalancerFilter, ProvisioningStatus};
use tracing::info;

use super::Resolver;
use super::lookup::{Lookup, family_of_subnet, family_without_subnet};
use super::node_ports::MAX_IDS_PER_QUERY;
use crate::limits::MAX_NAMES;
use crate::load_balancer::annotations::{MEMBER_SUBNET_ID, PORT_ID};
use crate::load_balancer::failure::{self, Answered as _};
use crate::load_balancer::names;
use crate::load_balancer::objects::{ObservedLoadBalancer, ResolvedVip};
use crate::load_balancer::settings::node_address::{self, AddressChoice, family_of};
use crate::load_balancer::settings::{Aspect, Fault, Settings, unanimous};

/// The load balancer is on an external network, from which it might not reach the nodes.
const OUT_OF_REACH: &str = "LoadBalancerMembersOutOfReach";

/// The subnets of the VIP and the members.
pub(super) struct Places {
    pub(super) vip_subnet_id: Option<String>,
    pub(super) vip_network_id: Option<String>,
    pub(super) vip_family: IpFamily,
    pub(super) member_subnet_id: Option<String>,
    /// The network of the VIP's subnet, if it was looked up.
    pub(super) vip_addresses: Option<IpNet>,
    pub(super) additional_vips: Vec<ResolvedVip>,
    pub(super) notices: Vec<Notice>,
    /// Faults for which an existing load balancer keeps its current values.
    pub(super) faults: Vec<Fault>,
}

impl Resolver {
    /// Finds the subnets. All of them exist: Octavia accepts a tree with an unknown one and then fails for good.
    pub(super) async fn places(&self, lookup: &Lookup<'_>) -> Result<Places, Failure> {
        let mut places = match lookup.existing {
            Some(existing) => self.places_of_existing(lookup, existing).await?,
            None => self.places_of_new(lookup).await?,
        };
        match (self.members_in_family(lookup, &mut places).await, lookup.existing) {
            (Err(_), Some(existing)) => places.member_subnet_id = present_member_subnet(existing),
            (result, _) => result?,
        }
        Ok(places)
    }

    async fn places_of_existing(
        &self,
        lookup: &Lookup<'_>,
        existing: &ObservedLoadBalancer,
    ) -> Result<Places, Failure> {
        let settings = lookup.settings;
        // Affects only a notice, so a failure is ignored.
        let lacking = self.lacking_family(lookup, existing).await.ok().flatten();
        let mut notices = Vec::from_iter(lacking);
        let mut faults = Vec::new();
        let member_subnet = match self.member_subnet_of_existing(lookup, existing, &mut notices).await {
            // The subnet does not exist, or cannot be looked up.
            Err(failure) if failure.class != FailureClass::Bug => {
                faults.push(Fault::new([Aspect::MemberSubnet], failure.message));
                present_member_subnet(existing)
            }
            found => found?,
        };
        Ok(Places {
            vip_subnet_id: existing.vip_subnet_id.clone(),
            vip_network_id: settings.vip.network_id.clone(),
            vip_family: existing.vip_address.map_or_else(|| family_without_subnet(settings), family_of),
            member_subnet_id: member_subnet,
            vip_addresses: None,
            additional_vips: additional_vips(existing),
            notices,
            faults,
        })
    }

    /// Returns the subnet for new members of an existing load balancer.
    async fn member_subnet_of_existing(
        &self,
        lookup: &Lookup<'_>,
        existing: &ObservedLoadBalancer,
        notices: &mut Vec<Notice>,
    ) -> Result<Option<String>, Failure> {
        let settings = lookup.settings;
        match &settings.member_subnet_id {
            _ if settings.is_unreadable(Aspect::MemberSubnet) => Ok(present_member_subnet(existing)),
            Some(id) => Ok(Some(self.subnet(id, settings.member_subnet_key).await?.id)),
            // The VIP is on the user's port, which does not show the nodes' subnet.
            None if settings.vip.port_id.is_some() && settings.vip.network_id.is_none() => {
                Ok(Some(self.node_subnet(lookup.intent, settings, notices).await?))
            }
            None => Ok(existing.vip_subnet_id.clone()),
        }
    }

    async fn places_of_new(&self, lookup: &Lookup<'_>) -> Result<Places, Failure> {
        let settings = lookup.settings;
        let vip = &settings.vip;
        let mut places = Places {
            vip_subnet_id: vip.subnet_id.clone(),
            vip_network_id: vip.network_id.clone(),
            vip_family: family_without_subnet(settings),
            member_subnet_id: settings.member_subnet_id.clone(),
            vip_addresses: None,
            additional_vips: Vec::new(),
            notices: Vec::new(),
            faults: Vec::new(),
        };
        if let Some(id) = &settings.member_subnet_id {
            self.subnet(id, settings.member_subnet_key).await?;
        }
        if let Some(id) = &vip.port_id {
            self.refuse_taken_port(id, &lookup.intent.service.key).await?;
            places.vip_family = family_of_port(&self.port(id).await?).unwrap_or(places.vip_family);
        } else if let Some(id) = &vip.subnet_id {
            let subnet = self.subnet(id, "subnet-id").await?;
            self.refuse_other_network(&subnet, vip.network_id.as_deref()).await?;
            places.vip_family = family_of_subnet(&subnet);
            places.vip_addresses = subnet.cidr.parse().ok();
        } else if let Some(id) = &vip.network_id {
            self.network(id, "network-id").await?;
        }
        if vip.subnet_id.is_none() && vip.network_id.is_none() {
            self.detect(lookup, &mut places).await?;
        }
        self.second_family(lookup, &mut places).await?;
        self.refuse_address_outside(settings, &places).await?;
        let out_of_reach = self.members_out_of_reach(lookup, &places).await;
        places.notices.extend(out_of_reach);
        Ok(places)
    }

    /// Returns the warning about nodes that a load balancer on an external network reaches only if that leads to them. A failed lookup
    /// is no failure.
    async fn members_out_of_reach(&self, lookup: &Lookup<'_>, places: &Places) -> Option<Notice> {
        let settings = lookup.settings;
        let has_own_subnet =
            settings.member_subnet_id.is_some() && settings.member_subnet_id != settings.vip.subnet_id;
        if has_own_subnet || settings.vip.port_id.is_some() {
            return None;
        }
        let (id, networks) = match (&settings.vip.subnet_id, &settings.vip.network_id) {
            (Some(id), _) => {
                let subnet = self.subnet(id, "subnet-id").await.ok()?;
                (subnet.network_id, Vec::from_iter(places.vip_addresses))
            }
            (None, Some(id)) if self.network(id, "network-id").await.ok()??.external == Some(true) => {
                let subnets = self.subnets_of(id).await.ok()?;
                (id.clone(), subnets.iter().filter_map(|subnet| subnet.cidr.parse().ok()).collect())
            }
            (None, _) => return None,
        };
        let has_address = |node: &Node| {
            let mut addresses = node.addresses.iter().filter_map(|one| one.address.parse::<IpAddr>().ok());
            addresses.any(|address| networks.iter().any(|network| network.contains(&address)))
        };
        let nodes = lookup.intent.nodes.iter().filter(|node| settings.node_selector.matches(node));
        let outside: Vec<&str> =
            nodes.filter(|node| !has_address(node)).map(|node| node.name.as_str()).collect();
        if outside.is_empty() || self.network(&id, "network-id").await.ok()??.external != Some(true) {
            return None;
        }
        let message = format!(
            "the load balancer is on the external network {id}, on which nodes {} have no address, so it might not reach them: name the \
             subnet of the nodes with {}",
            some_of(&outside, MAX_NAMES),
            MEMBER_SUBNET_ID.key
        );
        Some(Notice::warning(OUT_OF_REACH, message))
    }

    /// Refuses an address outside of the subnet: Octavia's own refusal gives no reason.
    async fn refuse_address_outside(&self, settings: &Settings, places: &Places) -> Result<(), Failure> {
        let vip = &settings.vip;
        let first = match places.additional_vips.as_slice() {
            [] => vip.address,
            _ => vip.address_of(places.vip_family),
        };
        let others = places.additional_vips.iter();
        let others = others.map(|other| (vip.address_of(other.family), Some(&other.subnet_id)));
        for asked in std::iter::once((first, places.vip_subnet_id.as_ref())).chain(others) {
            let (Some(address), Some(id)) = asked else { continue };
            let subnet = self.subnet(id, "subnet-id").await?;
            let Ok(network) = subnet.cidr.parse::<IpNet>() else { continue };
            if !network.contains(&address) {
                return Err(Failure::user_input(format!(
                    "{}: {address} is not in the load balancer's subnet {id} ({network}): specify an address of that subnet (not a \
                     floating IP), or another subnet",
                    vip.asked_by
                )));
            }
        }
        Ok(())
    }

    /// Places VIP and members on the nodes' subnet, if none is configured.
    async fn detect(&self, lookup: &Lookup<'_>, places: &mut Places) -> Result<(), Failure> {
        let settings = lookup.settings;
        if settings.vip.port_id.is_some() && settings.member_subnet_id.is_some() {
            return Ok(());
        }
        let found = self.node_subnet(lookup.intent, settings, &mut places.notices).await?;
        if settings.vip.port_id.is_none() {
            let mut nodes = lookup.intent.nodes.iter().filter(|node| settings.node_selector.matches(node));
            let of_node = || nodes.find_map(|node| node_address::of(node, None)).map(family_of);
            places.vip_family = settings.family.or_else(of_node).unwrap_or(IpFamily::V4);
            places.vip_subnet_id = Some(found.clone());
        }
        if settings.member_subnet_id.is_none() {
            places.member_subnet_id = Some(found);
        }
        Ok(())
    }

    /// Refuses a subnet of another network, which Octavia does not accept.
    async fn refuse_other_network(&self, subnet: &Subnet, network_id: Option<&str>) -> Result<(), Failure> {
        let Some(other) = network_id.filter(|id| *id != subnet.network_id) else { return Ok(()) };
        self.network(other, "network-id").await?;
        Err(Failure::user_input(format!(
            "network-id is {other}, and the subnet of subnet-id, {}, is on network {}: correct one of the two (annotations of \
             the Service, a class, or cloud.conf)",
            subnet.id, subnet.network_id
        )))
    }

    /// Refuses a port that is already a VIP port: Octavia accepts a second load balancer on it, and breaks.
    async fn refuse_taken_port(&self, id: &str, service: &ServiceKey) -> Result<(), Failure> {
        let filter = LoadBalancerFilter { vip_port_id: Some(id.to_owned()), ..LoadBalancerFilter::default() };
        let users = self.openstack.octavia.list_load_balancers(&filter).await;
        let users = users.while_doing("looking for users of the port")?;
        let Some(user) = users.iter().find(|user| user.provisioning_status != ProvisioningStatus::Deleted)
        else {
            return Ok(());
        };
        info!(%service, port = id, load_balancer = user.name, id = user.id, "the port of port-id is a VIP port");
        let shown = names::shown("load balancer", &user.name, &user.id, Some(&service.namespace));
        let message = format!(
            "annotation {}: {id:?} is already the VIP port of {shown}; specify another port",
            PORT_ID.key
        );
        let goes = user.provisioning_status == ProvisioningStatus::PendingDelete;
        Err(Failure::new(if goes { FailureClass::Busy } else { FailureClass::UserInput }, message))
    }

    async fn port(&self, id: &str) -> Result<Port, Failure> {
        let found = self.openstack.neutron.get_port(id).await;
        found.map_err(|error| failure::of_named(&error, "port", id, "port-id"))
    }
}

impl Resolver {
    /// Returns how the addresses of members are chosen. The configured subnet of the members is looked up only if a node has
    /// several addresses.
    pub(super) async fn node_addresses(
        &self,
        lookup: &Lookup<'_>,
        places: &Places,
    ) -> Result<AddressChoice, Failure> {
        let Lookup { settings, intent, existing, .. } = lookup;
        let children = existing.iter().flat_map(|existing| &existing.children);
        let own = children.flat_map(|children| &children.pools).filter(|pool| pool.ours);
        let mut choice = AddressChoice {
            family: settings.family,
            kind: settings.node_address_kind,
            member_network: None,
            present: own.flat_map(|pool| &pool.members).map(|member| member.member.address).collect(),
        };
        let mut nodes = intent.nodes.iter().filter(|node| settings.node_selector.matches(node));
        let named = settings.member_subnet_id.as_ref().and(places.member_subnet_id.as_ref());
        let Some(id) = named.filter(|_| nodes.any(|node| choice.depends_on_subnet(node))) else {
            return Ok(choice);
        };
        let subnet = match self.subnet(id, settings.member_subnet_key).await {
            // The subnet is gone; existing members stay.
            Err(failure) if existing.is_some() && failure.class == FailureClass::UserInput => {
                return Ok(choice);
            }
            // The subnet cannot be looked up: members keep their present addresses.
            Err(_) if existing.is_some() => return Ok(AddressChoice { kind: None, ..choice }),
            found => found?,
        };
        choice.member_network = subnet.cidr.parse().ok();
        Ok(choice)
    }
}

/// Returns the subnet that all existing members share, else that of the VIP.
fn present_member_subnet(existing: &ObservedLoadBalancer) -> Option<String> {
    let pools = existing.children.iter().flat_map(|children| &children.pools).filter(|pool| pool.ours);
    let members = pools.flat_map(|pool| &pool.members);
    let subnet = unanimous(members.map(|member| member.member.subnet_id.as_deref()));
    subnet.map_or_else(|| existing.vip_subnet_id.clone(), |id| id.map(str::to_owned))
}

fn additional_vips(existing: &ObservedLoadBalancer) -> Vec<ResolvedVip> {
    let vips = existing.additional_vips.iter();
    vips.map(|(subnet_id, address)| ResolvedVip {
        subnet_id: subnet_id.clone(),
        family: family_of(*address),
        previous_address: None,
    })
    .collect()
}

fn family_of_port(port: &Port) -> Option<IpFamily> {
    let first = port.fixed_ips.first()?;
    first.ip_address.parse().ok().map(family_of)
}

impl Resolver {
    /// Returns the subnet in the setting `key`.
    pub(super) async fn subnet(&self, id: &str, key: &str) -> Result<Subnet, Failure> {
        let found = self.subnets(&BTreeSet::from([id]), key).await?;
        found.into_iter().next().ok_or_else(|| failure::not_there("subnet", id, key))
    }

    /// Returns the subnets in the setting `key`. Unknown ones are queried in one list.
    pub(super) async fn subnets(&self, ids: &BTreeSet<&str>, key: &str) -> Result<Vec<Subnet>, Failure> {
        let known = ids.iter().filter_map(|id| Some((*id, self.subnets.get(*id)?)));
        let mut found: BTreeMap<&str, Subnet> = known.collect();
        let unknown: Vec<&str> = ids.iter().copied().filter(|id| !found.contains_key(id)).collect();
        for some in unknown.chunks(MAX_IDS_PER_QUERY) {
            let begun = Moment::now();
            let mut listed = match self.list_subnets(some, key).await {
                // In an outage, the last known subnets are used.
                Err(failure) if failure.class != FailureClass::UserInput => {
                    let last = some.iter().map(|id| Some((*id, self.subnets.last(*id)?.value)));
                    found.extend(last.collect::<Option<Vec<_>>>().ok_or(failure)?);
                    continue;
                }
                listed => listed?,
            };
            for id in some {
                let place = listed.iter().position(|subnet| subnet.id == *id);
                let place = place.ok_or_else(|| failure::not_there("subnet", id, key))?;
                let subnet = listed.swap_remove(place);
                self.subnets.insert((*id).to_owned(), begun, subnet.clone());
                found.insert(id, subnet);
            }
        }
        Ok(found.into_values().collect())
    }

    async fn list_subnets(&self, ids: &[&str], key: &str) -> Result<Vec<Subnet>, Failure> {
        let named = ids.join(" ");
        let filter = SubnetFilter::ids(ids.iter().copied());
        let listed = self.listed_subnets.get_or_fetch(&named, self.openstack.neutron.list_subnets(&filter));
        listed.await.when_asked(format_args!("looking up subnet {named} of {key}"))
    }
}
