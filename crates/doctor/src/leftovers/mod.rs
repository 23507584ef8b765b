//! Workarounds left in a cluster, and the clients that still depend on them.
//!
//! | module | finds |
//! | --- | --- |
//! | [`dns`] | lines by which CoreDNS leads a name elsewhere |
//! | `tools` | hairpin-proxy and ouroboros |
//! | `hostnames` | foreign hostnames, and annotations that publish one |
//! | `settings` | hostAliases, cert-manager, service proxies, CronJobs |

pub mod dns;
mod hostnames;
mod settings;
mod tools;

use crate::facts::{ClusterFacts, Looked, entries, name_of};
use crate::finding::{Check, Finding, Fix, ok, unknown};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServiceSpec};
use serde_json::json;

/// The label with which kube-proxy leaves a Service to another service proxy.
pub(crate) const SERVICE_PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";

/// Facts about leftovers, besides the facts of the cluster.
#[derive(Clone, Debug)]
pub struct LeftoverFacts {
    /// Names of all namespaces.
    pub namespaces: Looked<Vec<String>>,
    /// ConfigMaps of service proxies: `namespace/name`, and their texts.
    pub service_proxies: Looked<Vec<(String, String)>>,
}

/// Looks for all kinds of leftovers.
pub fn judge(cluster: &ClusterFacts, facts: &LeftoverFacts) -> Vec<Check> {
    let mut checks = tools::judge(cluster, facts);
    checks.extend(hostnames::judge(cluster));
    checks.extend(dns::judge(cluster));
    checks.extend(settings::judge(cluster, facts));
    for (what, trouble) in [
        ("namespaces", facts.namespaces.as_ref().err()),
        ("the configuration of service proxies", facts.service_proxies.as_ref().err()),
        ("the configuration of CoreDNS", cluster.dns.as_ref().err()),
        ("Services", cluster.services.as_ref().err()),
        ("pod templates", cluster.workloads.as_ref().err()),
    ] {
        if let Some(cause) = trouble {
            checks.push(unknown(format!("{what} cannot be read: {cause}")));
        }
    }
    if checks.is_empty() {
        checks.push(ok("no workaround is left"));
    }
    checks
}

/// Lists the addresses in `externalIPs` that kube-proxy leads to the pods of a Service.
pub(crate) fn external_ips_of(service: &Service) -> impl Iterator<Item = &String> {
    let left_to_another =
        service.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SERVICE_PROXY_NAME));
    // It is headless, or a name for something else.
    let is_left_alone = |spec: &&ServiceSpec| {
        spec.cluster_ip.as_deref() == Some("None") || spec.type_.as_deref() == Some("ExternalName")
    };
    let spec = service.spec.as_ref().filter(|spec| !left_to_another && !is_left_alone(spec));
    spec.into_iter().flat_map(|spec| spec.external_ips.iter().flatten())
}

/// Returns the command that removes an address from `externalIPs` of a Service.
pub(crate) fn without_external_ip(service: &Service, address: &str) -> Fix {
    let rest =
        service.spec.iter().flat_map(|spec| spec.external_ips.iter().flatten()).filter(|ip| *ip != address);
    let patch = json!({"spec": {"externalIPs": rest.collect::<Vec<_>>()}}).to_string();
    Fix::service(service, "patch", &["--type", "merge", "--patch", &patch])
}

/// Adds a warning if clients still depend on the workaround: Services that nodes short-circuit, because neither openstack-ccm nor
/// an overlay publishes them with `ipMode: Proxy` yet.
pub(crate) fn caution(cluster: &ClusterFacts, finding: Finding) -> Finding {
    let Ok(services) = &cluster.services else { return finding };
    let is_by_address =
        |entry: &LoadBalancerIngress| entry.ip.is_some() && entry.ip_mode.as_deref() != Some("Proxy");
    let by_address = services.iter().filter(|service| entries(service).iter().any(is_by_address));
    let names: Vec<String> = by_address.map(|service| name_of(&service.metadata)).collect();
    if names.is_empty() {
        return finding;
    }
    let names = openstack_ccm_core::text::some_of(&names, 5);
    finding.seen("careful", "still short-circuited", format!("{names}: look at these first"))
}
