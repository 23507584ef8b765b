//! Finds hairpin-proxy and ouroboros by the marks that they leave.

use super::dns::{Line, OUROBOROS_BEGIN, Writer, lines};
use super::{LeftoverFacts, caution};
use crate::code::Code;
use crate::facts::{ClusterFacts, name_of};
use crate::finding::{Check, Finding, Fix};

pub(super) fn judge(cluster: &ClusterFacts, facts: &LeftoverFacts) -> Vec<Check> {
    let written = cluster.dns.as_ref().map(|texts| lines(texts)).unwrap_or_default();
    let by = |writer: Writer| written.iter().filter(move |line| line.writer == writer).collect::<Vec<_>>();
    let mut checks = Vec::new();
    checks.extend(hairpin_proxy(cluster, facts, &by(Writer::HairpinProxy)));
    checks.extend(ouroboros(cluster, facts, &by(Writer::Ouroboros)));
    checks
}

fn with_lines(mut finding: Finding, lines: &[&Line]) -> Finding {
    for line in lines {
        finding = finding.seen(format!("ConfigMap {}", line.config_map), line.key.clone(), line.text.clone());
    }
    finding
}

fn hairpin_proxy(cluster: &ClusterFacts, facts: &LeftoverFacts, written: &[&Line]) -> Option<Check> {
    let namespace = facts.namespaces.iter().flatten().find(|name| name.as_str() == "hairpin-proxy");
    let workloads = cluster.workloads.iter().flatten();
    // A fork may be in another namespace, and may take its import's name from a variable.
    let workload = workloads.into_iter().find(|workload| {
        workload.name.starts_with("hairpin-proxy")
            || workload
                .pods
                .containers
                .iter()
                .any(|one| one.image.as_ref().is_some_and(|image| image.contains("hairpin-proxy")))
    });
    if namespace.is_none() && workload.is_none() && written.is_empty() {
        return None;
    }
    let mut finding =
        with_lines(Finding::new(Code::L101, "hairpin-proxy leads pods around the load balancer"), written);
    if let Some(workload) = workload {
        finding = finding.seen(workload.title(), "kind", "its controller or proxy");
    }
    let fix = match (namespace, workload) {
        (Some(namespace), _) => Fix::command(["kubectl", "delete", "namespace", namespace]),
        (None, Some(workload)) => {
            let kind = workload.kind.to_ascii_lowercase();
            Fix::kubectl(&workload.namespace, ["delete", &kind, &workload.name])
        }
        (None, None) => "its controller is gone: remove exactly the lines shown".into(),
    };
    Some(caution(cluster, finding.fix(fix)).into())
}

fn ouroboros(cluster: &ClusterFacts, facts: &LeftoverFacts, written: &[&Line]) -> Option<Check> {
    let blocks = cluster
        .dns
        .iter()
        .flatten()
        .filter(|text| text.text.contains(OUROBOROS_BEGIN) || text.key.contains("ouroboros"));
    let blocks: Vec<String> = blocks.map(|text| format!("{} {}", text.config_map, text.key)).collect();
    let services = cluster.services.iter().flatten().filter(|service| {
        let labels = service.metadata.labels.iter().flatten();
        labels.into_iter().any(|(key, value)| key == "app.kubernetes.io/managed-by" && value == "ouroboros")
    });
    let services: Vec<String> = services.map(|service| name_of(&service.metadata)).collect();
    let is_installed = facts.namespaces.iter().flatten().any(|name| name == "ouroboros");
    if blocks.is_empty() && services.is_empty() && written.is_empty() && !is_installed {
        return None;
    }
    let mut finding =
        with_lines(Finding::new(Code::L102, "ouroboros leads pods around the load balancer"), written);
    for block in blocks {
        finding = finding.seen(format!("ConfigMap {block}"), "text", OUROBOROS_BEGIN);
    }
    for service in services {
        finding = finding.seen(format!("Service {service}"), "app.kubernetes.io/managed-by", "ouroboros");
    }
    Some(caution(cluster, finding.fix("helm uninstall ouroboros, then run doctor again")).into())
}
