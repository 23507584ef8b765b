//! Finds network and subnet for a new floating IP.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join_all;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Network, NetworkFilter, Neutron, PortFilter, SubnetFilter};
use openstack_ccm_openstack_api::optional::OptionalPart;

use super::Resolver;
use super::lookup::Lookup;
use super::subnets::Places;
use crate::load_balancer::annotations::INTERNAL;
use crate::load_balancer::failure::{self, Answered as _};
use crate::load_balancer::objects::SubnetChoice;
use crate::load_balancer::settings::floating_subnet::SubnetMatch;
use crate::load_balancer::settings::{Aspect, Exposure, FloatingIpSettings, FloatingSubnet};

/// The external network could not be found. OCCM uses the same reason.
const SEARCH_FAILED: &str = "LoadBalancerExternalNetworkSearchFailed";

/// Network and subnet of a new floating IP.
pub(super) struct FloatingIpSource {
    pub(super) network_id: Option<String>,
    pub(super) subnet: SubnetChoice,
    pub(super) notice: Option<Notice>,
}

impl FloatingIpSource {
    /// Returns a source without a known network.
    pub(super) fn none() -> Self {
        Self::of(None, SubnetChoice::Any)
    }

    fn of(network_id: Option<String>, subnet: SubnetChoice) -> Self {
        Self { network_id, subnet, notice: None }
    }
}

impl Resolver {
    /// Checks configured values and looks up missing ones, if a floating IP may have to be created.
    pub(super) async fn floating_ip(
        &self,
        lookup: &Lookup<'_>,
        places: Option<&Places>,
    ) -> Result<FloatingIpSource, Failure> {
        let Exposure::External(settings) = &lookup.settings.exposure else {
            return Ok(FloatingIpSource::none());
        };
        if !lookup.wants_floating_ip || lookup.settings.is_unreadable(Aspect::FloatingIp) {
            return Ok(FloatingIpSource::of(settings.network_id.clone(), SubnetChoice::Any));
        }
        let source = match &settings.subnet {
            FloatingSubnet::Id(id) => self.in_subnet(settings, id).await?,
            // The requested address determines the subnet.
            FloatingSubnet::Matching(_) if settings.address.is_some() => {
                self.in_any_subnet(settings, places).await?
            }
            FloatingSubnet::Matching(condition) => {
                self.in_matching_subnets(settings, condition, places).await?
            }
            FloatingSubnet::Any => self.in_any_subnet(settings, places).await?,
        };
        match (&source.network_id, self.network_of_vip(lookup, places).await?) {
            (Some(id), Some(of_vip)) if *id == of_vip && settings.address.is_none() => {
                Err(Failure::user_input(on_floating_network(id)))
            }
            _ => Ok(source),
        }
    }

    /// Returns the network of the VIP, as Octavia shows it or as it is configured.
    async fn network_of_vip(
        &self,
        lookup: &Lookup<'_>,
        places: Option<&Places>,
    ) -> Result<Option<String>, Failure> {
        if let Some(existing) = lookup.existing {
            return Ok(existing.made_with.vip_network_id.clone());
        }
        match &lookup.settings.vip.subnet_id {
            Some(id) if places.is_some() => Ok(Some(self.subnet(id, "subnet-id").await?.network_id)),
            _ => Ok(lookup.settings.vip.network_id.clone()),
        }
    }

    async fn in_subnet(&self, settings: &FloatingIpSettings, id: &str) -> Result<FloatingIpSource, Failure> {
        let subnet = self.subnet(id, "floating-subnet-id").await?;
        match &settings.network_id {
            Some(network) if *network != subnet.network_id => Err(Failure::user_input(format!(
                "floating-subnet-id {id} is a subnet of network {}, not of floating-network-id {network}: correct \
                 one of the two",
                subnet.network_id
            ))),
            Some(_) | None => {
                Ok(FloatingIpSource::of(Some(subnet.network_id), SubnetChoice::Id(id.to_owned())))
            }
        }
    }

    async fn in_any_subnet(
        &self,
        settings: &FloatingIpSettings,
        places: Option<&Places>,
    ) -> Result<FloatingIpSource, Failure> {
        let Some(id) = &settings.network_id else { return self.search(places).await };
        let network = self.network(id, "floating-network-id").await?;
        if network.is_some_and(|network| network.external == Some(false)) {
            return Err(Failure::user_input(format!(
                "floating-network-id {id} is not an external network: specify an external network, from which floating IPs can be \
                 allocated"
            )));
        }
        Ok(FloatingIpSource::of(Some(id.clone()), SubnetChoice::Any))
    }

    async fn in_matching_subnets(
        &self,
        settings: &FloatingIpSettings,
        condition: &SubnetMatch,
        places: Option<&Places>,
    ) -> Result<FloatingIpSource, Failure> {
        let mut source = self.in_any_subnet(settings, places).await?;
        let Some(network_id) = &source.network_id else { return Ok(source) };
        let subnets = self.list_subnets_of(network_id).await;
        let subnets = subnets.when_asked("looking for the floating IP's subnet")?;
        let matching = subnets.iter().filter(|subnet| condition.matches(&subnet.name, &subnet.tags));
        let ids: Vec<String> = matching.map(|subnet| subnet.id.clone()).collect();
        if ids.is_empty() {
            return Err(Failure::user_input(format!(
                "no subnet of the floating network {network_id} matches {condition}: correct floating-subnet or \
                 floating-subnet-tags"
            )));
        }
        source.subnet = SubnetChoice::FirstFree(ids);
        Ok(source)
    }

    /// Searches the external network, since none is configured. Not finding it is no failure: the Service is internal then.
    async fn search(&self, places: Option<&Places>) -> Result<FloatingIpSource, Failure> {
        let vip_network = match places {
            Some(Places { vip_subnet_id: Some(id), .. }) => self.subnet(id, "subnet-id").await?.network_id,
            Some(places) => places.vip_network_id.clone().unwrap_or_default(),
            None => String::new(),
        };
        if let Some(id) = self.external_network.get(&vip_network) {
            return Ok(FloatingIpSource::of(Some(id), SubnetChoice::Any));
        }
        let begun = Moment::now();
        let doing = "looking for the external network";
        let candidates = find_external_networks(&self.openstack.neutron).await.while_doing(doing)?;
        let found = match choose(&candidates) {
            None if !candidates.is_empty() => {
                let outside = self.networks_outside(&vip_network).await.while_doing(doing)?;
                routed(&candidates, &outside)
            }
            found => found,
        };
        let why = match found.ok_or_else(|| why_none(&candidates)) {
            Ok(id) => {
                self.external_network.insert(vip_network, begun, id.clone());
                return Ok(FloatingIpSource::of(Some(id), SubnetChoice::Any));
            }
            Err(why) => why,
        };
        let message = format!(
            "{why}; set floating-network-id in cloud.conf or loadbalancer.openstack.org/floating-network-id on the \
             Service"
        );
        let notice = Some(Notice::warning(SEARCH_FAILED, message));
        Ok(FloatingIpSource { notice, ..FloatingIpSource::none() })
    }

    /// Returns the external networks to which routers lead from a network: only these can provide floating IPs for its addresses.
    async fn networks_outside(&self, network_id: &str) -> Result<BTreeSet<String>, Arc<ApiError>> {
        if network_id.is_empty() {
            return Ok(BTreeSet::new());
        }
        let on_network = PortFilter { network_id: Some(network_id.to_owned()), ..PortFilter::default() };
        let ports = self.openstack.neutron.list_ports(&on_network).await.map_err(Arc::new)?;
        let routers = self.routers_behind(&ports).await?;
        Ok(routers.into_iter().filter_map(|router| Some(router.external_gateway_info?.network_id)).collect())
    }

    /// Returns the network in the setting `key`; `None` if the cloud cannot show a network by its id.
    pub(super) async fn network(&self, id: &str, key: &str) -> Result<Option<Network>, Failure> {
        let is_lacking = || self.openstack.client.lacks(OptionalPart::NetworkById);
        if is_lacking() {
            return Ok(None);
        }
        match self.networks.get_or_fetch(id, self.openstack.neutron.get_network(id)).await {
            Err(_) if is_lacking() => Ok(None),
            found => found.map(Some).map_err(|error| failure::of_named(&error, "network", id, key)),
        }
    }
}

/// No router leads from a network to itself.
fn on_floating_network(id: &str) -> String {
    format!(
        "the address of the load balancer is on network {id}, from which floating IPs come: it can be reached without a floating IP, and \
         none can be attached to it. To publish that address, set the annotation {}: \"true\"; for a floating IP, choose an internal \
         network with subnet-id or network-id",
        INTERNAL.key
    )
}

/// Returns the external networks that can provide IPv4 addresses, sorted by name.
async fn find_external_networks(neutron: &Neutron) -> Result<Vec<Network>, ApiError> {
    let filter = NetworkFilter { external: Some(true), ..NetworkFilter::default() };
    let networks = neutron.list_networks(&filter).await?;
    let judged = try_join_all(networks.into_iter().map(|network| gives_ipv4(neutron, network))).await?;
    let mut candidates: Vec<Network> = judged.into_iter().flatten().collect();
    candidates.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    Ok(candidates)
}

/// Returns the network if it can provide IPv4 addresses: it has an IPv4 subnet, or one that the project cannot see.
async fn gives_ipv4(neutron: &Neutron, network: Network) -> Result<Option<Network>, ApiError> {
    if network.subnets.is_empty() {
        return Ok(None);
    }
    let filter = SubnetFilter { network_id: Some(network.id.clone()), ..SubnetFilter::default() };
    let visible = neutron.list_subnets(&filter).await?;
    let hidden = network.subnets.iter().any(|id| visible.iter().all(|subnet| subnet.id != *id));
    let ipv4 = visible.iter().any(|subnet| subnet.ip_version == 4);
    Ok((hidden || ipv4).then_some(network))
}

/// Returns the only candidate, or the only one that the cloud declares as default.
fn choose(candidates: &[Network]) -> Option<String> {
    match candidates {
        [only] => Some(only.id.clone()),
        several => single(several.iter().filter(|network| network.is_default)),
    }
}

/// Returns the only candidate to which a router leads.
fn routed(candidates: &[Network], outside: &BTreeSet<String>) -> Option<String> {
    single(candidates.iter().filter(|network| outside.contains(&network.id)))
}

fn single<'a>(mut networks: impl Iterator<Item = &'a Network>) -> Option<String> {
    networks.next().filter(|_| networks.next().is_none()).map(|network| network.id.clone())
}

fn why_none(candidates: &[Network]) -> String {
    if candidates.is_empty() {
        return "the cloud has no external network with IPv4 addresses".to_owned();
    }
    let names: Vec<String> =
        candidates.iter().map(|network| format!("{} ({})", network.name, network.id)).collect();
    format!(
        "the cloud has several external networks, and the routers of the load balancer's network do not lead to exactly one of them: {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(id: &str, is_default: bool) -> Network {
        Network {
            id: id.to_owned(),
            name: format!("net-{id}"),
            external: Some(true),
            is_default,
            subnets: Vec::new(),
        }
    }

    #[test]
    fn one_candidate_is_taken() {
        assert_eq!(choose(&[network("a", false)]), Some("a".into()));
    }

    #[test]
    fn the_default_is_taken_among_several() {
        assert_eq!(choose(&[network("a", false), network("b", true)]), Some("b".into()));
    }

    #[test]
    fn the_only_one_behind_a_router_is_taken_among_several() {
        let candidates = [network("a", false), network("b", false)];
        let outside = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(routed(&candidates, &outside(&["b", "foreign"])), Some("b".into()));
        assert_eq!(routed(&candidates, &outside(&["a", "b"])), None);
        assert_eq!(routed(&candidates, &outside(&[])), None);
    }

    /// Defect: 28, better: an ambiguous choice is reported, with the candidates.
    #[test]
    fn several_without_a_single_default_are_named_not_chosen() {
        for is_default in [false, true] {
            let candidates = [network("a", is_default), network("b", is_default)];
            assert_eq!(choose(&candidates), None);
            assert!(why_none(&candidates).ends_with("net-a (a), net-b (b)"));
        }
    }

    #[test]
    fn no_candidate_is_no_network() {
        assert_eq!(choose(&[]), None);
        assert_eq!(why_none(&[]), "the cloud has no external network with IPv4 addresses");
    }
}
