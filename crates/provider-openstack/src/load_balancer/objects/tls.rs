//! Tags of a listener that record which TLS attributes this controller set. Octavia shows its defaults and set values alike:
//! without the tags the value of a removed annotation would stay for ever, or an administrator's value would be taken for ours.

use super::Tags;
use super::listener::TlsAttributes;

pub(crate) const SNI: &str = "openstack-ccm-sets=sni-container-refs";
pub(crate) const VERSIONS: &str = "openstack-ccm-sets=tls-versions";
pub(crate) const CIPHERS: &str = "openstack-ccm-sets=tls-ciphers";
pub(crate) const ALPN: &str = "openstack-ccm-sets=alpn-protocols";
const ALL: [&str; 4] = [SNI, VERSIONS, CIPHERS, ALPN];
/// Prefix of the tag with the revision for which certificate references were last sent.
const REVISION: &str = "openstack-ccm-tls-revision=";

/// Returns the tags of a listener with these desired attributes.
pub(crate) fn tags(wanted: &TlsAttributes) -> Tags {
    let set = [
        (SNI, wanted.sni_container_refs.is_some()),
        (VERSIONS, wanted.versions.is_some()),
        (CIPHERS, wanted.ciphers.is_some()),
        (ALPN, wanted.alpn_protocols.is_some()),
    ];
    set.into_iter().filter(|(_, set)| *set).map(|(tag, _)| tag.to_owned()).collect()
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
    let about_tls = |tag: &str| ALL.contains(&tag) || tag.starts_with(REVISION);
    observed.iter().filter(|tag| about_tls(tag) && !wanted.contains(*tag)).cloned().collect()
}

/// Returns the wanted tags of a listener whose desired attributes were replaced by current ones, which the tags then describe. With
/// `kept`, the current tags, the revision stays too.
pub(crate) fn with_kept(wanted: &Tags, attributes: &TlsAttributes, kept: Option<&Tags>) -> Tags {
    let is_revision = |tag: &&String| tag.starts_with(REVISION);
    let revision: Tags = kept.unwrap_or(wanted).iter().filter(is_revision).cloned().collect();
    let others = wanted.iter().filter(|tag| !ALL.contains(&tag.as_str()) && !is_revision(tag)).cloned();
    others.chain(tags(attributes)).chain(revision).collect()
}

impl TlsAttributes {
    /// Returns the attributes that this controller set, according to the listener's tags.
    pub(crate) fn set_here(&self, tags: &Tags) -> Self {
        Self {
            sni_container_refs: self.sni_container_refs.clone().filter(|_| tags.contains(SNI)),
            versions: self.versions.clone().filter(|_| tags.contains(VERSIONS)),
            ciphers: self.ciphers.clone().filter(|_| tags.contains(CIPHERS)),
            alpn_protocols: self.alpn_protocols.clone().filter(|_| tags.contains(ALPN)),
        }
    }
}
