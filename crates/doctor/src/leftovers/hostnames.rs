//! Hostnames of foreign DNS services in statuses, and annotations that publish one.

use k8s_openapi::api::core::v1::Service;

use super::dns::WITH_ADDRESS;
use crate::code::Code;
use crate::facts::{ClusterFacts, entries, name_of};
use crate::finding::{Check, Finding, Fix};

/// Annotations by which the controllers of clouds publish a hostname.
const ANNOTATIONS: [&str; 8] = [
    "loadbalancer.openstack.org/hostname",
    "service.beta.kubernetes.io/do-loadbalancer-hostname",
    "load-balancer.hetzner.cloud/hostname",
    "k8s.cloudscale.ch/loadbalancer-force-hostname",
    "service.beta.kubernetes.io/linode-loadbalancer-hostname-only-ingress",
    "service.beta.kubernetes.io/vultr-loadbalancer-hostname",
    "service.beta.kubernetes.io/scw-loadbalancer-use-hostname",
    "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-hostname",
];

pub(super) fn judge(cluster: &ClusterFacts) -> Vec<Check> {
    cluster.services.iter().flatten().flat_map(of_service).collect()
}

fn of_service(service: &Service) -> Vec<Check> {
    let name = name_of(&service.metadata);
    let object = format!("Service {name}");
    let spec_type = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
    if spec_type != Some("LoadBalancer") {
        return Vec::new();
    }
    let is_foreign =
        |hostname: &&String| WITH_ADDRESS.iter().any(|suffix| hostname.ends_with(&format!(".{suffix}")));
    let hostnames = entries(service).iter().filter_map(|entry| entry.hostname.as_ref());
    let mut checks: Vec<Check> = hostnames
        .filter(is_foreign)
        .map(|hostname| {
            Finding::new(Code::L103, format!("{name} is published with the third-party hostname {hostname}"))
                .seen(object.clone(), "status.loadBalancer.ingress[].hostname", hostname)
                .into()
        })
        .collect();
    for (key, value) in service.metadata.annotations.iter().flatten() {
        if ANNOTATIONS.contains(&key.as_str()) {
            let text = format!("{name} asks for a hostname in place of its address");
            checks.push(
                Finding::new(Code::L103, text)
                    .seen(object.clone(), key, value)
                    .fix(Fix::service(service, "annotate", &[&format!("{key}-")]))
                    .into(),
            );
        }
    }
    checks
}
