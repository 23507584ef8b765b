//! Checks tags that users set in cloud.conf or in annotations.

/// Maximum length of a tag in every Neutron version, in characters.
pub(crate) const MAX_NEUTRON_LENGTH: usize = 60;
/// Maximum length of names, descriptions, tags and other texts in Octavia, in characters.
pub(crate) const MAX_OCTAVIA_LENGTH: usize = 255;

/// Prefixes of tags by which this controller or OCCM identify the owner of an object.
const RESERVED: [&str; 3] = ["openstack-ccm-", "kube_service_", "kube_cluster_id_"];

/// Returns why a user must not set a tag, and the fix.
pub(crate) fn problem(tag: &str, longest: usize) -> Option<(String, String)> {
    if let Some(reserved) = RESERVED.iter().find(|reserved| tag.starts_with(**reserved)) {
        let problem = format!(
            "begins with {reserved}, which is reserved for tags that identify the owner of an object"
        );
        return Some((problem, "choose another tag".to_owned()));
    }
    if tag.chars().any(char::is_control) {
        return Some(("has control characters".to_owned(), "remove them".to_owned()));
    }
    let length = tag.chars().count();
    (length > longest)
        .then(|| (format!("has {length} characters"), format!("use at most {longest} for each tag")))
}
