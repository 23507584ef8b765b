//! Decides which attributes of a listener change.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{PoolProtocol, UpdateListener};

use super::draft::tags_without;
use crate::load_balancer::annotations::PROXY_PROTOCOL;
use crate::load_balancer::objects::{
    InsertedHeader, ListenerSpec, ObservedListener, Tags, TlsAttributes, header, tls,
};

/// Octavia does not insert the headers that a listener is configured to insert.
const HEADERS_NOT_INSERTED: &str = "LoadBalancerHeadersNotInserted";

/// Returns the update that turns a listener into the wanted one. With `whole`, it contains all managed attributes, changed or not:
/// any valid update heals a listener in ERROR.
pub(super) fn changes(observed: &ObservedListener, wanted: &ListenerSpec, whole: bool) -> UpdateListener {
    let stale = &tls::stale(&observed.tags, &wanted.tags) | &header::stale(&observed.tags, &wanted.tags);
    let (before, after) = (&observed.attributes, &wanted.attributes);
    let renewed = tls::is_renewed(&observed.tags, &wanted.tags);
    let differs = |limit, value| whole || before.limits.get(limit) != Some(value);
    let cidrs = after
        .allowed_cidrs
        .as_ref()
        .filter(|cidrs| whole || !same_cidrs(before.allowed_cidrs.as_ref(), cidrs))
        .map(|cidrs| cidrs.iter().map(ToString::to_string).collect());
    let certificate = after
        .tls_container_ref
        .clone()
        .filter(|_| whole || renewed || before.tls_container_ref != after.tls_container_ref);
    UpdateListener {
        limits: after.limits.iter().filter(|(limit, value)| differs(*limit, *value)).collect(),
        insert_headers: header::changed(&before.insert_headers, &after.insert_headers, &stale),
        allowed_cidrs: cidrs.map_or(Change::Keep, Change::Set),
        default_tls_container_ref: certificate.map_or(Change::Keep, Change::Set),
        tags: tags_without(&observed.tags, &wanted.tags, &stale),
        ..tls_changes(&before.tls, &after.tls, &stale, whole)
    }
}

/// Returns the changes of the TLS attributes. A cleared attribute gets Octavia's default.
fn tls_changes(before: &TlsAttributes, wanted: &TlsAttributes, stale: &Tags, whole: bool) -> UpdateListener {
    let stale = |tag| stale.contains(tag);
    let sni = change(&before.sni_container_refs, &wanted.sni_container_refs, stale(tls::SNI), whole);
    UpdateListener {
        sni_container_refs: match sni {
            Change::Keep => None,
            Change::Set(references) => Some(references),
            Change::Clear => Some(BTreeSet::new()),
        },
        tls_versions: change(&before.versions, &wanted.versions, stale(tls::VERSIONS), whole),
        tls_ciphers: change(&before.ciphers, &wanted.ciphers, stale(tls::CIPHERS), whole),
        alpn_protocols: change(&before.alpn_protocols, &wanted.alpn_protocols, stale(tls::ALPN), whole),
        ..UpdateListener::default()
    }
}

/// Sets a wanted value where it differs; a value that was set here and is no longer wanted gets Octavia's default.
fn change<T: Clone + PartialEq>(
    before: &Option<T>,
    wanted: &Option<T>,
    stale: bool,
    whole: bool,
) -> Change<T> {
    match wanted {
        Some(value) if whole || before != wanted => Change::Set(value.clone()),
        None if stale => Change::Clear,
        Some(_) | None => Change::Keep,
    }
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
fn same_cidrs(before: Option<&BTreeSet<IpNet>>, wanted: &BTreeSet<IpNet>) -> bool {
    match before {
        Some(before) => before == wanted,
        None => wanted.iter().any(|cidr| cidr.prefix_len() == 0),
    }
}
