//! What tags say, and the tags of our own.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::net::IpAddr;

use super::generated::is_generated;

/// Tags of an object. Neither Octavia nor Neutron keeps an order.
pub type Tags = BTreeSet<String>;

pub(super) const CLUSTER_TAG: &str = "openstack-ccm-cluster=";
/// What OCCM may say in its place one day.
const OCCM_CLUSTER_TAG: &str = "kube_cluster_id_";
pub(super) const SERVICE_TAG: &str = "openstack-ccm-service=";
const PREVIOUS_VIP_TAG: &str = "openstack-ccm-former-vip=";
const REFUSED_TAG: &str = "openstack-ccm-refused=";

/// Uids of the clusters that the tags name. None: what was made by OCCM or by hand.
pub fn cluster_uids(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().filter_map(|tag| tag.strip_prefix(CLUSTER_TAG).or_else(|| tag.strip_prefix(OCCM_CLUSTER_TAG)))
}

/// Whether a tag names a cluster by its uid.
pub fn is_cluster_tag(tag: &str) -> bool {
    tag.starts_with(CLUSTER_TAG) || tag.starts_with(OCCM_CLUSTER_TAG)
}

/// Whether a tag names a Service by its uid.
pub fn is_service_tag(tag: &str) -> bool {
    tag.starts_with(SERVICE_TAG)
}

/// Uids of the Services that the tags name.
pub fn service_uids(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().filter_map(|tag| tag.strip_prefix(SERVICE_TAG))
}

/// Whether a tag does nothing but say who owns an object.
pub fn says_owner(tag: &str) -> bool {
    is_generated(tag) || [CLUSTER_TAG, SERVICE_TAG].iter().any(|prefix| tag.starts_with(prefix))
}

/// Whether only this program gives such tags, so that it also takes them away.
pub fn is_own_tag(tag: &str) -> bool {
    [CLUSTER_TAG, SERVICE_TAG, PREVIOUS_VIP_TAG, REFUSED_TAG].iter().any(|prefix| tag.starts_with(prefix))
}

/// The tag of a floating IP whose load balancer is deleted to be recreated: the VIP that it led to. Nothing else shows
/// it by then to a program that was started in between.
pub fn previous_vip_tag(vip: IpAddr) -> String {
    format!("{PREVIOUS_VIP_TAG}{vip}")
}

/// The tag of what came back because the cloud had refused what was to take its place: as it was wanted then, it is not tried again.
pub fn refused_tag(wish: impl Display) -> String {
    format!("{REFUSED_TAG}{wish}")
}

/// The VIPs that the tags of a floating IP name.
pub fn previous_vips(tags: &Tags) -> impl Iterator<Item = IpAddr> {
    tags.iter().filter_map(|tag| tag.strip_prefix(PREVIOUS_VIP_TAG)?.parse().ok())
}

/// Generated names among the tags: on a load balancer one for each Service that uses it.
pub fn user_names(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().map(String::as_str).filter(|tag| is_generated(tag))
}
