//! The decision how to publish the addresses of a load balancer. Pure.
//!
//! If `ipMode: Proxy` (KEP-1860) is needed but would have no effect, a hostname is published instead: service proxies never
//! short-circuit hostnames, in any version. Without a hostname, `Proxy` is published all the same if the API server keeps
//! the mode: it does no harm on nodes that ignore it, and all other nodes need it.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use openstack_ccm_core::advertise::{
    ClusterAccess, IpModeChoice, Needs, Path, Preference, SettingNames, hostname,
};

use crate::advertisement::{Advertisement, Mode, Reason};
use crate::cluster::{Cluster, Obstacle, ServerSupport};
use crate::entry::{PROXY, VIP, of_address, of_hostname, same_entries};
use crate::{remedy, shared};

/// What to publish for one Service.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// The addresses of the load balancer.
    pub addresses: &'a [IpAddr],
    /// Whether clients need the load balancer.
    pub path: Path,
    /// What user and operator prefer.
    pub preference: &'a Preference,
    /// Whether the load balancer admits the cluster's own pods.
    pub access: &'a ClusterAccess,
    /// The present status, whichever client published it.
    pub published: &'a [LoadBalancerIngress],
    /// Settings by which user and operator choose otherwise.
    pub settings: &'a SettingNames,
}

impl Publication<'_> {
    fn choice(&self) -> IpModeChoice {
        self.preference.service_mode.unwrap_or(self.preference.cluster_mode)
    }

    /// Whether the address stays published for the short circuit, although the path needs the load balancer: pods that
    /// reach the application now would be rejected. Not with the PROXY protocol, where the short circuit fails anyway,
    /// and not if user or operator chose a mode.
    fn keeps_vip(&self) -> bool {
        let works_without = matches!(
            self.path,
            Path::ThroughLoadBalancer(Needs::TlsTermination | Needs::HeaderInsertion | Needs::SharedAddress)
        );
        works_without
            && *self.access != ClusterAccess::Open
            && self.choice() == IpModeChoice::Auto
            && is_by_vip(self.published)
    }

    /// Whether the addresses must lead through the load balancer, also for other Services on them.
    pub fn needs_load_balancer(&self) -> bool {
        shared::needs_load_balancer(self.path, self.preference) && !self.keeps_vip()
    }
}

/// Whether a status has only addresses, all open to the short circuit: that is how other controllers publish everything
/// but PROXY load balancers.
fn is_by_vip(published: &[LoadBalancerIngress]) -> bool {
    !published.is_empty()
        && published
            .iter()
            .all(|entry| entry.ip.is_some() && matches!(entry.ip_mode.as_deref(), None | Some(VIP)))
}

/// Decides how to publish the addresses of a load balancer.
pub fn decide(publication: &Publication<'_>, cluster: &Cluster) -> Advertisement {
    let Publication { addresses, path, preference, .. } = *publication;
    if preference.service_mode.is_none() {
        if let Some(hostname) = &preference.hostname {
            return hostname_only(hostname, Reason::HostnameAnnotation);
        }
        if preference.always_hostname
            && path == Path::ThroughLoadBalancer(Needs::ProxyProtocol)
            && let Some(suffix) = &preference.hostname_suffix
        {
            return by_suffix(addresses, suffix, Reason::IngressHostnameEnabled);
        }
    }
    match (publication.choice(), path) {
        (IpModeChoice::Vip, _) => Advertisement {
            bypassed: remedy::bypassed(path, preference, publication.settings),
            ..vip(addresses, cluster, Reason::VipRequested)
        },
        (IpModeChoice::Auto, Path::Direct) => vip(addresses, cluster, Reason::DirectPath),
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(_)) if publication.keeps_vip() => {
            let shut_out = remedy::stays_short_circuited(publication.access, publication.settings);
            Advertisement { shut_out, ..vip(addresses, cluster, Reason::SourceRangesLackCluster) }
        }
        // This Service itself works without the mode: if the server drops the mode, no fallback is needed. Nodes that
        // ignore it do no harm.
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(needs @ Needs::SharedAddress)) => {
            match cluster.server_obstacle() {
                Some(_) => vip(addresses, cluster, Reason::DirectPath),
                None => by_proxy(publication, Reason::PathNeedsLoadBalancer(needs)),
            }
        }
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(needs)) => {
            proxy(publication, cluster, Reason::PathNeedsLoadBalancer(needs))
        }
        (IpModeChoice::Proxy, _) => proxy(publication, cluster, Reason::ProxyRequested),
    }
}

/// Publishes `Proxy` if it has its effect, and otherwise the next best.
fn proxy(publication: &Publication<'_>, cluster: &Cluster, reason: Reason) -> Advertisement {
    // An explicit request outweighs the judgement of the nodes, which may be wrong, but not that of the server.
    let asked = reason == Reason::ProxyRequested;
    let obstacle = if asked { cluster.server_obstacle() } else { cluster.obstacle() };
    let Some(obstacle) = obstacle else {
        let warning = cluster.obstacle().map(|obstacle| {
            format!(
                "ipMode Proxy is published as ip-mode requests, but {obstacle}; pods on such nodes might bypass the load balancer"
            )
        });
        return Advertisement { warning, ..by_proxy(publication, reason) };
    };
    match publication.path {
        Path::Direct => {
            let insisted = publication.preference.service_mode == Some(IpModeChoice::Proxy);
            let warning = insisted.then(|| format!("ipMode Proxy cannot be published: {obstacle}"));
            let addresses = publication.addresses;
            Advertisement { warning, ..vip(addresses, cluster, Reason::ProxyNotPossible(obstacle)) }
        }
        Path::ThroughLoadBalancer(needs) => fall_back(publication, needs, cluster, obstacle),
    }
}

fn fall_back(
    publication: &Publication<'_>,
    needs: Needs,
    cluster: &Cluster,
    obstacle: Obstacle,
) -> Advertisement {
    let Publication { addresses, preference, .. } = *publication;
    let shut_out = remedy::shut_out(publication.access, publication.settings);
    if let Some(hostname) = &preference.hostname {
        return Advertisement { shut_out, ..hostname_only(hostname, Reason::FallbackToHostname(obstacle)) };
    }
    if let Some(suffix) = &preference.hostname_suffix {
        return Advertisement {
            shut_out,
            ..by_suffix(addresses, suffix, Reason::FallbackToHostname(obstacle))
        };
    }
    let warning = Some(remedy::no_fallback(needs, &obstacle, publication.settings));
    if cluster.server_obstacle().is_none() {
        return Advertisement { warning, ..by_proxy(publication, Reason::NoFallback(obstacle)) };
    }
    Advertisement { warning, ..vip(addresses, cluster, Reason::NoFallback(obstacle)) }
}

fn by_proxy(publication: &Publication<'_>, reason: Reason) -> Advertisement {
    let proxied = |ip: &IpAddr| of_address(*ip, Some(PROXY));
    Advertisement {
        entries: publication.addresses.iter().map(proxied).collect(),
        mode: Mode::Proxy,
        reason,
        warning: None,
        shut_out: remedy::shut_out(publication.access, publication.settings),
        bypassed: None,
    }
}

fn vip(addresses: &[IpAddr], cluster: &Cluster, reason: Reason) -> Advertisement {
    // The mode is spelled out only if it is kept, so that the written and the stored status agree.
    let keeps = cluster.server == ServerSupport::Keeps;
    let entries = addresses.iter().map(|ip| of_address(*ip, keeps.then_some(VIP))).collect();
    Advertisement { entries, mode: Mode::Vip, reason, warning: None, shut_out: None, bypassed: None }
}

fn hostname_only(hostname: &str, reason: Reason) -> Advertisement {
    let entries = vec![of_hostname(hostname)];
    Advertisement { entries, mode: Mode::Hostname, reason, warning: None, shut_out: None, bypassed: None }
}

fn by_suffix(addresses: &[IpAddr], suffix: &str, reason: Reason) -> Advertisement {
    let entries =
        addresses.iter().map(|address| of_hostname(hostname::for_address(*address, suffix))).collect();
    Advertisement { entries, mode: Mode::Hostname, reason, warning: None, shut_out: None, bypassed: None }
}

/// Returns the wanted status, and whether it is published already.
pub fn compare(
    current: &[LoadBalancerIngress],
    publication: &Publication<'_>,
    cluster: &Cluster,
) -> (Advertisement, bool) {
    let wanted = decide(publication, cluster);
    let same = same_entries(current, &wanted.entries, cluster.server != ServerSupport::Drops);
    if publication.preference.keep_published && stays(current, publication.addresses) {
        return (if same { wanted } else { kept(current, wanted) }, true);
    }
    if !same && cluster.gate.is_none() && cluster.server == ServerSupport::Unknown {
        // The API server could not be probed. A status that would be right for a server that keeps the mode is left
        // alone: a short outage must not change every Service back and forth.
        let hoped = decide(publication, &Cluster { server: ServerSupport::Keeps, ..cluster.clone() });
        if same_entries(current, &hoped.entries, true) {
            return (hoped, true);
        }
    }
    (wanted, same)
}

/// What stays in place of a decision: it is as it shows, and nothing is said of what is not published.
fn kept(current: &[LoadBalancerIngress], decided: Advertisement) -> Advertisement {
    let mode = Mode::of(current).unwrap_or(decided.mode);
    let entries = current.to_vec();
    Advertisement { entries, mode, reason: decided.reason, warning: None, shut_out: None, bypassed: None }
}

/// Whether the published entries can stay while the wanted ones are unknown: hostnames, or these addresses.
fn stays(current: &[LoadBalancerIngress], addresses: &[IpAddr]) -> bool {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let published: Vec<&String> = current.iter().filter_map(|entry| entry.ip.as_ref()).collect();
    !current.is_empty() && (published.is_empty() || published.into_iter().eq(&addresses))
}
