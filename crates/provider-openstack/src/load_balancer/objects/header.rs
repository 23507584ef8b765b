//! A table of the HTTP headers that a listener inserts: the annotation of each, and which ones may be removed again.
//!
//! Settings, desired state and plans use this table. A new header needs a row here and an annotation.

use std::collections::{BTreeMap, BTreeSet};

use super::Tags;
use crate::load_balancer::annotations::{
    Annotation, InsertedHeader, X_FORWARDED_FOR, X_FORWARDED_PORT, X_FORWARDED_PROTO,
};

/// The properties of a header.
struct Row {
    name: &'static str,
    annotation: &'static Annotation,
    /// Whether Octavia inserts the header where the pool speaks the PROXY protocol.
    beside_proxy: bool,
    /// Tag of a listener on which the Service asked for the header. A header without a tag is removed wherever no Service asks for
    /// it, as OCCM does with the headers that it knows.
    tag: Option<&'static str>,
}

impl InsertedHeader {
    const fn row(self) -> Row {
        match self {
            Self::ForwardedFor => {
                Row { name: "X-Forwarded-For", annotation: &X_FORWARDED_FOR, beside_proxy: false, tag: None }
            }
            Self::ForwardedPort => Row {
                name: "X-Forwarded-Port",
                annotation: &X_FORWARDED_PORT,
                beside_proxy: false,
                tag: Some("openstack-ccm-sets=x-forwarded-port"),
            },
            Self::ForwardedProto => Row {
                name: "X-Forwarded-Proto",
                annotation: &X_FORWARDED_PROTO,
                beside_proxy: true,
                tag: Some("openstack-ccm-sets=x-forwarded-proto"),
            },
        }
    }

    /// Returns the name that Octavia uses.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the annotation that asks for the header.
    pub fn annotation(self) -> &'static Annotation {
        self.row().annotation
    }

    /// Returns whether Octavia inserts the header where the pool speaks the PROXY protocol.
    pub fn goes_with_proxy(self) -> bool {
        self.row().beside_proxy
    }

    /// Returns whether a listener with these headers inserts this one.
    pub(crate) fn is_among(self, headers: &BTreeMap<String, String>) -> bool {
        headers.get(self.name()).is_some_and(|value| value == "true")
    }
}

/// Converts headers to Octavia's attribute.
pub(crate) fn to_insert(headers: &BTreeSet<InsertedHeader>) -> BTreeMap<String, String> {
    headers.iter().map(|header| (header.name().to_owned(), "true".to_owned())).collect()
}

/// Returns the tags of a listener on which a Service asked for these headers.
pub(crate) fn tags(headers: &BTreeSet<InsertedHeader>) -> Tags {
    headers.iter().filter_map(|header| header.row().tag).map(str::to_owned).collect()
}

/// Returns the tags about headers that the Service no longer asks for.
pub(crate) fn stale(observed: &Tags, wanted: &Tags) -> Tags {
    let tags = tags(&BTreeSet::from(InsertedHeader::ALL));
    tags.into_iter().filter(|tag| observed.contains(tag) && !wanted.contains(tag)).collect()
}

/// Returns the wanted tags of a listener that keeps some headers: it keeps their tags too.
pub(crate) fn with_kept(wanted: &Tags, kept: &BTreeSet<InsertedHeader>, there: &Tags) -> Tags {
    let tags = tags(kept);
    &(wanted - &tags) | &(there & &tags)
}

/// Returns the headers that a listener inserts from now on, if they change. Headers that the Service never asked for belong to
/// another client and stay; `stale` names those that it used to ask for.
pub(crate) fn changed(
    before: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    stale: &Tags,
) -> Option<BTreeMap<String, String>> {
    let is_ours = |header: &InsertedHeader| {
        wanted.contains_key(header.name()) || header.row().tag.is_none_or(|tag| stale.contains(tag))
    };
    let ours: Vec<&str> =
        InsertedHeader::ALL.iter().filter(|one| is_ours(one)).map(|one| one.name()).collect();
    let differs = ours.iter().any(|name| before.get(*name) != wanted.get(*name));
    differs.then(|| {
        let of_others = before.iter().filter(|(name, _)| !ours.contains(&name.as_str()));
        of_others.chain(wanted).map(|(name, value)| (name.clone(), value.clone())).collect()
    })
}
