//! Whether a status already says what is wanted. Pure.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::LoadBalancerIngress;

use crate::advertisement::Advertisement;
use crate::cluster::{Cluster, ServerSupport};
use crate::decision::{Publication, decide};
use crate::entry::same_entries;

/// What is wanted in the status, and whether it is there already.
pub fn compare(
    current: &[LoadBalancerIngress],
    publication: &Publication<'_>,
    cluster: &Cluster,
) -> (Advertisement, bool) {
    let mut wanted = decide(publication, cluster);
    if publication.preference.keep_published && stays(current, publication.addresses) {
        wanted.entries = current.to_vec();
        return (wanted, true);
    }
    let same = same_entries(current, &wanted.entries, cluster.server != ServerSupport::Drops);
    if !same && cluster.gate.is_none() && cluster.server == ServerSupport::Unknown {
        // The API server could not be asked. What stands there is left alone if it is what a server that keeps the
        // mode should be told: a moment's trouble must not turn every Service over and back.
        let hoped = decide(publication, &Cluster { server: ServerSupport::Keeps, ..cluster.clone() });
        if same_entries(current, &hoped.entries, true) {
            return (hoped, true);
        }
    }
    (wanted, same)
}

/// Whether what is published can stay where nobody can tell what to publish: a hostname, or the addresses.
fn stays(current: &[LoadBalancerIngress], addresses: &[IpAddr]) -> bool {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let published: Vec<&String> = current.iter().filter_map(|entry| entry.ip.as_ref()).collect();
    !current.is_empty() && (published.is_empty() || published.into_iter().eq(&addresses))
}
