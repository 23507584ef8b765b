//! The subnet of the nodes, where nobody names a subnet: the one that most of them share.

use std::collections::BTreeMap;
use std::net::IpAddr;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Neutron, Port, PortFilter};

use crate::load_balancer::resolve::cache::Cache;

/// Ports of so many servers are asked for at once.
const AT_ONCE: usize = 8;

/// A node by the address that load balancers use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Name of the node.
    pub(super) name: String,
    /// Its address.
    pub(super) address: IpAddr,
    /// `spec.providerID`, if it has one.
    pub(super) provider_id: Option<String>,
}

/// What the ports of the nodes tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeSubnet {
    /// The subnet that most nodes share; of two that tie, the one with the smaller id.
    pub(super) subnet_id: Option<String>,
    /// Names of nodes that told nothing: no server of this cloud, or none of its ports has the address.
    pub(super) skipped: Vec<String>,
}

/// Looks up the subnet of each node's address at the ports of its server.
pub(super) async fn find(
    neutron: &Neutron,
    known: &Cache<String>,
    nodes: &[Candidate],
) -> Result<NodeSubnet, ApiError> {
    let subnets: Vec<(String, Option<String>)> = stream::iter(nodes.iter().cloned())
        .map(|node| async move {
            let subnet = subnet_of(neutron, known, &node).await?;
            Ok::<_, ApiError>((node.name, subnet))
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(most_shared(subnets))
}

async fn subnet_of(
    neutron: &Neutron,
    known: &Cache<String>,
    node: &Candidate,
) -> Result<Option<String>, ApiError> {
    let Some(server) = node.provider_id.as_deref().and_then(server_id) else { return Ok(None) };
    let key = format!("{server} {}", node.address);
    if let Some(subnet) = known.get(&key) {
        return Ok(Some(subnet));
    }
    let ports = neutron.list_ports(&PortFilter::device(server)).await?;
    let subnet = subnet_with_address(&ports, node.address);
    // A node may get its port later: that there is none is not kept.
    if let Some(subnet) = &subnet {
        known.put(&key, subnet.clone());
    }
    Ok(subnet)
}

fn subnet_with_address(ports: &[Port], address: IpAddr) -> Option<String> {
    let fixed_ips = ports.iter().flat_map(|port| &port.fixed_ips);
    let mut fitting = fixed_ips.filter(|fixed| fixed.ip_address.parse() == Ok(address));
    fitting.next().map(|fixed| fixed.subnet_id.clone())
}

fn most_shared(subnets: Vec<(String, Option<String>)>) -> NodeSubnet {
    let mut found = NodeSubnet::default();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (node, subnet) in subnets {
        match subnet {
            Some(subnet) => *counts.entry(subnet).or_default() += 1,
            None => found.skipped.push(node),
        }
    }
    // The first maximum in the order of ids.
    let most = counts.values().copied().max();
    found.subnet_id = counts.into_iter().find(|(_, count)| Some(*count) == most).map(|(subnet, _)| subnet);
    found
}

/// The server's id in a providerID: `openstack:///<id>`, `openstack://<region>/<id>`, or the two without the scheme.
/// Other schemes belong to other clouds.
pub(super) fn server_id(provider_id: &str) -> Option<&str> {
    let rest = match provider_id.split_once("://") {
        Some(("openstack", rest)) => rest,
        Some((_, _)) => return None,
        None => provider_id,
    };
    let (_region, id) = rest.split_once('/')?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::default_form("openstack:///id-1", Some("id-1"))]
    #[case::regional("openstack://R1/id-1", Some("id-1"))]
    #[case::no_scheme("/id-1", Some("id-1"))]
    #[case::region_without_scheme("R1/id-1", Some("id-1"))]
    #[case::no_slash("openstack://id-1", None)]
    #[case::too_many("openstack://R1/x/id-1", None)]
    #[case::other_cloud("aws:///id-1", None)]
    #[case::empty("openstack:///", None)]
    fn a_server_id_is_read_from_every_form_of_provider_id(#[case] text: &str, #[case] id: Option<&str>) {
        assert_eq!(server_id(text), id);
    }

    fn votes(votes: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
        votes.iter().map(|(node, subnet)| ((*node).to_owned(), subnet.map(str::to_owned))).collect()
    }

    /// Defect: 27, better: the choice does not depend on the order of the nodes.
    #[test]
    fn the_subnet_of_most_nodes_wins_whatever_their_order() {
        let found =
            most_shared(votes(&[("a", Some("s2")), ("b", Some("s1")), ("c", Some("s2")), ("d", None)]));
        assert_eq!(found, NodeSubnet { subnet_id: Some("s2".into()), skipped: vec!["d".into()] });
    }

    #[test]
    fn a_tie_goes_to_the_smaller_id() {
        let found = most_shared(votes(&[("a", Some("s2")), ("b", Some("s1"))]));
        assert_eq!(found.subnet_id.as_deref(), Some("s1"));
    }

    #[test]
    fn no_node_gives_no_subnet() {
        assert_eq!(most_shared(Vec::new()), NodeSubnet::default());
    }
}
