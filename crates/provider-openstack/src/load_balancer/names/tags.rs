//! The tags of this controller, and how to parse tags.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::net::IpAddr;

use super::generated::is_generated;

/// Tags of an object. Neither Octavia nor Neutron keeps their order.
pub type Tags = BTreeSet<String>;

pub(super) const CLUSTER_TAG: &str = "openstack-ccm-cluster=";
/// The equivalent tag that is proposed for OCCM.
const OCCM_CLUSTER_TAG: &str = "kube_cluster_id_";
pub(super) const SERVICE_TAG: &str = "openstack-ccm-service=";
const PREVIOUS_VIP_TAG: &str = "openstack-ccm-former-vip=";
const REFUSED_TAG: &str = "openstack-ccm-refused=";

/// Returns the uids of the clusters in the tags: none on objects that OCCM or a user made.
pub fn cluster_uids(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().filter_map(|tag| tag.strip_prefix(CLUSTER_TAG).or_else(|| tag.strip_prefix(OCCM_CLUSTER_TAG)))
}

/// Returns whether a tag names a cluster by its uid.
pub fn is_cluster_tag(tag: &str) -> bool {
    tag.starts_with(CLUSTER_TAG) || tag.starts_with(OCCM_CLUSTER_TAG)
}

/// Returns whether a tag names a Service by its uid.
pub fn is_service_tag(tag: &str) -> bool {
    tag.starts_with(SERVICE_TAG)
}

/// Returns the uids of the Services in the tags.
pub fn service_uids(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().filter_map(|tag| tag.strip_prefix(SERVICE_TAG))
}

/// Returns whether a tag only names the owner of an object.
pub fn says_owner(tag: &str) -> bool {
    is_generated(tag) || [CLUSTER_TAG, SERVICE_TAG].iter().any(|prefix| tag.starts_with(prefix))
}

/// Returns whether only this controller sets such tags, so that it also removes them.
pub fn is_own_tag(tag: &str) -> bool {
    [CLUSTER_TAG, SERVICE_TAG, PREVIOUS_VIP_TAG, REFUSED_TAG].iter().any(|prefix| tag.starts_with(prefix))
}

/// Returns the tag with the VIP of a floating IP whose load balancer is deleted to be recreated. After a restart only this tag
/// shows that VIP.
pub fn previous_vip_tag(vip: IpAddr) -> String {
    format!("{PREVIOUS_VIP_TAG}{vip}")
}

/// Returns the tag of an object that was restored because the cloud refused its `replacement`: the same is not tried again.
pub fn refused_tag(replacement: impl Display) -> String {
    format!("{REFUSED_TAG}{replacement}")
}

/// Returns the VIPs in the tags of a floating IP.
pub fn previous_vips(tags: &Tags) -> impl Iterator<Item = IpAddr> {
    tags.iter().filter_map(|tag| tag.strip_prefix(PREVIOUS_VIP_TAG)?.parse().ok())
}

/// Returns the generated names among the tags: on a load balancer, one for each Service that uses it.
pub fn user_names(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().map(String::as_str).filter(|tag| is_generated(tag))
}
