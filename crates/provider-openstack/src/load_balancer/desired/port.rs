//! Converts one port of the Service to a listener with its pool.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::service::ServicePort;
use openstack_ccm_openstack_api::octavia::{ListenerAttributes, ListenerLimits, PoolAttributes};

use super::members::Backend;
use super::sources::Sources;
use super::{affinity, health_monitor, members, tls};
use crate::load_balancer::objects::pool::MONITORED;
use crate::load_balancer::objects::{
    self, DesiredListener, DesiredPool, ListenerSpec, PoolSpec, Tags, header,
};

pub(super) fn listener(
    sources: Sources<'_>,
    index: usize,
    port: &ServicePort,
    backends: &[Backend],
    allowed_cidrs: Option<&BTreeSet<IpNet>>,
) -> DesiredListener {
    let settings = sources.settings;
    let (headers, timeouts) = (settings.inserted_headers(port), sources.facts.features.timeouts);
    let attributes = ListenerAttributes {
        limits: if timeouts { settings.limits } else { without_timeouts(settings.limits) },
        insert_headers: header::to_insert(&headers),
        allowed_cidrs: allowed_cidrs.cloned(),
        tls_container_ref: settings.tls_of(port).map(|tls| tls.reference.clone()),
        tls: tls::attributes(sources, port),
    };
    let set_here = &objects::tls::tags(&attributes.tls) | &header::tags(&headers);
    DesiredListener {
        listener: ListenerSpec {
            name: sources.names.listener(index),
            protocol: settings.listener_protocol(port),
            port: port.port,
            attributes,
            tags: tags(sources, port, &set_here),
        },
        pool: pool(sources, index, port, backends),
    }
}

fn without_timeouts(limits: ListenerLimits) -> ListenerLimits {
    ListenerLimits { connection_limit: limits.connection_limit, ..ListenerLimits::default() }
}

fn tags(sources: Sources<'_>, port: &ServicePort, set_here: &Tags) -> Tags {
    let own = sources.tags(&sources.settings.user_tags.listener);
    if !sources.facts.features.tags {
        return own;
    }
    let tls = sources.settings.tls_of(port).is_some();
    let revision = sources.settings.tls_options.revision.as_deref().filter(|_| tls);
    &(&own | set_here) | &revision.map(objects::tls::revision_tag).into_iter().collect()
}

fn pool(sources: Sources<'_>, index: usize, port: &ServicePort, backends: &[Backend]) -> DesiredPool {
    let monitor_port = health_monitor::http_check_port(sources, port.protocol);
    let session_persistence = affinity::persistence(sources.intent.service.session_affinity, port);
    let attributes = PoolAttributes { session_persistence, ..sources.pool() };
    let mut tags = sources.tags(&sources.settings.user_tags.pool);
    if sources.facts.features.tags {
        tags.extend(objects::pool::set_here(&attributes));
        let is_marked = sources.settings.monitor_only_if_new && sources.settings.health_monitor.is_some();
        tags.extend(is_marked.then(|| MONITORED.to_owned()));
    }
    DesiredPool {
        pool: PoolSpec {
            name: sources.names.pool(index),
            protocol: sources.settings.pool_protocol(port),
            attributes,
            tags,
        },
        members: members::of_pool(sources, backends, port.node_port, monitor_port),
        monitor: health_monitor::of_port(sources, index, port),
    }
}
