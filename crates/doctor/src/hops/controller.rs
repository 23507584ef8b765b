//! Hop 0: the controller that serves the Service.

use jiff::{SignedDuration, Timestamp};

use super::look::Look;
use crate::code::{Code, Stops};
use crate::facts::{ControllerFact, EventFact, Forecast};
use crate::finding::{Check, Finding, Fix, ok, skipped};
use crate::question::{Answer, questions, read};

/// The annotation with the id of the load balancer that the controller made.
const OWNED: &str = "loadbalancer.openstack.org/owned-load-balancer-id";
/// The usual limit until a new Service is served.
const MAKING: SignedDuration = SignedDuration::from_mins(5);
/// The usual limit of a deletion; Octavia's own limits are shorter.
const DELETION: SignedDuration = SignedDuration::from_mins(5);

questions! {
    Questions at Controller {
        /// Whether a controller leads, and with which flags.
        leads,
        /// Whether other instances are at work.
        others,
        /// Whether the Service is being deleted.
        deletion,
        /// What the controller reported last.
        events,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let leads = match look.facts.served_by.others() {
        Some(others) => skipped(others).into(),
        None => leads(look).into(),
    };
    Questions { leads, others: others(look).into(), deletion: deletion(look), events: events(look).into() }
}

/// Judges the leader. What is not known of a controller matters to no packets: it stops none itself.
fn leads(look: &Look<'_>) -> Result<Answer, Answer> {
    let missing = "who leads the controllers is not known";
    let controller = read(&look.cluster.controller, missing, Stops::Nobody)?;
    if !controller.works {
        let something_is_left = look.entries.is_empty()
            || look.is_being_deleted()
            || look
                .facts
                .cloud
                .as_ref()
                .is_ok_and(|cloud| cloud.would_publish.is_some() || !cloud.changes.is_empty());
        let code = if something_is_left { Code::D001 } else { Code::D002 };
        let finding = Finding::new(code, format!("no controller is at work: {}", controller.text));
        let lease = format!("Lease {}", controller.lease);
        return Ok(finding.seen(lease, "holderIdentity", holder(controller)).into());
    }
    let program = controller.program.clone().unwrap_or_else(|| "an unidentified controller".into());
    let well = ok(format!("{program} leads: {}", controller.text));
    Ok(match &controller.cluster {
        Some(cluster) if *cluster != controller.given_cluster => {
            let text = format!(
                "the leader has --cluster-name={cluster}, but doctor has --cluster-name={}",
                controller.given_cluster
            );
            let name = format!("--cluster-name={cluster}");
            let again = Fix::command(["openstack-ccm", "doctor", &look.key(), &name]);
            let lease = format!("Lease {}", controller.lease);
            let finding = Finding::new(Code::D003, text).seen(lease, "cluster", cluster);
            Answer::from(well).and(finding.fix(again))
        }
        _ => well.into(),
    })
}

fn others(look: &Look<'_>) -> Result<Answer, Answer> {
    let Ok(ControllerFact { others, .. }) = &look.cluster.controller else {
        return Ok(skipped("who leads is not known").into());
    };
    let others = read(others, "whether other instances are at work", Stops::Nobody)?;
    let found = others.iter().filter(|_| look.is_ours()).map(|other| {
        Finding::new(Code::D007, "another instance of openstack-ccm is at work")
            .seen("openstack-ccm", "leads, too", other)
            .into()
    });
    Ok(Answer::found(found.collect(), || skipped("no other instance is at work")))
}

fn holder(controller: &ControllerFact) -> String {
    controller.holder.clone().unwrap_or_else(|| "nobody".to_owned())
}

fn deletion(look: &Look<'_>) -> Answer {
    let Some(since) = &look.facts.service.metadata.deletion_timestamp else {
        return skipped("the Service is not being deleted").into();
    };
    let age = look.cluster.time.duration_since(since.0);
    let finalizers = look.facts.service.metadata.finalizers.clone().unwrap_or_default().join(", ");
    let minutes = age.as_mins();
    let late =
        format!("the Service was deleted {minutes} minutes ago, but a finalizer still blocks its deletion");
    let (code, text) = match age > DELETION {
        true => (Code::D006, late),
        false => (Code::D004, "the Service is being deleted".to_owned()),
    };
    Finding::new(code, text).seen(look.object(), "metadata.finalizers", finalizers).into()
}

fn events(look: &Look<'_>) -> Result<Answer, Answer> {
    let events = read(&look.facts.events, "the Events of the Service cannot be read", Stops::Nobody)?;
    let failures: Vec<Check> = last_failures(look, events).into_iter().take(3).map(failure(look)).collect();
    Ok(Answer::found(failures, || match waits(look) {
        Some(event) => ok(event.message.clone()),
        None => ok("no Warning Event about a failure since the last success"),
    }))
}

/// Returns the last Event about a wait, unless an Event of success followed.
pub(super) fn waits<'a>(look: &'a Look<'_>) -> Option<&'a EventFact> {
    EventFact::of_wait(look.facts.events.as_ref().ok()?)
}

/// Returns the age of a Service that the controller has just begun to serve, or is about to serve.
pub(super) fn age_while_made(look: &Look<'_>) -> Option<SignedDuration> {
    let metadata = &look.facts.service.metadata;
    let age = look.cluster.time.duration_since(metadata.creation_timestamp.as_ref()?.0);
    let cloud = look.facts.cloud.as_ref().ok()?;
    let was_served = metadata.annotations.iter().flatten().any(|(key, _)| key == OWNED);
    let is_made = match cloud.forecast {
        Forecast::Waits(_) => true,
        Forecast::Settled => cloud.load_balancer.is_none() && !was_served,
        Forecast::Keeps(_) | Forecast::Refused(_) | Forecast::Unknown(_) => false,
    };
    let is_well =
        look.cluster.controller.as_ref().is_ok_and(|controller| controller.works) && reports_nothing(look);
    (look.entries.is_empty() && is_made && is_well && age < MAKING).then_some(age)
}

/// Returns whether the Events are known and report no failure since the last success.
fn reports_nothing(look: &Look<'_>) -> bool {
    look.facts.events.as_ref().is_ok_and(|events| last_failures(look, events).is_empty())
}

fn failure<'a>(look: &'a Look<'_>) -> impl Fn(&EventFact) -> Check + 'a {
    |event| {
        let when = event.time.map(|time| format!(" at {time:.0}")).unwrap_or_default();
        Finding::new(Code::D005, format!("{}: {}", event.reason, cause_first(&event.message)))
            .seen(look.object(), format!("Event of {}{when}", event.source), event.message.clone())
            .into()
    }
}

/// Returns the failures since the last success, the newest first, each reason once. Warnings about a value are judged with the value.
fn last_failures<'a>(look: &Look<'_>, events: &'a [EventFact]) -> Vec<&'a EventFact> {
    let is_failure = |event: &&EventFact| event.warning && event.reason.ends_with("Failed");
    let success = EventFact::last_success(events);
    let mut failures: Vec<&EventFact> = events
        .iter()
        .filter(is_failure)
        .filter(|event| success.is_none_or(|success| event.when() > success))
        .collect();
    failures.sort_by_key(|event| std::cmp::Reverse(event.when()));
    let mut reasons: Vec<&str> = Vec::new();
    failures.retain(|event| {
        let is_new = !reasons.contains(&event.reason.as_str());
        reasons.push(&event.reason);
        is_new
    });
    // The failures were resolved, but no Event says so: older controllers write none.
    if matches!(&look.facts.cloud, Ok(cloud) if cloud.forecast == Forecast::Settled && cloud.changes.is_empty())
        && !look.is_being_deleted()
    {
        failures.clear();
    }
    failures
}

/// Puts the cause first in a message of the controller: `Quota … (create load balancer kube_service_…)`.
pub(super) fn cause_first(message: &str) -> String {
    let message = message.strip_prefix("Error syncing load balancer: ").unwrap_or(message);
    let Some((step, rest)) = message.split_once(": ") else { return message.to_owned() };
    let words: Vec<&str> = step.split(' ').take_while(|word| !word.contains('=')).collect();
    // The cloud's message follows its HTTP status.
    let is_status = |text: &str| {
        text.split(' ').next().is_some_and(|word| word.len() == 3 && word.parse::<u16>().is_ok())
    };
    let said = rest.match_indices(": ").map(|(place, separator)| &rest[place + separator.len()..]);
    let said = std::iter::once(rest).chain(said).find(|text| is_status(text));
    let cause = said.map_or(rest, |text| text.split_once(' ').map_or(text, |(_, cause)| cause));
    if words.is_empty() { cause.to_owned() } else { format!("{cause} ({})", words.join(" ")) }
}

/// Returns which manager wrote the entries of the status last, and when, if `managedFields` says so.
pub(super) fn last_writer(look: &Look<'_>) -> Option<(String, Option<Timestamp>)> {
    let managed = look.facts.service.metadata.managed_fields.iter().flatten();
    let writes = |fields: &serde_json::Value| fields["f:status"]["f:loadBalancer"].get("f:ingress").is_some();
    let last = managed
        .filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| writes(&fields.0)))
        .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?;
    Some((last.manager.clone().unwrap_or_default(), last.time.as_ref().map(|time| time.0)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::quota(
        "Error syncing load balancer: create load balancer kube_service_c1_a_b tags=[x, y: z]: the cloud refuses: 403 Quota has been met for resources: Load Balancer",
        "Quota has been met for resources: Load Balancer (create load balancer kube_service_c1_a_b)"
    )]
    #[case::short("soon", "soon")]
    fn the_cause_comes_first(#[case] message: &str, #[case] expected: &str) {
        assert_eq!(cause_first(message), expected);
    }
}
