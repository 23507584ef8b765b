//! Settings that are often made because of a short circuit.

use k8s_openapi::api::core::v1::{Container, HostAlias};

use super::{LeftoverFacts, SERVICE_PROXY_NAME, external_ips_of};
use crate::code::Code;
use crate::facts::{ClusterFacts, Workload, entries, name_of};
use crate::finding::{Check, Finding, Fix};
use openstack_ccm_core::text::some_of;

/// Flags of cert-manager that work around a short circuit.
const CERT_MANAGER: [&str; 3] = [
    "--acme-http01-solver-nameservers",
    "--dns01-recursive-nameservers",
    "--dns01-recursive-nameservers-only",
];

pub(super) fn judge(cluster: &ClusterFacts, facts: &LeftoverFacts) -> Vec<Check> {
    let mut checks = Vec::new();
    for workload in cluster.workloads.iter().flatten() {
        checks.extend(host_aliases(cluster, workload));
        checks.extend(cert_manager(workload));
        checks.extend(cron_job(workload));
    }
    checks.extend(service_proxies(facts));
    checks.extend(labels(cluster));
    checks.extend(external_ips(cluster));
    checks
}

/// Finds Services with the published address of a load balancer in `externalIPs`.
fn external_ips(cluster: &ClusterFacts) -> Vec<Check> {
    let services = || cluster.services.iter().flatten();
    let published: Vec<&String> =
        services().flat_map(entries).filter_map(|entry| entry.ip.as_ref()).collect();
    let mut checks = Vec::new();
    for service in services() {
        let ips = external_ips_of(service);
        for ip in ips.filter(|ip| published.contains(ip)) {
            let name = name_of(&service.metadata);
            let text = format!("{name} has the address {ip} of a load balancer in externalIPs");
            let finding =
                Finding::new(Code::L109, text).seen(format!("Service {name}"), "spec.externalIPs", ip);
            checks.push(finding.fix(super::without_external_ip(service, ip)).into());
        }
    }
    checks
}

/// Finds host aliases whose address belongs to a Service.
fn host_aliases(cluster: &ClusterFacts, workload: &Workload) -> Vec<Check> {
    let one = |alias: &HostAlias| -> Option<Check> {
        let (address, names) = (&alias.ip, alias.hostnames.as_deref().unwrap_or_default());
        let whose = cluster.services.iter().flatten().find_map(|service| {
            let spec = service.spec.as_ref()?;
            let has = spec.cluster_ip.as_ref() == Some(address)
                || spec.cluster_ips.iter().flatten().any(|ip| ip == address)
                || entries(service).iter().any(|entry| entry.ip.as_ref() == Some(address));
            has.then(|| service.metadata.name.clone().unwrap_or_default())
        })?;
        let text = format!(
            "hostAliases send pods of {} to {address} (Service {whose}) for {}",
            workload.title(),
            some_of(names, 3)
        );
        let finding = Finding::new(Code::L105, text).seen(
            workload.title(),
            "hostAliases",
            format!("{address} {}", some_of(names, 5)),
        );
        Some(super::caution(cluster, finding).into())
    };
    workload.pods.host_aliases.iter().flatten().filter_map(one).collect()
}

fn cert_manager(workload: &Workload) -> Option<Check> {
    let is_it = |one: &&Container| one.image.as_ref().is_some_and(|image| image.contains("cert-manager"));
    let words = workload.pods.containers.iter().filter(is_it).flat_map(words);
    let flags: Vec<&String> =
        words.filter(|word| CERT_MANAGER.iter().any(|flag| word.split('=').next() == Some(flag))).collect();
    (!flags.is_empty()).then(|| {
        Finding::new(Code::L106, format!("{} uses its own name servers", workload.title()))
            .seen(workload.title(), "arguments", some_of(&flags, 3))
            .into()
    })
}

fn words(container: &Container) -> impl Iterator<Item = &String> {
    container.command.iter().flatten().chain(container.args.iter().flatten())
}

/// Finds a CronJob that runs kubectl on Services.
fn cron_job(workload: &Workload) -> Option<Check> {
    if workload.kind != "CronJob" {
        return None;
    }
    let text: Vec<&str> = workload.pods.containers.iter().flat_map(words).map(String::as_str).collect();
    let text = text.join(" ");
    let writes = ["annotate", "patch", "label"].iter().any(|verb| text.contains(verb));
    let services = ["service", "services", " svc"].iter().any(|kind| text.contains(kind));
    (text.contains("kubectl") && writes && services).then(|| {
        Finding::new(Code::L108, format!("{} writes to Services", workload.title()))
            .seen(
                workload.title(),
                "command",
                openstack_ccm_core::text::printable(&text).chars().take(200).collect::<String>(),
            )
            .into()
    })
}

fn service_proxies(facts: &LeftoverFacts) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, text) in facts.service_proxies.iter().flatten() {
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().trim_matches('"'), value.trim());
            let hides = match key {
                "proxyLoadBalancerIPs" => value.trim_end_matches(',') == "false",
                "excludeCIDRs" => !matches!(value, "" | "null" | "[]"),
                _ => false,
            };
            // A list may begin on the next line.
            let begins = key == "excludeCIDRs" && value.is_empty() && {
                let rest = text.split_once(line).map(|(_, rest)| rest.trim_start()).unwrap_or_default();
                rest.starts_with("- ")
            };
            if hides || begins {
                checks.push(
                    Finding::new(Code::L107, format!("{key} hides addresses from the service proxy"))
                        .seen(
                            format!("ConfigMap {name}"),
                            key,
                            if value.is_empty() { "a list" } else { value },
                        )
                        .into(),
                );
            }
        }
    }
    checks
}

fn labels(cluster: &ClusterFacts) -> Vec<Check> {
    let mut checks = Vec::new();
    for service in cluster.services.iter().flatten() {
        let labels = service.metadata.labels.iter().flatten();
        for (_, value) in labels.into_iter().filter(|(key, _)| key.as_str() == SERVICE_PROXY_NAME) {
            let name = name_of(&service.metadata);
            let finding = Finding::new(
                Code::L107,
                format!("kube-proxy leaves {name} to another service proxy"),
            )
            .seen(format!("Service {name}"), SERVICE_PROXY_NAME, value);
            let fix = Fix::service(service, "label", &[&format!("{SERVICE_PROXY_NAME}-")]);
            checks.push(finding.fix(fix).into());
        }
    }
    checks
}
