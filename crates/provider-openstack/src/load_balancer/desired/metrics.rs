//! The listener for the load balancer's metrics.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_openstack_api::octavia::{ListenerAttributes, ListenerLimits, ListenerProtocol};

use super::sources::Sources;
use super::tls::NOT_SUPPORTED;
use crate::load_balancer::annotations::{METRICS_ALLOW_CIDRS, METRICS_ENABLE};
use crate::load_balancer::objects::{ListenerSpec, ObservedLoadBalancer};
use crate::load_balancer::settings::Aspect;
use crate::load_balancer::settings::node_address::family_of;

/// Returns the listener, if the Service asks for it and the cloud supports it. Without an allowed network there is none: Octavia
/// would allow all networks.
pub(super) fn listener(sources: Sources<'_>, notices: &mut Vec<Notice>) -> Option<ListenerSpec> {
    let wanted = sources.settings.metrics.as_ref()?;
    if sources.settings.keeps(Aspect::Metrics) {
        return None;
    }
    let mut ignored = |why: String| notices.push(Notice::warning(NOT_SUPPORTED, why));
    if !sources.facts.features.prometheus || !sources.facts.features.allowed_cidrs {
        let lack = sources.facts.features.lack("2.25");
        ignored(format!("annotation {} is ignored: {lack}", METRICS_ENABLE.key));
        return None;
    }
    let families: Vec<IpFamily> = sources.facts.vip_families().collect();
    let fits = |network: &&IpNet| families.contains(&family_of(network.addr()));
    let allowed: BTreeSet<IpNet> = wanted.allowed.iter().filter(fits).copied().collect();
    if allowed.is_empty() {
        ignored(format!(
            "metrics are not served: no network in {} has the IP family of the load balancer's address; add such a network",
            METRICS_ALLOW_CIDRS.key
        ));
        return None;
    }
    Some(ListenerSpec {
        name: sources.names.metrics_listener(),
        protocol: ListenerProtocol::Prometheus,
        port: wanted.port,
        attributes: ListenerAttributes { allowed_cidrs: Some(allowed), ..ListenerAttributes::default() },
        tags: sources.tags(&sources.settings.user_tags.listener),
    })
}

/// Returns the warning that a guest gets no metrics, since they cover all Services on the load balancer.
pub(super) fn not_for_guests() -> Notice {
    let message = format!(
        "annotation {} is ignored: the load balancer was created for another Service, and the metrics would show the listeners and \
         members of all Services that use the load balancer",
        METRICS_ENABLE.key
    );
    Notice::warning(NOT_SUPPORTED, message)
}

/// Returns the current listener, if the setting is invalid.
pub(super) fn current(sources: Sources<'_>, existing: &ObservedLoadBalancer) -> Option<ListenerSpec> {
    let children = existing.children.as_ref().filter(|_| sources.settings.keeps(Aspect::Metrics))?;
    let there = children.listeners.iter().find(|listener| listener.ours && listener.is_of_metrics())?;
    Some(ListenerSpec {
        name: there.name.clone(),
        protocol: there.protocol.clone(),
        port: there.port,
        attributes: ListenerAttributes { limits: ListenerLimits::default(), ..there.attributes.clone() },
        tags: there.tags.clone(),
    })
}
