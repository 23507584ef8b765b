//! Where a new floating IP comes from.

use futures::future::try_join_all;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Network, NetworkFilter, Neutron, SubnetFilter};

use super::Resolver;
use super::lookup::Lookup;
use crate::load_balancer::failure::{self, Answered as _};
use crate::load_balancer::floating_subnet::SubnetMatch;
use crate::load_balancer::model::SubnetChoice;
use crate::load_balancer::settings::{Aspect, Exposure, FloatingIpSettings, FloatingSubnet};

/// The external network could not be found: as OCCM names it.
const SEARCH_FAILED: &str = "LoadBalancerExternalNetworkSearchFailed";

/// Where a new floating IP comes from.
pub(super) struct FloatingIpSource {
    pub(super) network_id: Option<String>,
    pub(super) subnet: SubnetChoice,
    pub(super) notice: Option<Notice>,
}

impl FloatingIpSource {
    /// Nobody can tell.
    pub(super) fn none() -> Self {
        Self::of(None, SubnetChoice::Any)
    }

    fn of(network_id: Option<String>, subnet: SubnetChoice) -> Self {
        Self { network_id, subnet, notice: None }
    }
}

impl Resolver {
    /// Checks what is configured and looks up what is not, where a floating IP may have to be made.
    pub(super) async fn floating_ip(&self, lookup: &Lookup<'_>) -> Result<FloatingIpSource, Failure> {
        let Exposure::External(settings) = &lookup.settings.exposure else {
            return Ok(FloatingIpSource::none());
        };
        if !lookup.wants_floating_ip || lookup.settings.is_unreadable(Aspect::FloatingIp) {
            return Ok(FloatingIpSource::of(settings.network_id.clone(), SubnetChoice::Any));
        }
        match &settings.subnet {
            FloatingSubnet::Id(id) => self.in_subnet(settings, id).await,
            // A wanted address has its subnet already.
            FloatingSubnet::Matching(_) if settings.address.is_some() => self.in_any_subnet(settings).await,
            FloatingSubnet::Matching(condition) => self.in_matching_subnets(settings, condition).await,
            FloatingSubnet::Any => self.in_any_subnet(settings).await,
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

    async fn in_any_subnet(&self, settings: &FloatingIpSettings) -> Result<FloatingIpSource, Failure> {
        let Some(id) = &settings.network_id else { return self.search().await };
        let network = self.network(id, "floating-network-id").await?;
        if !network.external {
            return Err(Failure::user_input(format!(
                "floating-network-id {id} is not an external network: name one that gives floating IPs"
            )));
        }
        Ok(FloatingIpSource::of(Some(network.id), SubnetChoice::Any))
    }

    async fn in_matching_subnets(
        &self,
        settings: &FloatingIpSettings,
        condition: &SubnetMatch,
    ) -> Result<FloatingIpSource, Failure> {
        let mut source = self.in_any_subnet(settings).await?;
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

    /// Nobody names the external network. Not to find it is no failure: the Service is internal then.
    async fn search(&self) -> Result<FloatingIpSource, Failure> {
        if let Some(id) = self.external_network.get("") {
            return Ok(FloatingIpSource::of(Some(id), SubnetChoice::Any));
        }
        let begun = Moment::now();
        let found = find_external_network(&self.openstack.neutron).await;
        let found = found.while_doing("looking for the external network")?;
        let why = match found {
            Ok(id) => {
                self.external_network.insert(String::new(), begun, id.clone());
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

    /// A network that is named by the user as `key`.
    pub(super) async fn network(&self, id: &str, key: &str) -> Result<Network, Failure> {
        let found = self.networks.get_or_fetch(id, self.openstack.neutron.get_network(id)).await;
        found.map_err(|error| failure::of_named(&error, "network", id, key))
    }
}

/// Looks for the external network: the only one that can give IPv4 addresses, or among several the one that the cloud
/// declares its default. Answers its id, or why there is none to use.
async fn find_external_network(neutron: &Neutron) -> Result<Result<String, String>, ApiError> {
    let filter = NetworkFilter { external: Some(true), ..NetworkFilter::default() };
    let networks = neutron.list_networks(&filter).await?;
    // Old Neutron ignores filters that it does not know.
    let external = networks.into_iter().filter(|network| network.external);
    let judged = try_join_all(external.map(|network| gives_ipv4(neutron, network))).await?;
    Ok(choose(judged.into_iter().flatten().collect()))
}

/// The network, if it can give IPv4 addresses: it has an IPv4 subnet, or a subnet that the project cannot see.
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

fn choose(mut candidates: Vec<Network>) -> Result<String, String> {
    candidates.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    let mut defaults = candidates.iter().filter(|network| network.is_default);
    match (candidates.as_slice(), defaults.next(), defaults.next()) {
        ([], _, _) => Err("there is no external network with IPv4 addresses".to_owned()),
        ([only], _, _) | (_, Some(only), None) => Ok(only.id.clone()),
        (several, _, _) => {
            let names: Vec<String> =
                several.iter().map(|network| format!("{} ({})", network.name, network.id)).collect();
            Err(format!("there are several external networks: {}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(id: &str, is_default: bool) -> Network {
        Network {
            id: id.to_owned(),
            name: format!("net-{id}"),
            external: true,
            is_default,
            subnets: Vec::new(),
        }
    }

    #[test]
    fn one_candidate_is_taken() {
        assert_eq!(choose(vec![network("a", false)]), Ok("a".into()));
    }

    #[test]
    fn the_default_is_taken_among_several() {
        let candidates = vec![network("a", false), network("b", true)];
        assert_eq!(choose(candidates), Ok("b".into()));
    }

    /// Defect: 28, better: an ambiguous choice is reported, with the candidates.
    #[test]
    fn several_without_a_single_default_are_named_not_chosen() {
        let ambiguous = Err("there are several external networks: net-a (a), net-b (b)".to_owned());
        assert_eq!(choose(vec![network("b", false), network("a", false)]), ambiguous);
        assert_eq!(choose(vec![network("b", true), network("a", true)]), ambiguous);
    }

    #[test]
    fn no_candidate_is_no_network() {
        assert_eq!(choose(Vec::new()), Err("there is no external network with IPv4 addresses".to_owned()));
    }
}
