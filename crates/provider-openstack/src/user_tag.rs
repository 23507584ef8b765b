//! The form of a tag that a user gives, in cloud.conf or in an annotation.

/// Longest tag that every Neutron takes, in characters.
pub(crate) const MAX_NEUTRON_LENGTH: usize = 60;
/// Longest name, description, tag and other text that Octavia takes, in characters.
pub(crate) const MAX_OCTAVIA_LENGTH: usize = 255;

/// What tags begin with that show this program or OCCM whose an object is.
const RESERVED: [&str; 3] = ["openstack-ccm-", "kube_service_", "kube_cluster_id_"];

/// Why a user cannot give a tag, and what to do.
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
