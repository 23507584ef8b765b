//! Which attributes of TLS were set here. Octavia shows its defaults and what somebody set alike, so a tag on the listener
//! remembers: without it an annotation that is taken away would leave its value for ever, or an administrator's value
//! would be taken for ours.

use super::Tags;
use super::listener::TlsAttributes;

pub(crate) const SNI: &str = "openstack-ccm-sets=sni-container-refs";
pub(crate) const VERSIONS: &str = "openstack-ccm-sets=tls-versions";
pub(crate) const CIPHERS: &str = "openstack-ccm-sets=tls-ciphers";
pub(crate) const ALPN: &str = "openstack-ccm-sets=alpn-protocols";
const ALL: [&str; 4] = [SNI, VERSIONS, CIPHERS, ALPN];
/// Begin of the tag with the revision at which references to certificates were sent last.
const REVISION: &str = "openstack-ccm-tls-revision=";

/// The tags of a listener with these wanted attributes.
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

/// Whether the references to certificates are to be sent again: the last time was for another revision.
pub(crate) fn is_renewed(observed: &Tags, wanted: &Tags) -> bool {
    wanted.iter().any(|tag| tag.starts_with(REVISION) && !observed.contains(tag))
}

/// The tags that say that something was set which is not wanted any more.
pub(crate) fn stale(observed: &Tags, wanted: &Tags) -> Tags {
    let about_tls = |tag: &str| ALL.contains(&tag) || tag.starts_with(REVISION);
    observed.iter().filter(|tag| about_tls(tag) && !wanted.contains(*tag)).cloned().collect()
}

/// The wanted tags of a listener whose attributes were replaced by those that it has: they describe these. With `kept`, the
/// tags that the listener has, the revision is as it is there.
pub(crate) fn with_kept(wanted: &Tags, attributes: &TlsAttributes, kept: Option<&Tags>) -> Tags {
    let is_revision = |tag: &&String| tag.starts_with(REVISION);
    let revision: Tags = kept.unwrap_or(wanted).iter().filter(is_revision).cloned().collect();
    let others = wanted.iter().filter(|tag| !ALL.contains(&tag.as_str()) && !is_revision(tag)).cloned();
    others.chain(tags(attributes)).chain(revision).collect()
}

impl TlsAttributes {
    /// Of these attributes of a listener, those of which its tags say that they were set here.
    pub(crate) fn set_here(&self, tags: &Tags) -> Self {
        Self {
            sni_container_refs: self.sni_container_refs.clone().filter(|_| tags.contains(SNI)),
            versions: self.versions.clone().filter(|_| tags.contains(VERSIONS)),
            ciphers: self.ciphers.clone().filter(|_| tags.contains(CIPHERS)),
            alpn_protocols: self.alpn_protocols.clone().filter(|_| tags.contains(ALPN)),
        }
    }
}
