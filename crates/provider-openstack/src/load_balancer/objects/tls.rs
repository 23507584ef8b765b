//! Tags of a listener that record which TLS attributes this controller set. Octavia shows its defaults and set values alike:
//! without the tags the value of a removed annotation would stay for ever, or an administrator's value would be taken for ours.

use openstack_ccm_openstack_api::octavia::{Fields as _, TlsAttributes};

use super::Tags;

/// Octavia's name of the certificate.
pub(crate) const CERTIFICATE: &str = "default_tls_container_ref";
/// Octavia's name of the list of further certificates.
pub(crate) const SNI: &str = "sni_container_refs";
/// Prefix of the tag with the revision for which certificate references were last sent.
const REVISION: &str = "openstack-ccm-tls-revision=";

/// Returns the tag of an attribute with Octavia's name, such as `openstack-ccm-sets=tls-versions`.
fn tag(name: &str) -> String {
    format!("openstack-ccm-sets={}", name.replace('_', "-"))
}

fn is_about_attribute(one: &str) -> bool {
    TlsAttributes::default().all().iter().any(|(name, _)| tag(name) == one)
}

/// Returns the tags of a listener with these desired attributes.
pub(crate) fn tags(wanted: &TlsAttributes) -> Tags {
    wanted.values().iter().map(|(name, _)| tag(name)).collect()
}

/// Returns whether these tags have the one of an attribute.
pub(crate) fn has(tags: &Tags, name: &str) -> bool {
    tags.contains(&tag(name))
}

pub(crate) fn revision_tag(revision: &str) -> String {
    format!("{REVISION}{revision}")
}

/// Returns whether certificate references have to be sent again, because the last time was for another revision.
pub(crate) fn is_renewed(observed: &Tags, wanted: &Tags) -> bool {
    wanted.iter().any(|tag| tag.starts_with(REVISION) && !observed.contains(tag))
}

/// Returns the tags about attributes that are no longer wanted.
pub(crate) fn stale(observed: &Tags, wanted: &Tags) -> Tags {
    let about_tls = |tag: &str| is_about_attribute(tag) || tag.starts_with(REVISION);
    observed.iter().filter(|tag| about_tls(tag) && !wanted.contains(*tag)).cloned().collect()
}

/// Returns the wanted tags of a listener whose desired attributes were replaced by current ones, which the tags then describe. With
/// `kept`, the current tags, the revision stays too.
pub(crate) fn with_kept(wanted: &Tags, attributes: &TlsAttributes, kept: Option<&Tags>) -> Tags {
    let is_revision = |tag: &&String| tag.starts_with(REVISION);
    let revision: Tags = kept.unwrap_or(wanted).iter().filter(is_revision).cloned().collect();
    let others = wanted.iter().filter(|tag| !is_about_attribute(tag) && !is_revision(tag)).cloned();
    others.chain(tags(attributes)).chain(revision).collect()
}

/// Returns the attributes that this controller set, according to the listener's tags.
pub(crate) fn set_here(there: &TlsAttributes, tags: &Tags) -> TlsAttributes {
    let mut ours = TlsAttributes::default();
    ours.keep(there, |name| has(tags, name));
    ours
}
