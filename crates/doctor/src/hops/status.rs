//! Hop 2: what is published.

use k8s_openapi::api::core::v1::LoadBalancerIngress;

use super::look::{Look, all_shown, entries, is_short_circuited, key, shown};
use crate::backend::Expectation;
use crate::code::Code;
use crate::facts::{Outlook, PathFact};
use crate::finding::{Check, Finding, Fix, ok, unknown};

const FIELD: &str = "status.loadBalancer.ingress";

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    if look.entries.is_empty() {
        return vec![unpublished(look)];
    }
    let mut checks = Vec::new();
    match look.path() {
        Err(cause) => checks.push(unknown(format!(
            "{}: whether clients have to come through the load balancer is not known: {cause}",
            all_shown(&look.entries)
        ))),
        Ok(path) => match &path.needs {
            None => {
                checks.push(ok(format!(
                    "{}: nodes may short-circuit, the path needs nothing",
                    all_shown(&look.entries)
                )));
            }
            Some(needs) => checks.extend(needed(look, path, needs)),
        },
    }
    checks.extend(would_publish(look));
    checks.extend(writers(look));
    checks.extend(shared(look));
    checks
}

fn unpublished(look: &Look<'_>) -> Check {
    let describe = Fix::kubectl(look.namespace(), ["describe", "service", look.name()]);
    let finding = Finding::new(Code::D206, "the Service has no address yet")
        .seen(look.object(), FIELD, "empty")
        .fix(describe);
    match look.facts.cloud.as_ref().map(|cloud| &cloud.outlook) {
        Ok(Outlook::Waits(cause)) => finding.seen("openstack-ccm", "waits for", cause).into(),
        Ok(Outlook::Refused(cause)) => finding.seen("openstack-ccm", "refuses", cause).into(),
        _ => finding.into(),
    }
}

/// The path needs the load balancer.
fn needed(look: &Look<'_>, path: &PathFact, needs: &str) -> Vec<Check> {
    let around: Vec<&LoadBalancerIngress> = look.short_circuited().collect();
    if around.is_empty() {
        return vec![ok(format!("{}, and {needs}", all_shown(&look.entries)))];
    }
    let either = matches!(&look.backend, Ok(judgement) if judgement.expects == Expectation::Either);
    if path.header && either {
        return vec![ok(format!(
            "{}: nodes may short-circuit, and the application takes connections without the header",
            all_shown(&look.entries)
        ))];
    }
    if look.cluster.keeps_mode == Ok(false) {
        return vec![dropped(look, needs)];
    }
    let one = |entry: &&LoadBalancerIngress| -> Check {
        if entry.hostname.is_some() {
            return Finding::new(
                Code::D203,
                format!("{}: nodes short-circuit the address, and {needs}", shown(entry)),
            )
            .seen(look.object(), FIELD, shown(entry))
            .into();
        }
        let mut finding =
            Finding::new(Code::D201, format!("{}: nodes short-circuit it, but {needs}", shown(entry)))
                .seen(look.object(), FIELD, shown(entry))
                .seen(look.object(), "the path", path.source.clone());
        if let Some(manager) = manager(look) {
            finding = finding.seen(look.object(), "last writer of the status", manager);
        }
        if let Ok(wanted) = &look.facts.wanted {
            let would = format!("{}: {}", all_shown(&wanted.entries), wanted.reason);
            finding = finding.seen("openstack-ccm", "would publish", would);
            for warning in &wanted.warnings {
                finding = finding.seen("openstack-ccm", "would warn", warning);
            }
        }
        finding.fix(remedy(look)).into()
    };
    around.iter().map(one).collect()
}

fn remedy(look: &Look<'_>) -> Fix {
    let ip_mode = "loadbalancer.openstack.org/ip-mode";
    let annotations = look.facts.service.metadata.annotations.iter().flatten();
    if annotations.into_iter().any(|(key, value)| key == ip_mode && value.eq_ignore_ascii_case("vip")) {
        return look.annotate(&format!("{ip_mode}-"));
    }
    "let openstack-ccm publish it: openstack-ccm adopt shows what would change. Beside another controller: ip-mode-overlay".into()
}

fn dropped(look: &Look<'_>, needs: &str) -> Check {
    let annotate = look.annotate("loadbalancer.openstack.org/hostname=NAME");
    Finding::new(Code::D202, format!("the API server drops ipMode, so nodes short-circuit, but {needs}"))
        .seen(look.object(), FIELD, all_shown(&look.entries))
        .seen("API server", "a status written on trial", "came back without its mode")
        .fix(annotate)
        .into()
}

/// What openstack-ccm would publish, where that is another thing and no defect.
fn would_publish(look: &Look<'_>) -> Option<Check> {
    let wanted = match &look.facts.wanted {
        Ok(wanted) => wanted,
        Err(cause) => {
            return Some(unknown(format!("what openstack-ccm would publish is not known: {cause}")));
        }
    };
    let is_broken = matches!(look.path(), Ok(path) if path.needs.is_some()) && look.short_circuit();
    (!wanted.published && !wanted.entries.is_empty() && !is_broken)
        .then(|| ok(format!("openstack-ccm would publish {}: {}", all_shown(&wanted.entries), wanted.reason)))
}

/// Who wrote the entries last, where that is recorded.
fn manager(look: &Look<'_>) -> Option<String> {
    let managed = look.facts.service.metadata.managed_fields.iter().flatten();
    let writes = |fields: &serde_json::Value| fields["f:status"]["f:loadBalancer"].get("f:ingress").is_some();
    let last = managed
        .filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| writes(&fields.0)))
        .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?;
    let time = last.time.as_ref().map(|time| format!(" at {}", time.0)).unwrap_or_default();
    Some(format!("{}{time}", last.manager.clone().unwrap_or_default()))
}

/// Another program than the one that leads wrote the status.
fn writers(look: &Look<'_>) -> Option<Check> {
    let leader = match &look.cluster.leader {
        Ok(Some(leader)) => leader,
        Ok(None) => return None,
        Err(cause) => return Some(unknown(format!("who leads is not known: {cause}"))),
    };
    let last = manager(look)?;
    let ours = last.starts_with(leader.as_str()) || last.starts_with("ip-mode-overlay");
    (!ours).then(|| {
        Finding::new(Code::D204, format!("{leader} leads, and the status was last written by {last}"))
            .seen(look.object(), "metadata.managedFields", last)
            .into()
    })
}

/// Services on one address that disagree.
fn shared(look: &Look<'_>) -> Vec<Check> {
    let services = match &look.cluster.services {
        Ok(services) => services,
        Err(cause) => return vec![unknown(format!("other Services on the address are not known: {cause}"))],
    };
    let mut found = Vec::new();
    for other in services.iter().filter(|other| key(other) != look.key()) {
        for theirs in entries(other).iter().filter(|entry| entry.ip.is_some()) {
            let differs = look
                .entries
                .iter()
                .any(|ours| ours.ip == theirs.ip && is_short_circuited(ours) != is_short_circuited(theirs));
            if differs {
                let text = format!("{} publishes {}", key(other), shown(theirs));
                found.push(
                    Finding::new(Code::D205, text)
                        .seen(format!("Service {}", key(other)), FIELD, shown(theirs))
                        .seen(look.object(), FIELD, all_shown(&look.entries))
                        .into(),
                );
            }
        }
    }
    found
}
