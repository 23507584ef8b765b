//! Replaces invalid attributes by their current values on an existing load balancer. Pure.
//!
//! An existing listener keeps its own values. A new one takes those that the Service's other listeners of the same transport share.
//! If they do not agree, or if a guess could expose the port (source ranges, certificates), the listener is not created until the
//! setting is corrected.

use std::collections::BTreeSet;

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::octavia::{Fields as _, HealthMonitorType, ListenerProtocol};

use crate::load_balancer::desired::health_monitor::MIN_UDP_DELAY;
use crate::load_balancer::desired::sources::Sources;
use crate::load_balancer::objects::{
    Desired, DesiredListener, DesiredPool, InsertedHeader, ListenerKey, ListenerSpec, MonitorSpec,
    ObservedListener, ObservedLoadBalancer, ObservedMonitor, ObservedPool, header, tls,
};
use crate::load_balancer::settings::{Aspect, Kind, Settings, unanimous};

/// A port is not served until a setting is corrected.
const PORT_WAITS: &str = "LoadBalancerPortWaits";

/// An existing listener with its default pool.
#[derive(Clone, Copy)]
struct Seen<'a> {
    listener: &'a ObservedListener,
    pool: Option<&'a ObservedPool>,
}

/// Replaces invalid settings by current values.
pub(super) fn apply(desired: &mut Desired, sources: Sources<'_>, existing: &ObservedLoadBalancer) {
    let settings = sources.settings;
    if settings.unreadable.is_empty() && settings.odd.is_empty() {
        return;
    }
    let Some(children) = &existing.children else {
        // The load balancer is PENDING: no listener is planned before that ends.
        desired.listeners.clear();
        return;
    };
    let own = children.listeners.iter().filter(|listener| listener.ours && !listener.is_of_metrics());
    let seen: Vec<Seen<'_>> =
        own.map(|listener| Seen { listener, pool: children.default_pool(listener) }).collect();
    let mut waiting = Vec::new();
    desired.listeners.retain(|key, wanted| {
        let there = seen.iter().find(|seen| seen.listener.key() == *key);
        let stays = match there {
            Some(there) => {
                keep(wanted, sources, *there);
                true
            }
            None => !is_closed(settings, *key, wanted) && follow(wanted, sources, &siblings(&seen, *key)),
        };
        if !stays {
            waiting.push(key.to_string());
        }
        stays
    });
    if !waiting.is_empty() {
        let ports = waiting.join(", ");
        let message = format!(
            "clients cannot connect to {ports}: the load balancer gets no listeners for these ports until the invalid settings that \
             another Event names are corrected"
        );
        desired.notices.push(Notice::warning(PORT_WAITS, message));
    }
}

fn siblings<'a>(seen: &[Seen<'a>], key: ListenerKey) -> Vec<Seen<'a>> {
    seen.iter().filter(|seen| seen.listener.key().transport == key.transport).copied().collect()
}

/// Returns whether a setting of TLS is invalid.
fn is_unclear(settings: &Settings) -> bool {
    settings.unreadable.iter().any(|one| {
        let of_certificates = matches!(one, Aspect::Certificate | Aspect::FurtherCertificates);
        of_certificates || matches!(one, Aspect::Of(Kind::Tls, _) | Aspect::TlsRevision)
    })
}

/// Returns whether a new listener must not be created.
fn is_closed(settings: &Settings, key: ListenerKey, wanted: &DesiredListener) -> bool {
    let ends_tls = wanted.listener.protocol == ListenerProtocol::TerminatedHttps;
    settings.is_unreadable(Aspect::SourceRanges)
        || key.transport == Protocol::Tcp && settings.is_unreadable(Aspect::Certificate)
        || ends_tls && is_unclear(settings)
        || key.transport == Protocol::Sctp && settings.is_unreadable(Aspect::Sctp)
}

/// Keeps the current values of an existing listener for invalid settings.
fn keep(wanted: &mut DesiredListener, sources: Sources<'_>, there: Seen<'_>) {
    let settings = sources.settings;
    let before = &there.listener.attributes;
    if settings.is_unreadable(Aspect::SourceRanges) {
        wanted.listener.attributes.allowed_cidrs.clone_from(&before.allowed_cidrs);
    }
    pick_cluster_sources(&mut wanted.listener, sources, &[there]);
    keep_header_tags(&mut wanted.listener, settings, there.listener);
    keep_tls(&mut wanted.listener, settings, there.listener);
    follow_attributes(wanted, settings, &[there]);
    if let Some(pool) = there.pool {
        keep_monitor(&mut wanted.pool, settings, pool.monitor.as_ref());
    }
}

/// Uses the siblings' values for the invalid settings of a new listener. Returns whether they determine all of them.
fn follow(wanted: &mut DesiredListener, sources: Sources<'_>, siblings: &[Seen<'_>]) -> bool {
    let settings = sources.settings;
    let tcp = wanted.listener.key().transport == Protocol::Tcp;
    let kept = settings.current_ports.get(&wanted.listener.port);
    let unclear = |aspect: &Aspect| match aspect {
        Aspect::ProxyProtocol => kept.is_none_or(|kept| kept.proxy.is_none()),
        Aspect::Header(header) => kept.is_none_or(|kept| !kept.headers.contains_key(header)),
        _ => false,
    };
    if tcp && settings.unreadable.iter().any(unclear) {
        return false;
    }
    pick_cluster_sources(&mut wanted.listener, sources, siblings);
    let monitors = siblings.iter().filter_map(|seen| seen.pool?.monitor.as_ref());
    let monitor = monitors.clone().next();
    let agree = unanimous(monitors.map(|monitor| (&monitor.kind, &monitor.attributes))).is_some();
    keep_monitor(&mut wanted.pool, settings, monitor.filter(|_| agree));
    follow_attributes(wanted, settings, siblings)
}

/// Keeps only those addresses of the cluster itself that may already connect.
fn pick_cluster_sources(listener: &mut ListenerSpec, sources: Sources<'_>, seen: &[Seen<'_>]) {
    let settings = sources.settings;
    let Some(allowed) = &mut listener.attributes.allowed_cidrs else { return };
    if !settings.keeps(Aspect::ClusterSources) || settings.is_unreadable(Aspect::SourceRanges) {
        return;
    }
    let lets_in = |network: &_| {
        let mut lists = seen.iter().map(|seen| seen.listener.attributes.allowed_cidrs.as_ref());
        lists.len() > 0 && lists.all(|list| list.is_some_and(|list| list.contains(network)))
    };
    allowed.retain(|network| {
        settings.source_ranges.networks.contains(network)
            || !sources.facts.cluster_sources.contains(network)
            || lets_in(network)
    });
}

/// Sets the simple attributes of listener and pool. Returns whether the existing listeners determine all invalid ones.
fn follow_attributes(wanted: &mut DesiredListener, settings: &Settings, seen: &[Seen<'_>]) -> bool {
    let limits: Vec<_> = seen.iter().map(|seen| &seen.listener.attributes.limits).collect();
    let is_unreadable = |name: &str| settings.is_unreadable_of(Kind::Limit, name);
    let mut complete = wanted.listener.attributes.limits.follow(&limits, is_unreadable);
    let pools: Vec<_> = seen.iter().filter_map(|seen| Some(&seen.pool?.attributes)).collect();
    complete &=
        wanted.pool.pool.attributes.follow(&pools, |name| settings.is_unreadable_of(Kind::Pool, name));
    complete
}

/// Keeps the monitor's current values for invalid settings. Without an existing monitor, the pool has none until the setting is
/// corrected.
fn keep_monitor(pool: &mut DesiredPool, settings: &Settings, there: Option<&ObservedMonitor>) {
    let number = |name: &str| settings.is_unreadable_of(Kind::Monitor, name);
    let of_monitors = |aspect: &Aspect| matches!(aspect, Aspect::MonitorCheck | Aspect::Of(Kind::Monitor, _));
    let unreadable = settings.unreadable.iter().any(of_monitors);
    let Some(wanted) = pool.monitor.as_mut().filter(|_| unreadable) else { return };
    match there {
        Some(there) => wanted.attributes.keep(&there.attributes, number),
        None => pool.monitor = None,
    }
    let too_short = |monitor: &MonitorSpec| {
        monitor.kind == HealthMonitorType::UdpConnect && monitor.attributes.delay < MIN_UDP_DELAY
    };
    let is_there = there.is_some_and(|there| there.kind == HealthMonitorType::UdpConnect);
    if pool.monitor.as_ref().is_some_and(too_short) && !is_there {
        pool.monitor = None;
    }
}

/// Keeps the tags that say who asked for the headers that the listener keeps.
fn keep_header_tags(wanted: &mut ListenerSpec, settings: &Settings, there: &ObservedListener) {
    let mut kept = BTreeSet::from(InsertedHeader::ALL);
    kept.retain(|header| settings.keeps(Aspect::Header(*header)));
    wanted.tags = header::with_kept(&wanted.tags, &kept, &there.tags);
}

/// Keeps TLS attributes of a TLS-terminating listener. Only those that the Service set count, as tags show; an administrator's stay
/// theirs.
fn keep_tls(wanted: &mut ListenerSpec, settings: &Settings, there: &ObservedListener) {
    if wanted.protocol != ListenerProtocol::TerminatedHttps {
        return;
    }
    let attributes = &mut wanted.attributes.tls;
    let ours = tls::set_here(&there.attributes.tls, &there.tags);
    attributes.keep(&ours, |name| match name {
        tls::SNI => settings.is_unreadable(Aspect::FurtherCertificates),
        _ => settings.is_unreadable_of(Kind::Tls, name),
    });
    if is_unclear(settings) && !wanted.tags.is_empty() {
        let revision = settings.is_unreadable(Aspect::TlsRevision);
        wanted.tags = tls::with_kept(&wanted.tags, attributes, revision.then_some(&there.tags));
    }
}
