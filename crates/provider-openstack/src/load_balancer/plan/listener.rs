//! Decides which attributes of a listener change.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::{Fields as _, PoolProtocol, UpdateChild, Value};

use super::draft::tags_without;
use crate::load_balancer::annotations::PROXY_PROTOCOL;
use crate::load_balancer::objects::{InsertedHeader, ListenerSpec, ObservedListener, header, tls};

/// Octavia does not insert the headers that a listener is configured to insert.
const HEADERS_NOT_INSERTED: &str = "LoadBalancerHeadersNotInserted";

/// Returns the update that turns a listener into the wanted one. With `whole`, it contains all managed attributes, changed or not:
/// any valid update heals a listener in ERROR.
pub(super) fn changes(observed: &ObservedListener, wanted: &ListenerSpec, whole: bool) -> UpdateChild {
    let stale = &tls::stale(&observed.tags, &wanted.tags) | &header::stale(&observed.tags, &wanted.tags);
    let (before, mut after) = (&observed.attributes, wanted.attributes.clone());
    let renewed = tls::is_renewed(&observed.tags, &wanted.tags);
    let headers = header::changed(&before.insert_headers, &after.insert_headers, &stale);
    let changes_headers = headers.is_some();
    if let Some(headers) = headers {
        after.insert_headers = headers;
    }
    let same_cidrs = same_cidrs(before.allowed_cidrs.as_ref(), after.allowed_cidrs.as_ref());
    let mut attributes = before.changes(&after, whole, |name, value| match name {
        "insert_headers" => Some(changes_headers),
        "allowed_cidrs" if same_cidrs && !whole => Some(false),
        tls::CERTIFICATE if renewed && !value.is_null() => Some(true),
        _ => (value.is_null() && tls::has(&stale, name)).then_some(true),
    });
    // A cleared attribute gets Octavia's default; a list of certificates has none.
    if attributes.get(tls::SNI).is_some_and(Value::is_null) {
        attributes.set(tls::SNI, Value::Array(Vec::new()));
    }
    UpdateChild { name: None, attributes, tags: tags_without(&observed.tags, &wanted.tags, &stale) }
}

/// Returns the warning about headers that another client configured, and that Octavia silently does not insert where the members
/// speak the PROXY protocol. Headers that this controller manages are removed; others stay.
pub(super) fn not_inserted(observed: &ObservedListener, pool: &PoolProtocol) -> Option<Notice> {
    if !matches!(pool, PoolProtocol::Proxy | PoolProtocol::ProxyV2) {
        return None;
    }
    let inserted = InsertedHeader::ALL.iter().filter(|one| one.is_among(&observed.attributes.insert_headers));
    let headers: Vec<&str> = inserted.filter(|one| !one.goes_with_proxy()).map(|one| one.name()).collect();
    (!headers.is_empty()).then(|| {
        let message = format!(
            "another client configured listener {} ({}) to insert {}, which Octavia does not insert with a PROXY protocol pool \
             (PROXY protocol gives the nodes the same information); remove the header from the listener, or remove {}",
            observed.name,
            observed.id,
            headers.join(", "),
            PROXY_PROTOCOL.key
        );
        Notice::warning(HEADERS_NOT_INSERTED, message)
    })
}

/// Octavia shows no list where all clients may connect; a list with a prefix length of 0 means the same.
fn same_cidrs(before: Option<&BTreeSet<IpNet>>, wanted: Option<&BTreeSet<IpNet>>) -> bool {
    let all = |cidrs: &BTreeSet<IpNet>| cidrs.iter().any(|cidr| cidr.prefix_len() == 0);
    before == wanted || before.is_none() && wanted.is_some_and(all)
}
