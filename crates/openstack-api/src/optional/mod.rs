//! Optional parts of a cloud's API, and which of them a cloud lacks.
//!
//! This module notes refusals that the cloud will repeat, by the part of the call; code that needs a part asks the client, and
//! does without a missing one. After a while the part is requested again. Nothing here outlives the process: learning it again
//! costs a refused call.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;
use tracing::info;

pub use table::{Access, FEATURES, Feature, OptionalPart};

use crate::error::{ApiError, DecodeError, ErrorKind, Fault};
use crate::service::Service;
use openstack_ccm_core::lock::lock;

/// A part that the cloud lacks, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    pub part: OptionalPart,
    /// The call and its refusal.
    pub refusal: String,
}

impl fmt::Display for Lacking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Feature { name, promised_by, without, .. } = self.part.feature();
        write!(
            formatter,
            "{name}: the cloud does not provide what {promised_by} promises ({}); without it, {without}",
            self.refusal
        )
    }
}

/// The known optional parts of one cloud.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The time after which a missing part is requested again.
    again_after: Duration,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    lacking: BTreeMap<OptionalPart, Refused>,
    /// Parts already reported as missing. One object may lack a part that all others have, so a success does not make it
    /// reportable again.
    said: BTreeSet<OptionalPart>,
    /// Missing parts still to be reported, regardless of later answers for other objects.
    news: Vec<Lacking>,
    answers: BTreeMap<Service, Answers>,
}

#[derive(Debug)]
struct Refused {
    refusal: String,
    at: Instant,
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
        self.known().lacking.get(&part).is_some_and(|refused| refused.at.elapsed() < self.again_after)
    }

    /// Notes an answer to a call of an optional part.
    pub(crate) fn note(&self, part: OptionalPart, error: Option<&ApiError>) {
        let is_asked = !self.lacks(part);
        let mut known = self.known();
        match error {
            None if is_asked => {
                if known.lacking.remove(&part).is_some() {
                    info!(part = part.feature().name, "the cloud has this part of its API again");
                }
            }
            Some(error) if is_lasting(part, error) => {
                let sent = error.sent().unwrap_or_default();
                let advice = error.access_advice().map(|advice| format!("; {advice}")).unwrap_or_default();
                let (refusal, at) = (format!("{sent}: {error}{advice}"), Instant::now());
                if known.said.insert(part) {
                    known.news.push(Lacking { part, refusal: refusal.clone() });
                }
                known.lacking.insert(part, Refused { refusal, at });
            }
            None | Some(_) => {}
        }
    }

    pub(crate) fn lacking(&self) -> Vec<Lacking> {
        let known = self.known();
        let lacking = known.lacking.iter();
        lacking.map(|(part, refused)| Lacking { part: *part, refusal: refused.refusal.clone() }).collect()
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
    /// Whether the calls serve only this part, so that any refusal refers to the part.
    is_alone: bool,
}

const fn sign(part: OptionalPart) -> Sign {
    let (attribute, not_found, is_alone) = match part {
        OptionalPart::FloatingIpTags => ("tags", true, true),
        OptionalPart::FloatingIpDescription => ("description", true, true),
        OptionalPart::LoadBalancerTags => ("tags", false, false),
        OptionalPart::AdditiveBatches => ("additive_only", false, false),
        OptionalPart::Versions
        | OptionalPart::SecurityGroups
        | OptionalPart::Providers
        | OptionalPart::Quotas => ("", true, true),
        OptionalPart::StatusTree | OptionalPart::NetworkById | OptionalPart::Certificates => {
            ("", false, true)
        }
    };
    Sign { attribute, not_found, is_alone }
}

/// Returns whether the cloud will repeat the answer, because it lacks the part.
fn is_lasting(part: OptionalPart, error: &ApiError) -> bool {
    let Sign { attribute, not_found, is_alone } = sign(part);
    let (status, fault) = match error {
        ApiError::Decode { source: DecodeError::Html, .. } => return is_alone,
        ApiError::Status { status, fault, .. } => (*status, fault),
        _ => return false,
    };
    let names_attribute = !attribute.is_empty() && fault.message.contains(attribute);
    if !is_alone {
        return status == StatusCode::BAD_REQUEST && names_attribute;
    }
    match status {
        StatusCode::BAD_REQUEST if names_attribute => true,
        StatusCode::UNAUTHORIZED => error.is_of_this_call_alone(),
        // Each secret has its own access list.
        StatusCode::FORBIDDEN => part != OptionalPart::Certificates && error.kind() == ErrorKind::Policy,
        StatusCode::NOT_FOUND => not_found && !names_object(fault),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_row() {
        for part in OptionalPart::ALL {
            assert_eq!(part.feature().part, Some(part));
        }
        assert_eq!(FEATURES.iter().filter(|feature| feature.part.is_some()).count(), OptionalPart::ALL.len());
    }
}
