//! Which network floating IPs come from, where nobody says so.

use futures::future::try_join_all;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Network, NetworkFilter, Neutron, SubnetFilter};

/// What the search for the external network found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExternalNetwork {
    /// The one to use, by id.
    Found(String),
    /// No external network that can give IPv4 addresses.
    None,
    /// Several, and none of them is the cloud's default alone. Name and id of each, sorted.
    Ambiguous(Vec<(String, String)>),
}

/// Looks for the external network: the only one that can give IPv4 addresses, or among several the one that the cloud
/// declares its default.
pub(super) async fn find(neutron: &Neutron) -> Result<ExternalNetwork, ApiError> {
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

fn choose(mut candidates: Vec<Network>) -> ExternalNetwork {
    candidates.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    let mut defaults = candidates.iter().filter(|network| network.is_default);
    match (candidates.as_slice(), defaults.next(), defaults.next()) {
        ([], _, _) => ExternalNetwork::None,
        ([only], _, _) => ExternalNetwork::Found(only.id.clone()),
        (_, Some(default), None) => ExternalNetwork::Found(default.id.clone()),
        (_, _, _) => ExternalNetwork::Ambiguous(
            candidates.into_iter().map(|network| (network.name, network.id)).collect(),
        ),
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
        assert_eq!(choose(vec![network("a", false)]), ExternalNetwork::Found("a".into()));
    }

    #[test]
    fn the_default_is_taken_among_several() {
        let candidates = vec![network("a", false), network("b", true)];
        assert_eq!(choose(candidates), ExternalNetwork::Found("b".into()));
    }

    /// Defect: 28, better: an ambiguous choice is reported, with the candidates.
    #[test]
    fn several_without_a_single_default_are_named_not_chosen() {
        let pair = |id: &str| (format!("net-{id}"), id.to_owned());
        let ambiguous = ExternalNetwork::Ambiguous(vec![pair("a"), pair("b")]);
        assert_eq!(choose(vec![network("b", false), network("a", false)]), ambiguous);
        assert_eq!(choose(vec![network("b", true), network("a", true)]), ambiguous);
    }

    #[test]
    fn no_candidate_is_no_network() {
        assert_eq!(choose(Vec::new()), ExternalNetwork::None);
    }
}
