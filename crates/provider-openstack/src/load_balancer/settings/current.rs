//! Current values in place of invalid settings. Pure.
//!
//! This module covers what determines the protocols of listeners and pools, and the publication. Simple attributes are kept where
//! the tree is built ([`desired`](crate::load_balancer::desired)).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use openstack_ccm_core::service::{ExternalTrafficPolicy, Protocol, Service};
use openstack_ccm_openstack_api::octavia::{HealthMonitorType, ListenerProtocol, PoolProtocol};

use crate::load_balancer::annotations::LOAD_BALANCER_ADDRESS;
use crate::load_balancer::objects::monitor::health_check_node_port;
use crate::load_balancer::objects::pool::MONITORED;
use crate::load_balancer::objects::{
    Children, InsertedHeader, ListenerKey, Observed, ObservedListener, ObservedLoadBalancer, ObservedMonitor,
    ObservedPool,
};
use crate::load_balancer::settings::{Aspect, Exposure, MonitorCheck, ProxyVersion, Settings, TlsContainer};

/// What a TCP port keeps. An absent value follows the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurrentPort {
    /// The version of the PROXY protocol; the inner `None` means no PROXY protocol.
    pub proxy: Option<Option<ProxyVersion>>,
    pub headers: BTreeMap<InsertedHeader, bool>,
    /// The certificate; the inner `None` means that the load balancer does not terminate TLS.
    pub tls: Option<Option<TlsContainer>>,
}

impl Settings {
    /// Returns the settings for an existing load balancer: current values replace invalid ones. A port that does not exist yet
    /// takes the values that its siblings share.
    #[must_use]
    pub(crate) fn keeping(&self, service: &Service, observed: &Observed) -> Self {
        let mut settings = self.clone();
        let Some(existing) = &observed.load_balancer else { return settings };
        if settings.keeps(Aspect::Exposure) && is_internal(service, observed, existing) {
            settings.exposure = Exposure::Internal;
        }
        settings.drop_rejected_addresses();
        if settings.keeps(Aspect::ClusterSources) {
            // Those that may already connect are selected where the tree is built.
            settings.allow_cluster_sources = true;
        }
        settings.preference.keep_published = settings.keeps(Aspect::Publication);
        if let Some(children) = &existing.children {
            settings.keep_monitor(service, children);
            settings.keep_ports(service, children);
        }
        settings
    }

    fn keep_monitor(&mut self, service: &Service, children: &Children) {
        let own = || children.pools.iter().filter(|pool| pool.ours);
        let mut monitors = own().filter_map(|pool| pool.monitor.as_ref().map(|monitor| (pool, monitor)));
        let of_tcp = |(pool, _): &(&ObservedPool, &ObservedMonitor)| !is_of_packets(&pool.protocol);
        if self.is_unreadable(Aspect::MonitorCheck)
            && let Some((_, monitor)) = monitors.clone().find(of_tcp)
        {
            self.monitor_if_any.check = chosen_check(service, monitor);
            if let Some(monitor) = &mut self.health_monitor {
                monitor.check.clone_from(&self.monitor_if_any.check);
            }
        }
        // A pool without a listener is still being built, and may get its monitor.
        let in_use = own().any(|pool| !pool.used_by.is_empty());
        let only_if_new = self.monitor_only_if_new && in_use;
        if only_if_new || (self.keeps(Aspect::Monitor) && own().next().is_some()) {
            let monitored = only_if_new && own().any(|pool| pool.tags.contains(MONITORED));
            self.health_monitor =
                (monitored || monitors.next().is_some()).then(|| self.monitor_if_any.clone());
        }
    }

    fn keep_ports(&mut self, service: &Service, children: &Children) {
        if !Aspect::of_protocols().into_iter().any(|aspect| self.keeps(aspect)) {
            return;
        }
        let seen: Vec<CurrentListener> = children
            .listeners
            .iter()
            .filter(|listener| {
                listener.ours && listener.key().transport == Protocol::Tcp && !listener.is_of_metrics()
            })
            .map(|listener| CurrentListener::of(listener, children))
            .collect();
        for port in service.ports.iter().filter(|port| port.protocol == Protocol::Tcp) {
            let there = seen.iter().find(|seen| seen.key.port == port.port);
            let proxy = there
                .and_then(|seen| seen.proxy)
                .or_else(|| unanimous(seen.iter().filter_map(|seen| seen.proxy)));
            let inserted = |header: InsertedHeader| match there {
                Some(seen) => Some(seen.inserts(header)),
                None => unanimous(seen.iter().map(|seen| seen.inserts(header))),
            };
            let headers =
                InsertedHeader::ALL.into_iter().filter(|header| self.keeps(Aspect::Header(*header)));
            let kept = CurrentPort {
                proxy: proxy.filter(|_| self.keeps(Aspect::ProxyProtocol)),
                headers: headers.filter_map(|header| Some((header, inserted(header)?))).collect(),
                // A new port without a certificate is not created until the setting is corrected.
                tls: self.keeps(Aspect::Certificate).then(|| there.and_then(|seen| seen.tls.clone())),
            };
            self.current_ports.insert(port.port, kept);
        }
    }
}

/// The Service's settings, as a TCP listener shows them.
struct CurrentListener {
    key: ListenerKey,
    /// Absent without a pool.
    proxy: Option<Option<ProxyVersion>>,
    headers: BTreeSet<InsertedHeader>,
    /// Whether it speaks HTTP, although it inserts none of the headers.
    http_alone: bool,
    tls: Option<TlsContainer>,
}

impl CurrentListener {
    fn of(listener: &ObservedListener, children: &Children) -> Self {
        let attributes = &listener.attributes;
        let ends_tls = listener.protocol == ListenerProtocol::TerminatedHttps;
        let mut headers = BTreeSet::from(InsertedHeader::ALL);
        headers.retain(|header| header.is_among(&attributes.insert_headers));
        let reference = attributes.tls_container_ref.clone().filter(|_| ends_tls);
        Self {
            key: listener.key(),
            proxy: children.default_pool(listener).map(|pool| version(&pool.protocol)),
            http_alone: headers.is_empty() && listener.protocol == ListenerProtocol::Http,
            headers,
            tls: reference.map(|reference| TlsContainer { reference, barbican: None }),
        }
    }

    /// Returns whether the listener inserts the header, or can speak HTTP for no other reason.
    fn inserts(&self, header: InsertedHeader) -> bool {
        self.http_alone || self.headers.contains(&header)
    }
}

/// Returns the value, if all values are equal.
pub(crate) fn unanimous<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values = values.into_iter();
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn version(protocol: &PoolProtocol) -> Option<ProxyVersion> {
    match protocol {
        PoolProtocol::Proxy => Some(ProxyVersion::V1),
        PoolProtocol::ProxyV2 => Some(ProxyVersion::V2),
        _ => None,
    }
}

fn is_of_packets(protocol: &PoolProtocol) -> bool {
    matches!(protocol, PoolProtocol::Udp | PoolProtocol::Sctp)
}

/// Returns the check that the user chose, as far as the monitor shows one. The check of the health check node port is not one,
/// since it follows from the Service.
fn chosen_check(service: &Service, monitor: &ObservedMonitor) -> Option<MonitorCheck> {
    let http = monitor.attributes.http.clone();
    let local = service.external_traffic_policy == ExternalTrafficPolicy::Local
        && service.health_check_node_port.is_some();
    let derived = local && monitor.kind == HealthMonitorType::Http && http == Some(health_check_node_port());
    (!derived).then(|| MonitorCheck { kind: monitor.kind.clone(), http })
}

/// Returns whether the Service has been internal so far: its last published address is that of its VIP. `false` without an address.
fn is_internal(service: &Service, observed: &Observed, existing: &ObservedLoadBalancer) -> bool {
    let attached = |address: &Option<String>| address.is_some() && *address == existing.vip_port_id;
    if observed.floating_ips.iter().any(|floating_ip| attached(&floating_ip.port_id)) {
        return false;
    }
    let address = service.annotations.get(LOAD_BALANCER_ADDRESS.key);
    let address = address.and_then(|address| address.parse::<IpAddr>().ok());
    address.is_some_and(|address| existing.vip_addresses().any(|vip| vip == address))
}
