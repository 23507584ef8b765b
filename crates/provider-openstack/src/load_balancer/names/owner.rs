//! Stores the owner of a floating IP in its description, for clouds without tags.

use super::generated::{cut, describes_floating_ip};
use super::tags::{CLUSTER_TAG, SERVICE_TAG, Tags, cluster_uids, service_uids};

/// Maximum length of a description in Neutron.
const MAX_DESCRIPTION_LENGTH: usize = 255;

/// Returns the description of a floating IP for clouds without tags: OCCM's text, then the uids of cluster and Service, which
/// are in the tags elsewhere.
pub fn described_owner(description: &str, tags: &Tags) -> String {
    let (Some(cluster), Some(service)) = (cluster_uids(tags).next(), service_uids(tags).next()) else {
        return description.to_owned();
    };
    let uids = format!(" ({cluster} {service})");
    format!("{}{uids}", cut(description, MAX_DESCRIPTION_LENGTH.saturating_sub(uids.len())))
}

/// Parses such a description: returns OCCM's part, and the tags for the uids.
pub fn read_owner(description: &str) -> (&str, Tags) {
    let uids = description.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    let uids = uids.and_then(|(text, uids)| Some((text, uids.split_once(' ')?)));
    let is_uid =
        |uid: &str| !uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match uids {
        Some((text, (cluster, service)))
            if is_uid(cluster) && is_uid(service) && describes_floating_ip(text) =>
        {
            (text, Tags::from([format!("{CLUSTER_TAG}{cluster}"), format!("{SERVICE_TAG}{service}")]))
        }
        Some(_) | None => (description, Tags::new()),
    }
}
