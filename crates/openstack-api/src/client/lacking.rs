//! Which optional parts of its API a cloud lacks.
//!
//! This module notes refusals that the cloud will repeat, by the part of the call; code that needs a part asks the client, and
//! does without a missing one. After a while the part is requested again. Nothing here outlives the process: learning it again
//! costs a refused call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http::StatusCode;
use openstack_ccm_core::lock::lock;
use tokio::time::Instant;
use tracing::{info, warn};

use super::Call;
use crate::error::{ApiError, DecodeError, ErrorKind, Fault};
use crate::optional::{Access, Lacking, OptionalPart, unknown_names};
use crate::service::Service;

/// The known optional parts of one cloud.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The time after which a missing part is requested again.
    again_after: Duration,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    lacking: BTreeMap<OptionalPart, (Lacking, Instant)>,
    /// Parts of which an answer showed what this program wrote.
    shown: BTreeSet<OptionalPart>,
    /// Filters that are left out, by the name of the call.
    refused_filters: BTreeMap<(&'static str, String), Instant>,
    /// Parts already reported as missing. One object may lack a part that all others have, so a success does not make it
    /// reportable again.
    said: BTreeSet<OptionalPart>,
    /// Missing parts still to be reported, regardless of later answers for other objects.
    news: Vec<Lacking>,
    answers: BTreeMap<Service, Answers>,
}

/// The most recent answers of a service, each with its call and whether it was a success.
#[derive(Debug, Default)]
struct Answers {
    last: Option<(&'static str, bool)>,
    /// The last answer to another call than `last`.
    before: Option<(&'static str, bool)>,
}

impl Parts {
    pub(crate) fn new(again_after: Duration) -> Self {
        Self { again_after, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// Notes an answer. Returns whether the service answers other calls with success.
    pub(crate) fn answered(&self, service: Service, call: &'static str, well: bool) -> bool {
        let mut known = self.known();
        let answers = known.answers.entry(service).or_default();
        if answers.last.is_some_and(|(last, _)| last != call) {
            answers.before = answers.last;
        }
        answers.last = Some((call, well));
        answers.before.is_some_and(|(_, well)| well)
    }

    pub(crate) fn lacks(&self, part: OptionalPart) -> bool {
        self.known().lacking.get(&part).is_some_and(|(_, since)| since.elapsed() < self.again_after)
    }

    /// Notes that an answer showed what this program wrote: the cloud knows the attribute, whatever its refusals say.
    pub(crate) fn note_shown(&self, part: OptionalPart) {
        self.known().shown.insert(part);
    }

    pub(crate) fn has_shown(&self, part: OptionalPart) -> bool {
        self.known().shown.contains(&part)
    }

    /// Notes an answer to a call of an optional part.
    pub(crate) fn note(&self, part: OptionalPart, call: &Call, error: Option<&ApiError>) {
        let is_asked = !self.lacks(part);
        match error {
            None if is_asked => {
                if self.known().lacking.remove(&part).is_some() {
                    info!(part = part.feature().name, "the cloud has this part of its API again");
                }
            }
            Some(error) if is_lasting(part, call, error, self.has_shown(part)) => {
                let status = error.status().map(|status| status.to_string());
                let status = status.unwrap_or_else(|| "an HTML page".to_owned());
                let rules = error
                    .is_of_this_call_alone()
                    .then_some(", by the access rules of the application credential");
                let how = format!("is answered with {status}{}", rules.unwrap_or_default());
                let advice = error.access_advice().map(|advice| format!("; {advice}")).unwrap_or_default();
                self.note_lacking(part, call, &how, format!("{error}{advice}"));
            }
            None | Some(_) => {}
        }
    }

    fn note_lacking(&self, part: OptionalPart, call: &Call, how: &str, answer: String) {
        let access = call.access().map(|Access { method, path, .. }| format!("{method} {path}"));
        let mut evidence = format!("{} {how}", access.unwrap_or_else(|| call.name().to_owned()));
        let mut known = self.known();
        // Each list has filters of its own.
        if let Some((before, _)) = known.lacking.get(&part).filter(|_| part == OptionalPart::Filters) {
            let is_known = before.evidence.contains(&evidence);
            evidence =
                if is_known { before.evidence.clone() } else { format!("{}; {evidence}", before.evidence) };
        }
        let lacking = Lacking { part, evidence, answer };
        if known.said.insert(part) {
            warn!(
                part = part.feature().name,
                evidence = lacking.evidence,
                answer = lacking.answer,
                "the cloud lacks a part of its API"
            );
            known.news.push(lacking.clone());
        }
        known.lacking.insert(part, (lacking, Instant::now()));
    }

    /// Notes that the answer to a write that was accepted lacks what was written.
    pub(crate) fn note_not_shown(&self, part: OptionalPart, call: &Call) {
        let how = "is answered without what was written";
        self.note_lacking(part, call, how, how.to_owned());
    }

    /// Returns whether a filter is left out of a list, because the cloud has just refused it.
    pub(crate) fn refuses_filter(&self, call: &'static str, key: &str) -> bool {
        let refused = self.known().refused_filters.get(&(call, key.to_owned())).copied();
        refused.is_some_and(|since| since.elapsed() < self.again_after)
    }

    pub(crate) fn note_refused_filters(&self, call: &Call, filters: Vec<String>) {
        let how = format!("refuses to filter by {}", filters.join(", "));
        self.note_lacking(OptionalPart::Filters, call, &how, how.clone());
        let named = filters.into_iter().map(|filter| ((call.name(), filter), Instant::now()));
        self.known().refused_filters.extend(named);
    }

    /// Notes that the answer to a list had objects that do not match a filter.
    pub(crate) fn note_ignored_filter(&self, call: &Call, filter: &str) {
        let how = format!("does not filter by {filter}");
        self.note_lacking(OptionalPart::Filters, call, &how, how.clone());
    }

    pub(crate) fn lacking(&self) -> Vec<Lacking> {
        self.known().lacking.values().map(|(lacking, _)| lacking.clone()).collect()
    }

    pub(crate) fn newly_lacking(&self) -> Vec<Lacking> {
        std::mem::take(&mut self.known().news)
    }
}

/// How a cloud shows that it lacks a part.
struct Sign {
    /// The attribute that a 400 names.
    attribute: &'static str,
    /// Whether a 404 refers to the call itself. If the path names an object, the object was read before.
    not_found: bool,
    /// Whether the calls serve only this part, so that any refusal refers to the part; those that create an object never do.
    is_alone: bool,
}

const fn sign(part: OptionalPart) -> Sign {
    let (attribute, not_found, is_alone) = match part {
        OptionalPart::FloatingIpTags | OptionalPart::SecurityGroupTags => ("tags", true, true),
        OptionalPart::FloatingIpDescription => ("description", true, true),
        OptionalPart::LoadBalancerTags => ("tags", false, false),
        OptionalPart::AdditiveBatches => ("additive_only", false, false),
        OptionalPart::Versions
        | OptionalPart::SecurityGroups
        | OptionalPart::NetworkById
        | OptionalPart::Providers
        | OptionalPart::Quotas => ("", true, true),
        OptionalPart::StatusTree | OptionalPart::Certificates => ("", false, true),
        // These are noted by the lists themselves.
        OptionalPart::Filters => ("", false, false),
    };
    Sign { attribute, not_found, is_alone }
}

/// Returns whether the cloud will repeat the answer, because it lacks the part. `shown`: an answer has shown what this program wrote.
fn is_lasting(part: OptionalPart, call: &Call, error: &ApiError, shown: bool) -> bool {
    let Sign { attribute, not_found, is_alone } = sign(part);
    let is_alone = is_alone && !call.creates();
    let (status, fault) = match error {
        ApiError::Decode { source: DecodeError::Html, .. } => return is_alone,
        ApiError::Status { status, fault, .. } => (*status, fault),
        _ => return false,
    };
    if status == StatusCode::BAD_REQUEST && !fault.is_html() {
        return !shown && unknown_names(error).contains(&attribute) && call.carries(attribute);
    }
    if !is_alone {
        return false;
    }
    match status {
        StatusCode::UNAUTHORIZED => error.is_of_this_call_alone(),
        // Each secret has its own access list.
        StatusCode::FORBIDDEN => part != OptionalPart::Certificates && error.kind() == ErrorKind::Policy,
        StatusCode::NOT_FOUND => fault.is_html() || (not_found && !names_object(fault)),
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => true,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => false,
        _ => status.is_client_error() && fault.is_html(),
    }
}

/// Returns whether a service names a missing object: `FloatingIPNotFound`. A service without the path answers `HTTPNotFound`, or
/// no name.
fn names_object(fault: &Fault) -> bool {
    fault.name.as_deref().is_some_and(|name| name.ends_with("NotFound") && name != "HTTPNotFound")
}
