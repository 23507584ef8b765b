//! The rules, by name. The comment of the module `reconcile` states the same in words.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use http::{Method, StatusCode};

use super::{Call, Side};
use crate::support::reconciliation::Reconciliation;

/// A rule: returns what was done against it.
type Rule = fn(&Trace<'_>) -> Vec<String>;

/// All rules.
const RULES: [(&str, Rule); 7] = [
    ("owner_is_shown_before_a_step", owner_is_shown_before_a_step),
    ("one_step_at_a_time", one_step_at_a_time),
    ("no_look_while_a_step_holds_the_lock", no_look_while_a_step_holds_the_lock),
    ("creation_after_a_look_for_its_name", creation_after_a_look_for_its_name),
    ("removal_after_a_look", removal_after_a_look),
    ("members_are_listed_before_they_are_named", members_are_listed_before_they_are_named),
    ("published_after_a_look", published_after_a_look),
];

/// While a step of its own holds the lock a Service looks at nothing, for so many seconds at most.
const PATIENCE_SECONDS: u64 = 120;

/// The names of all rules.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|(name, _)| *name)
}

/// What was done against the rules.
pub(in crate::support) fn breaches(calls: &[Call]) -> Vec<String> {
    let trace = Trace::of(calls);
    let broken = |(name, rule): &(&'static str, Rule)| {
        let breaches = rule(&trace).into_iter();
        breaches.map(|breach| format!("{name}: {breach}")).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(broken).collect()
}

/// The calls of a run, and those of them that the rules are about.
struct Trace<'a> {
    calls: &'a [Call],
    /// Changes of Octavia that a reconciliation made and that were accepted.
    steps: Vec<&'a Call>,
}

impl<'a> Trace<'a> {
    fn of(calls: &'a [Call]) -> Self {
        let is_step = |call: &&Call| is_change(call) && call.is_accepted();
        Self { calls, steps: calls.iter().filter(is_step).collect() }
    }

    /// Whether an answer that was asked for after one moment, and came before another, is of this kind.
    fn was_seen(&self, after: usize, before: usize, is_it: impl Fn(&Call) -> bool) -> bool {
        let in_time = |call: &&Call| call.begun > after && call.ended().is_some_and(|ended| ended < before);
        self.calls.iter().filter(in_time).any(|call| call.is_accepted() && is_it(call))
    }

    /// The last accepted step of the Service of a call before it, by the same program.
    fn step_before(&self, call: &Call) -> Option<&'a Call> {
        let of_service = |step: &&&Call| step.reconciled == call.reconciled && step.program == call.program;
        let mut before =
            self.steps.iter().filter(|step| step.ended().is_some_and(|ended| ended < call.begun));
        before.rfind(of_service).copied()
    }

    /// The load balancer that the Service of a call made or changed last, whatever it removed since.
    fn built_last(&self, call: &Call) -> Option<String> {
        let mut of_service =
            self.steps.iter().filter(|step| step.reconciled == call.reconciled && step.begun < call.begun);
        let built = of_service.rfind(|step| method(step) != Some(&Method::DELETE))?;
        built.load_balancer.clone().or_else(|| made_by(built))
    }
}

/// Whether a reconciliation asks Octavia for a change.
fn is_change(call: &Call) -> bool {
    call.write && call.octavia().is_some() && call.run.is_some()
}

fn method(call: &Call) -> Option<&Method> {
    call.request.as_ref().map(|request| &request.method)
}

/// `listeners/ID` of `/v2.0/lbaas/listeners/ID?cascade=true`.
fn path(call: &Call) -> &str {
    call.octavia().and_then(|path| path.split('?').next()).unwrap_or_default()
}

fn is_step(call: &Call, wanted: &Method, collection: &str) -> bool {
    is_change(call) && method(call) == Some(wanted) && path(call).split('/').next() == Some(collection)
}

/// Whether a call reads all children of a load balancer, or their statuses.
fn looks_at_children(call: &Call, load_balancer: &str) -> bool {
    let Some(asked) = call.octavia().filter(|_| !call.write) else { return false };
    asked.strip_suffix("/status").and_then(|path| path.strip_prefix("loadbalancers/")) == Some(load_balancer)
        || (path(call) == "listeners"
            && (asked.contains(load_balancer) || !asked.contains("loadbalancer_id=")))
}

/// A load balancer that a step changed gets no other one before an answer has shown that Octavia is done with it.
fn one_step_at_a_time(trace: &Trace<'_>) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut last: BTreeMap<&str, &Call> = BTreeMap::new();
    for call in trace.calls.iter().filter(|call| is_change(call)) {
        let Some(id) = call.load_balancer.as_deref() else { continue };
        if let Some(step) = last.get(id).filter(|step| step.program == call.program) {
            let ended = step.ended().unwrap_or_default();
            if !trace.was_seen(ended, call.begun, |answer| answer.shows_at_rest(id)) {
                breaches.push(format!("{} after {}", call.name, step.name));
            }
        }
        if call.is_accepted() {
            last.insert(id, call);
        }
    }
    breaches
}

/// While a step of its own holds the lock, nothing of the load balancer is read for a Service.
fn no_look_while_a_step_holds_the_lock(trace: &Trace<'_>) -> Vec<String> {
    let mut breaches = Vec::new();
    for step in &trace.steps {
        let (Some(id), Some(ended)) = (step.load_balancer.as_deref(), step.ended()) else { continue };
        let after = trace.calls.iter().skip_while(|call| call.begun < ended);
        let of_step = |call: &&Call| {
            call.reconciled == step.reconciled
                && call.program == step.program
                && call.at.duration_since(step.at).as_secs() < PATIENCE_SECONDS
        };
        // Lists of a whole project are shared with others.
        let looks =
            after.filter(|call| looks_at_children(call, id) && call.path.contains(id)).filter(of_step);
        for look in looks {
            if trace.was_seen(ended, look.begun, |answer| answer.shows_at_rest(id)) {
                break;
            }
            breaches.push(format!("{} after {}", look.name, step.name));
        }
    }
    breaches
}

/// A reconciliation, as far as the next one of its Service begins after it.
#[derive(Default)]
struct Earlier {
    /// When its last call began.
    last_call: usize,
    wrote: bool,
    /// Whether it asked OpenStack for anything else than a list of load balancers, which may also be that of another Service.
    went_on: bool,
    /// Paths of reads that failed and were not sent again with success: reads go side by side, so this need not be the last call.
    failed_reads: BTreeSet<String>,
}

impl Earlier {
    fn note(&mut self, call: &Call) {
        self.last_call = call.begun;
        if call.side == Side::OpenStack {
            self.wrote |= call.write;
            let is_list = call.octavia().is_some_and(|path| path.starts_with("loadbalancers?"));
            self.went_on |= !is_list && call.path != "/";
            if call.is_accepted() {
                self.failed_reads.remove(&call.path);
            } else if !call.write {
                self.failed_reads.insert(call.path.clone());
            }
        }
    }

    /// Whether the next one goes on with the answers that this one began with: a read failed, or the load balancer that was found was another
    /// Service's turn. A write of its own would have put them out of date.
    fn hands_on(&self) -> bool {
        !self.wrote && (!self.went_on || !self.failed_reads.is_empty())
    }
}

/// By program, Service and number.
type RunKey<'a> = (usize, &'a str, usize);

fn key<'a>(call: &Call, run: &'a Reconciliation) -> RunKey<'a> {
    (call.program, &run.service, run.number)
}

/// What each reconciliation did itself. A list that others share goes on when the one that began it is over.
fn runs<'a>(trace: &Trace<'a>) -> BTreeMap<RunKey<'a>, Earlier> {
    let calls = trace.calls.iter().filter_map(|call| Some((call, key(call, call.run.as_ref()?))));
    let mut runs: BTreeMap<RunKey<'_>, Earlier> =
        calls.clone().map(|(_, key)| (key, Earlier::default())).collect();
    for (call, key) in calls {
        let later = runs.range((Excluded(key), Unbounded)).next();
        let next = later.filter(|((program, service, _), _)| (*program, *service) == (key.0, key.1));
        if next.is_none_or(|((.., number), _)| call.begun < *number) {
            runs.entry(key).or_default().note(call);
        }
    }
    runs
}

/// Each step follows an answer that shows its load balancer, and with it whose that is, from after the reconciliation before. One that
/// wrote nothing and ended at a failed read, or had to wait for its turn when it had found its load balancer, does not count: it hands on
/// what it began with, its list of load balancers too.
fn owner_is_shown_before_a_step(trace: &Trace<'_>) -> Vec<String> {
    let earlier = runs(trace);
    let mut breaches = Vec::new();
    for call in trace.calls.iter().filter(|call| is_change(call)) {
        let (Some(id), Some(run)) = (call.load_balancer.as_deref(), &call.run) else { continue };
        let mut before = earlier.range((call.program, run.service.as_str(), 0)..key(call, run));
        let before = before.rfind(|(_, one)| !one.hands_on());
        let since = before.map_or(call.program, |(_, one)| one.last_call);
        let shows =
            |answer: &Call| answer.answer.iter().flat_map(|answer| &answer.shown).any(|shown| shown.id == id);
        if !trace.was_seen(since, call.begun, shows) {
            breaches.push(format!("{} for {}", call.name, run.service));
        }
    }
    breaches
}

/// Nothing is created whose name was not looked for since the last attempt that may have arrived: of one that was answered with 429 there is
/// nothing to be found, and the client sends it again by itself.
fn creation_after_a_look_for_its_name(trace: &Trace<'_>) -> Vec<String> {
    let creations: Vec<&Call> =
        trace.calls.iter().filter(|call| is_step(call, &Method::POST, "loadbalancers")).collect();
    let unseen = creations.iter().filter(|creation| {
        let may_have_arrived = |other: &&&Call| {
            let status = other.answer.as_ref().and_then(|answer| answer.status);
            other.reconciled == creation.reconciled && status != Some(StatusCode::TOO_MANY_REQUESTS)
        };
        let earlier = creations.iter().filter(may_have_arrived);
        let last = earlier.map(|other| other.begun).filter(|begun| *begun < creation.begun).max();
        !trace.was_seen(last.unwrap_or_default(), creation.begun, |answer| {
            !answer.write && answer.octavia().is_some_and(|path| path.starts_with("loadbalancers?"))
        })
    });
    unseen.map(|creation| format!("{} for {:?}", creation.name, creation.reconciled)).collect()
}

/// The first of several removals of listeners and pools follows a look at what is there, after whatever was changed before.
fn removal_after_a_look(trace: &Trace<'_>) -> Vec<String> {
    let is_removal = |call: &Call| {
        let of_child = ["listeners", "pools"].iter().any(|one| is_step(call, &Method::DELETE, one));
        of_child && path(call).split('/').count() == 2
    };
    let removals = trace.calls.iter().filter(|call| is_removal(call));
    let unseen = removals.filter(|removal| {
        let Some(id) = removal.load_balancer.as_deref() else { return false };
        let before = trace.step_before(removal).filter(|step| step.load_balancer.as_deref() == Some(id));
        match before {
            Some(step) if is_removal(step) => false,
            before => {
                let since = before.and_then(Call::ended).unwrap_or_default();
                !trace.was_seen(since, removal.begun, |answer| looks_at_children(answer, id))
            }
        }
    });
    unseen.map(|removal| format!("{} for {:?}", removal.name, removal.reconciled)).collect()
}

/// A batch puts back what it does not repeat: who names members that are there has listed them in the same reconciliation.
fn members_are_listed_before_they_are_named(trace: &Trace<'_>) -> Vec<String> {
    let batches = trace.calls.iter().filter(|call| call.names_members && call.run.is_some());
    let unlisted = batches.filter(|batch| {
        !trace.calls.iter().any(|look| {
            !look.write
                && look.run == batch.run
                && path(look) == path(batch)
                && look.ended().is_some_and(|ended| ended < batch.begun)
        })
    });
    unlisted.map(|batch| format!("{} for {:?}", batch.name, batch.reconciled)).collect()
}

/// Before a load balancer that was made is published, somebody has looked at its children after the last step: Octavia may have failed.
fn published_after_a_look(trace: &Trace<'_>) -> Vec<String> {
    let mut breaches = Vec::new();
    for call in trace.calls.iter().filter(|call| publishes(call)) {
        // What is published goes on while members follow nodes, also in another form when the cluster changes.
        let before = trace.calls.iter().take_while(|other| other.begun < call.begun);
        let of_service = before.filter(|other| other.reconciled == call.reconciled);
        let is_creation = |other: &Call| is_step(other, &Method::POST, "loadbalancers");
        let last = of_service.filter(|other| publishes(other) || is_creation(other)).last();
        // Who came before the program may have published it.
        if last.map_or(call.is_published, publishes) {
            continue;
        }
        let Some(step) = trace.step_before(call) else { continue };
        let id = step.load_balancer.clone().or_else(|| made_by(step));
        // Another load balancer serves the Service no more: it is removed, or what the Service had on it.
        let built = trace.built_last(call);
        let is_elsewhere = method(step) == Some(&Method::DELETE) && built.is_some() && built != id;
        let is_left = is_elsewhere || is_step(step, &Method::DELETE, "loadbalancers");
        let (Some(id), Some(ended)) = (id.filter(|_| !is_left), step.ended()) else { continue };
        if !trace.was_seen(ended, call.begun, |answer| looks_at_children(answer, &id)) {
            breaches.push(format!("{} of {:?} after {}", call.name, call.reconciled, step.name));
        }
    }
    breaches
}

/// Whether a reconciliation writes addresses into a status.
fn publishes(call: &Call) -> bool {
    let is_of_status = call.side == Side::Kubernetes && call.name == "PATCH services/NAME/status";
    let body =
        call.request.as_ref().filter(|_| is_of_status && call.run.is_some()).map(|request| &request.body);
    body.is_some_and(|body| {
        body["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|all| !all.is_empty())
    })
}

/// The load balancer that a creation made.
fn made_by(step: &Call) -> Option<String> {
    step.answer.as_ref()?.shown.first().map(|shown| shown.id.clone())
}
