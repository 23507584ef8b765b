//! Allowed address pairs: a port sends and receives only for its own addresses, unless a pair allows more.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use ipnet::IpNet;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::route::NodeRoute;
use openstack_ccm_openstack_api::error::{ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::neutron::{AllowedAddressPair, Neutron, Port, UpdatePort};

use super::ports::NextHopPorts;
use crate::limits::{MAX_CONCURRENT_CALLS, MAX_TRIES};
use crate::load_balancer::failure::Answered as _;
use crate::load_balancer::settings::node_address::network;

/// What to do with the pairs for some ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairChange {
    /// Add pairs: the next hops' ports may send from the destinations.
    Claim,
    /// Remove pairs: their routes are about to be deleted.
    Release,
}

/// Changes the pairs of the ports at the next hops. Returns the routes whose change failed.
pub(super) async fn change(
    neutron: &Neutron,
    ports: &NextHopPorts,
    routes: &[NodeRoute],
    change: PairChange,
) -> BTreeMap<NodeRoute, Failure> {
    let mut by_port: BTreeMap<&str, (&Port, Vec<NodeRoute>)> = BTreeMap::new();
    for route in routes {
        // A route from before its port became visible is left unchanged.
        if let Some(port) = ports.at(route.next_hop) {
            by_port.entry(&port.id).or_insert_with(|| (port, Vec::new())).1.push(*route);
        }
    }
    let work: Vec<_> = by_port
        .into_values()
        .map(|(port, routes)| async move {
            let ranges = routes.iter().map(|route| route.destination).collect();
            let result = change_port(neutron, port, &ranges, change).await;
            result.err().map(|failure| (routes, failure))
        })
        .collect();
    let failed: Vec<Option<(Vec<NodeRoute>, Failure)>> =
        stream::iter(work).buffer_unordered(MAX_CONCURRENT_CALLS).collect().await;
    failed
        .into_iter()
        .flatten()
        .flat_map(|(routes, failure)| routes.into_iter().map(move |route| (route, failure.clone())))
        .collect()
}

/// Changes the pairs of one port, and retries if another client was faster.
async fn change_port(
    neutron: &Neutron,
    port: &Port,
    ranges: &BTreeSet<IpNet>,
    change: PairChange,
) -> Result<(), Failure> {
    let mut newer: Option<Port> = None;
    for _ in 0..MAX_TRIES {
        let port = newer.as_ref().unwrap_or(port);
        let Some(pairs) = wanted(port, ranges, change) else { return Ok(()) };
        let changes = UpdatePort { allowed_address_pairs: Some(pairs), ..UpdatePort::default() };
        match neutron.update_port(&port.id, &changes, port.revision_number).await {
            // A deleted port sends nothing.
            Err(error) if error.is_not_found() && change == PairChange::Release => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict(ConflictCause::Stale) => {}
            answer => return answer.map(drop).while_doing(doing(port)),
        }
        newer = Some(neutron.get_port(&port.id).await.while_doing(doing(port))?);
    }
    Err(Failure::new(FailureClass::Busy, format!("{}: other clients keep changing the port", doing(port))))
}

fn doing(port: &Port) -> String {
    format!("changing the allowed address pairs of port {}", port.id)
}

/// Returns the pairs that a port should have; `None` if it has them. A pair with another MAC address than the port's belongs to
/// another client: it also allows traffic, and is never removed.
fn wanted(port: &Port, ranges: &BTreeSet<IpNet>, change: PairChange) -> Option<Vec<AllowedAddressPair>> {
    // Without port security all traffic passes, and Neutron refuses pairs.
    if !port.port_security_enabled {
        return None;
    }
    let mut pairs = port.allowed_address_pairs.clone();
    match change {
        PairChange::Claim => {
            let there: BTreeSet<IpNet> = pairs.iter().filter_map(|pair| network(&pair.ip_address)).collect();
            let missing = ranges.difference(&there);
            pairs.extend(
                missing.map(|range| AllowedAddressPair { ip_address: range.to_string(), mac_address: None }),
            );
        }
        PairChange::Release => {
            let own = |pair: &AllowedAddressPair| {
                pair.mac_address.as_ref().is_none_or(|mac| mac.eq_ignore_ascii_case(&port.mac_address))
            };
            pairs.retain(|pair| {
                !(own(pair) && network(&pair.ip_address).is_some_and(|network| ranges.contains(&network)))
            });
        }
    }
    (pairs != port.allowed_address_pairs).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn port(change: (&str, Value)) -> Port {
        let mut port = json!({
            "id": "p1", "network_id": "n1", "status": "ACTIVE", "mac_address": "fa:16:3e:00:00:01",
            "allowed_address_pairs": [{"ip_address": "10.9.9.9", "mac_address": "fa:16:3e:00:00:01"}],
        });
        port[change.0] = change.1;
        from_value(port).unwrap()
    }

    fn pairs(change: (&str, Value), what: PairChange) -> Option<Vec<String>> {
        let ranges = BTreeSet::from(["10.244.1.0/24".parse().unwrap()]);
        let pairs = wanted(&port(change), &ranges, what)?;
        Some(pairs.into_iter().map(|pair| pair.ip_address).collect())
    }

    fn pair(address: &str, mac: &str) -> Value {
        json!([{"ip_address": address, "mac_address": mac}])
    }

    /// A port gets a pair unless nothing is filtered there.
    ///
    /// Defect: 20, better: a port that does not say whether it filters does.
    #[rstest]
    #[case::filtering_not_known(("name", json!("x")), true)]
    #[case::filtering(("port_security_enabled", json!(true)), true)]
    #[case::not_filtering(("port_security_enabled", json!(false)), false)]
    #[case::there(("allowed_address_pairs", pair("10.244.1.0/24", "fa:16:3e:00:00:01")), false)]
    #[case::there_with_another_mac(("allowed_address_pairs", pair("10.244.1.0/24", "fa:16:3e:00:00:99")), false)]
    fn a_pair_is_claimed_where_packets_are_filtered(#[case] change: (&str, Value), #[case] is_claimed: bool) {
        let expected = is_claimed.then(|| vec!["10.9.9.9".to_owned(), "10.244.1.0/24".to_owned()]);
        assert_eq!(pairs(change, PairChange::Claim), expected);
    }

    #[rstest]
    #[case::ours(pair("10.244.1.0/24", "FA:16:3E:00:00:01"), Some(vec![]))]
    #[case::of_another_mac(pair("10.244.1.0/24", "fa:16:3e:00:00:99"), None)]
    #[case::of_another_network(pair("10.244.0.0/16", "fa:16:3e:00:00:01"), None)]
    #[case::none(json!([]), None)]
    fn only_our_own_pair_is_taken_away(#[case] present: Value, #[case] expected: Option<Vec<String>>) {
        assert_eq!(pairs(("allowed_address_pairs", present), PairChange::Release), expected);
    }
}
