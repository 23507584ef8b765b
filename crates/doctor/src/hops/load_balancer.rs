//! Hop 5: the load balancer: statuses of all that is below it, and what the controller would change or refuse.

use jiff::SignedDuration;

use super::look::Look;
use crate::code::Code;
use crate::facts::{Change, CloudFacts, CloudObject, Outlook};
use crate::finding::{Check, Finding, ok, unknown};

/// For how long Octavia may be at work: its own limits are far below.
const PENDING: SignedDuration = SignedDuration::from_mins(15);

/// Warnings of the controller that belong to other hops, or to a code of their own.
const ELSEWHERE: [&str; 6] = [
    "LoadBalancerSourceRangesLackCluster",
    "LoadBalancerLocalWithoutMonitor",
    "LoadBalancerWithoutNodePorts",
    "LoadBalancerIPModeNotHonoured",
    "LoadBalancerBypassRequested",
    UNSUPPORTED,
];
const UNSUPPORTED: &str = "LoadBalancerSettingNotSupported";

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(cause) => return vec![unknown(cause)],
    };
    let mut checks = Vec::new();
    checks.extend(outlook(look, cloud));
    match &cloud.load_balancer {
        Some(load_balancer) => checks.extend(statuses(look, cloud, load_balancer)),
        None if matches!(cloud.outlook, Outlook::Unknown(_)) => {}
        None => checks.push(
            Finding::new(Code::D506, "the cloud has no load balancer for the Service")
                .seen(look.object(), "load balancer", "none was found")
                .fix(look.plan())
                .into(),
        ),
    }
    if cloud.load_balancer.is_some() {
        let changes = cloud.changes.iter().filter_map(|change| changed(look, change, &cloud.changes));
        let changes: Vec<Finding> = changes.collect();
        let listeners = changes.iter().filter(|finding| finding.code == Code::D503).count();
        checks.extend(changes.into_iter().map(|finding| match finding.code {
            Code::D503 => finding.of_ports(listeners, look.ports().len()).into(),
            _ => finding.into(),
        }));
    }
    checks.extend(warnings(look, cloud));
    checks
}

/// What stands in the way of the controller.
fn outlook(look: &Look<'_>, cloud: &CloudFacts) -> Option<Check> {
    match &cloud.outlook {
        Outlook::Settled | Outlook::Waits(_) => None,
        Outlook::Refused(cause) => Some(
            Finding::new(Code::D505, "the controller would not serve the Service as it is")
                .seen(look.object(), "openstack-ccm", cause)
                .into(),
        ),
        Outlook::Unknown(cause) => {
            Some(unknown(format!("what the controller would do is not known: {cause}")))
        }
    }
}

fn statuses(look: &Look<'_>, cloud: &CloudFacts, load_balancer: &CloudObject) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut active = 0_usize;
    for object in std::iter::once(load_balancer).chain(&cloud.children.objects) {
        let status = object.provisioning.as_str();
        if status == "ERROR" {
            let text = format!("{} is in ERROR", object.title());
            let below = format!("{} (load balancer: {})", status, load_balancer.provisioning);
            checks.push(
                Finding::new(Code::D501, text).seen(object.title(), "provisioning_status", below).into(),
            );
        } else if status.starts_with("PENDING") {
            checks.push(pending(look, object, load_balancer));
        } else {
            active += 1;
        }
    }
    if let Some(trouble) = &cloud.children.trouble {
        checks.push(unknown(format!("the children of the load balancer cannot be read: {trouble}")));
    }
    if checks.is_empty() {
        let provider = if cloud.provider.is_empty() { "unknown" } else { &cloud.provider };
        checks.push(ok(format!(
            "{} is {}/{}, provider {provider}, and so are the {} objects below it",
            load_balancer.title(),
            load_balancer.provisioning,
            load_balancer.operating,
            active - 1
        )));
    }
    checks
}

fn pending(look: &Look<'_>, object: &CloudObject, load_balancer: &CloudObject) -> Check {
    // The status tree does not say since when; all of it is at work since the load balancer is.
    let since = object.updated.or(load_balancer.updated);
    let age = since.map(|since| look.cluster.time.duration_since(since));
    match age {
        Some(age) if age >= PENDING => {
            let text =
                format!("{} has been {} for {} minutes", object.title(), object.provisioning, age.as_mins());
            Finding::new(Code::D502, text)
                .seen(object.title(), "provisioning_status", object.provisioning.clone())
                .into()
        }
        _ => unknown(format!("{} is {}: look again when it is done", object.title(), object.provisioning)),
    }
}

/// Attributes that say whose an object is; clients do not meet them.
const NAMES: [&str; 3] = ["tags", "description", "name"];

/// What the controller would change, of what belongs to this hop.
fn changed(look: &Look<'_>, change: &Change, all: &[Change]) -> Option<Finding> {
    let kind = change.kind.as_str();
    if matches!(kind, "members" | "member") || super::header::is_about_protocol(change, all) {
        return None;
    }
    let in_cloud = ["load balancer", "listener", "pool", "health monitor", "floating IP", "security group"];
    if !in_cloud.iter().any(|known| kind.starts_with(known)) {
        return None;
    }
    if change.mark == "~" && change.fields.iter().all(|field| NAMES.contains(&field.name.as_str())) {
        return None;
    }
    let is_listener = kind == "listener"
        && (change.mark != "~" && change.mark != "-"
            || change.fields.iter().any(|field| field.name == "protocol"));
    let (code, text) = if is_listener {
        (Code::D503, format!("the listener {} is missing, or is another one", change.name))
    } else {
        (Code::D507, format!("the controller would change {kind} {}", change.name).trim_end().to_owned())
    };
    let finding = Finding::new(code, text).seen(look.object(), "plan", change.line());
    Some(finding.fix(look.plan()))
}

fn warnings(look: &Look<'_>, cloud: &CloudFacts) -> Vec<Check> {
    let one = |(reason, message): &(String, String)| -> Option<Check> {
        if reason == UNSUPPORTED {
            let text = format!("the provider {} cannot do all that is asked for", cloud.provider);
            return Some(Finding::new(Code::D504, text).seen(look.object(), reason, message).into());
        }
        let known = ELSEWHERE.contains(&reason.as_str());
        (!known).then(|| {
            Finding::new(Code::D508, format!("{reason}: {message}"))
                .seen(look.object(), reason, message)
                .into()
        })
    };
    cloud.warnings.iter().filter_map(one).collect()
}
