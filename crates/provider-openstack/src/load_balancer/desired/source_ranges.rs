//! Who may connect.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::IpFamily;

use super::sources::Sources;
use crate::load_balancer::settings::node_address::{everybody, family_of};
use crate::load_balancer::settings::{Aspect, Fault};

/// As OCCM names it.
const IGNORED: &str = "LoadBalancerSourceRangesIgnored";
/// Networks that were added to the source ranges.
const CLUSTER_SOURCES: &str = "LoadBalancerClusterSourcesAllowed";

/// The networks for `allowed_cidrs` of all listeners; none where the cloud lacks the feature. Octavia refuses networks
/// of a family that the VIP is not of, so these are left out.
///
/// Where the ranges cannot be read nobody may connect: an empty list, which must not be sent (Octavia takes it for
/// everybody). What a listener has takes its place.
pub(super) fn allowed_cidrs(sources: Sources<'_>, notices: &mut Vec<Notice>) -> Option<BTreeSet<IpNet>> {
    let ranges = &sources.settings.source_ranges;
    if !sources.facts.features.allowed_cidrs {
        // Where members see the clients, the rules of the security group do the work, if there is one.
        let by_group =
            sources.settings.manage_security_groups && sources.facts.features.keeps_client_addresses();
        if ranges.requested && !by_group {
            let lack = sources.facts.features.lack("2.12");
            let message =
                format!("spec.loadBalancerSourceRanges is ignored, so any client can connect: {lack}");
            notices.push(Notice::warning(IGNORED, message));
        }
        return None;
    }
    if sources.settings.is_unreadable(Aspect::SourceRanges) {
        return Some(BTreeSet::new());
    }
    let families: Vec<IpFamily> = sources.facts.vip_families().collect();
    if !ranges.requested {
        return Some(families.into_iter().map(everybody).collect());
    }
    let (mut fitting, others) = split(sources);
    if !others.is_empty() {
        let list = names(&others);
        let message = format!(
            "these source ranges have no effect because their IP family is not that of the load balancer's address: {list}"
        );
        notices.push(Notice::warning(IGNORED, message));
    }
    let of_cluster = sources.facts.cluster_sources.iter().copied();
    let of_cluster: BTreeSet<IpNet> =
        of_cluster.filter(|network| families.contains(&family_of(network.addr()))).collect();
    let added = names(of_cluster.difference(&fitting));
    if !added.is_empty() && !sources.settings.keeps(Aspect::ClusterSources) {
        let message = format!(
            "the listeners also allow connections from the cluster itself, as loadbalancer.openstack.org/allow-cluster-sources requests: \
             {added}"
        );
        notices.push(Notice::normal(CLUSTER_SOURCES, message));
    }
    fitting.extend(of_cluster);
    Some(fitting)
}

fn names<'a>(networks: impl IntoIterator<Item = &'a IpNet>) -> String {
    networks.into_iter().map(IpNet::to_string).collect::<Vec<_>>().join(", ")
}

/// The source ranges of the families of the VIPs, and the others.
fn split(sources: Sources<'_>) -> (BTreeSet<IpNet>, BTreeSet<IpNet>) {
    let families: Vec<IpFamily> = sources.facts.vip_families().collect();
    let fits = |network: &IpNet| families.contains(&family_of(network.addr()));
    sources.settings.source_ranges.networks.iter().copied().partition(fits)
}

/// What is wrong with ranges of which none fits.
pub(super) fn fault(sources: Sources<'_>) -> Option<Fault> {
    let settings = sources.settings;
    let matters = sources.facts.features.allowed_cidrs && settings.source_ranges.requested;
    if !matters || settings.is_unreadable(Aspect::SourceRanges) {
        return None;
    }
    let (fitting, others) = split(sources);
    fitting.is_empty().then(|| {
        let message = format!(
            "none of the source ranges ({}) has the IP family of the load balancer's address: add the networks of the clients",
            names(&others)
        );
        Fault::new([Aspect::SourceRanges], message)
    })
}
