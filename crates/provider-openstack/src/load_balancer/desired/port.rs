//! One port of the Service as a listener with its pool.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use openstack_ccm_core::service::ServicePort;

use super::members::Backend;
use super::{Sources, affinity, health_monitor, members, tls};
use crate::load_balancer::model::listener::{ListenerAttributes, ListenerSpec, X_FORWARDED_FOR};
use crate::load_balancer::model::pool::{PoolAttributes, PoolSpec};
use crate::load_balancer::model::tree::{DesiredListener, DesiredPool};
use crate::load_balancer::model::{self, Tags};

pub(super) fn listener(
    sources: Sources<'_>,
    index: usize,
    port: &ServicePort,
    backends: &[Backend],
    allowed_cidrs: Option<&BTreeSet<IpNet>>,
) -> DesiredListener {
    let settings = sources.settings;
    let attributes = ListenerAttributes {
        connection_limit: settings.connection_limit,
        timeouts: sources.facts.features.timeouts.then_some(settings.timeouts),
        insert_headers: insert_headers(settings.inserts_x_forwarded_for(port)),
        allowed_cidrs: allowed_cidrs.cloned(),
        tls_container_ref: settings.tls_of(port).map(|tls| tls.reference.clone()),
        tls: tls::attributes(sources, port),
    };
    let set_here = model::tls::tags(&attributes.tls);
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

fn tags(sources: Sources<'_>, port: &ServicePort, set_here: &Tags) -> Tags {
    let mut tags = &sources.tags() | set_here;
    if sources.facts.features.tags && sources.settings.tls_of(port).is_some() {
        let revision = sources.settings.tls_options.revision.as_deref();
        tags.extend(revision.map(model::tls::revision_tag));
    }
    tags
}

fn insert_headers(x_forwarded_for: bool) -> BTreeMap<String, String> {
    x_forwarded_for.then(|| (X_FORWARDED_FOR.to_owned(), "true".to_owned())).into_iter().collect()
}

fn pool(sources: Sources<'_>, index: usize, port: &ServicePort, backends: &[Backend]) -> DesiredPool {
    let monitor_port = health_monitor::http_check_port(sources, port.protocol);
    let attributes = PoolAttributes {
        lb_algorithm: sources.settings.lb_algorithm.clone(),
        session_persistence: affinity::persistence(sources.intent.service.session_affinity, port),
    };
    let mut tags = sources.tags();
    if sources.facts.features.tags {
        tags.extend(attributes.set_here());
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
