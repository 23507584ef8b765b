//! What goes wrong on purpose: answers that are not the service's, slow and lost answers, and a worker that waits or fails.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Method, StatusCode};
use regex::Regex;
use serde_json::Value;

use crate::reply::Reply;
use crate::request::Request;
use crate::world::World;
use crate::world::operation::OperationKind;

/// A rule about requests: which ones, and what happens to them.
///
/// A new rule matches every request and does nothing to it; each method narrows it or says what it does.
#[derive(Debug, Clone, Default)]
pub struct Fault {
    service: Option<String>,
    method: Option<Method>,
    path: Option<String>,
    body: Option<String>,
    without: Option<String>,
    skip: u32,
    times: Option<u32>,
    latency: Duration,
    retry_after: Option<u64>,
    effect: Effect,
}

#[derive(Debug, Clone, Default)]
enum Effect {
    /// The request goes through.
    #[default]
    None,
    Answer(StatusCode, Value),
    Page(StatusCode, String),
    Replica(Box<World>),
    Unauthorized,
    DropBefore,
    DropAfter,
    AnswerAfter(StatusCode, Value),
}

impl Fault {
    /// A rule that matches everything and does nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only requests to the service with this catalog type, such as `load-balancer`.
    pub fn service(mut self, catalog_type: &str) -> Self {
        self.service = Some(catalog_type.to_owned());
        self
    }

    /// Only requests with this method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Only requests whose path with query has a match of this regular expression (or has it as text, if it is not one).
    pub fn path(mut self, pattern: &str) -> Self {
        self.path = Some(pattern.to_owned());
        self
    }

    /// Only requests whose body has this text.
    pub fn with_body(mut self, text: &str) -> Self {
        self.body = Some(text.to_owned());
        self
    }

    /// Only requests whose body lacks this text.
    pub fn without_body(mut self, text: &str) -> Self {
        self.without = Some(text.to_owned());
        self
    }

    /// Lets this many matching requests through first.
    pub fn after(mut self, requests: u32) -> Self {
        self.skip = requests;
        self
    }

    /// Strikes this many times, then no more.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Strikes the first matching request only.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Strikes the n-th matching request only, counted from 1.
    pub fn nth(self, n: u32) -> Self {
        self.after(n.saturating_sub(1)).once()
    }

    /// Delays the request before anything else happens to it.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Answers with this status and body; the service never sees the request. A status that does not exist becomes 500.
    pub fn answer(mut self, status: u16, body: Value) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.effect = Effect::Answer(status, body);
        self
    }

    /// Answers with a page for people, as front ends do.
    pub fn page(mut self, status: u16, html: &str) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.effect = Effect::Page(status, html.to_owned());
        self
    }

    /// A replica of the database answers that has not seen everything yet: it has this world. For reads.
    pub fn as_of(mut self, world: World) -> Self {
        self.effect = Effect::Replica(Box::new(world));
        self
    }

    /// Adds `Retry-After` in seconds to the answer.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Answers 401 as if the token were no longer good.
    pub fn unauthorized(mut self) -> Self {
        self.effect = Effect::Unauthorized;
        self
    }

    /// Closes the connection; the service never sees the request.
    pub fn drop_before(mut self) -> Self {
        self.effect = Effect::DropBefore;
        self
    }

    /// Lets the service do what was asked, then closes the connection: the answer is lost.
    pub fn drop_after(mut self) -> Self {
        self.effect = Effect::DropAfter;
        self
    }

    /// Lets the service do what was asked, then answers with this instead: a front end whose backend was too slow.
    pub fn answer_after(mut self, status: u16, body: Value) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.effect = Effect::AnswerAfter(status, body);
        self
    }

    fn matches(&self, request: &Request) -> bool {
        let path = || format!("{}?{}", request.path, request.raw_query);
        self.service.as_ref().is_none_or(|service| service == request.service.catalog_type())
            && self.method.as_ref().is_none_or(|method| *method == request.method)
            && self.body.as_ref().is_none_or(|text| request.has(text))
            && self.without.as_ref().is_none_or(|text| !request.has(text))
            && self.path.as_ref().is_none_or(|pattern| match Regex::new(pattern) {
                Ok(regex) => regex.is_match(path().trim_end_matches('?')),
                Err(_) => path().contains(pattern),
            })
    }
}

/// A rule about the worker: which operations, and whether they wait or fail.
#[derive(Debug, Clone)]
pub struct WorkerFault {
    kind: Option<OperationKind>,
    object: Option<String>,
    times: Option<u32>,
    holds: bool,
}

impl WorkerFault {
    /// Operations of a kind fail; `None` means every kind.
    pub fn fail(kind: impl Into<Option<OperationKind>>) -> Self {
        Self { kind: kind.into(), object: None, times: None, holds: false }
    }

    /// Operations of a kind stay unfinished, and their load balancer PENDING, until the rule is removed.
    pub fn hold(kind: impl Into<Option<OperationKind>>) -> Self {
        Self { kind: kind.into(), object: None, times: None, holds: true }
    }

    /// Only operations on the object with this id or name, or on anything of the load balancer with this id or name.
    pub fn of(mut self, id_or_name: &str) -> Self {
        self.object = Some(id_or_name.to_owned());
        self
    }

    /// Strikes this many times, then no more. A hold is not counted.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    fn matches(&self, kind: OperationKind, names: &[String]) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind)
            && self.object.as_ref().is_none_or(|object| names.contains(object))
            && self.times != Some(0)
    }
}

/// What [`Faults`] calls a rule that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(u64);

/// The rules about the worker that are in force.
#[derive(Debug, Default)]
pub(crate) struct WorkerFaults {
    rules: Vec<(FaultId, WorkerFault)>,
}

impl WorkerFaults {
    /// Whether an operation must wait.
    pub(crate) fn holds(&self, kind: OperationKind, names: &[String]) -> bool {
        self.rules.iter().any(|(_, rule)| rule.holds && rule.matches(kind, names))
    }

    /// Whether an operation fails; counts the rule that says so.
    pub(crate) fn fails(&mut self, kind: OperationKind, names: &[String]) -> bool {
        let found = self.rules.iter_mut().find(|(_, rule)| !rule.holds && rule.matches(kind, names));
        let Some((_, rule)) = found else { return false };
        rule.times = rule.times.map(|times| times - 1);
        true
    }
}

#[derive(Debug, Default)]
struct Rules {
    last_id: u64,
    requests: Vec<RequestRule>,
    worker: WorkerFaults,
}

#[derive(Debug)]
struct RequestRule {
    id: FaultId,
    fault: Fault,
    /// Matching requests so far.
    seen: u32,
}

/// All rules of a simulator. The first request rule that matches decides.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Rules>,
}

/// What happens to one request.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// Before the service sees the request.
    pub(crate) latency: Duration,
    pub(crate) fate: Fate,
}

#[derive(Debug, Default)]
pub(crate) enum Fate {
    #[default]
    Serve,
    Answer(Reply),
    Replica(Box<World>),
    DropBefore,
    /// The client gets this instead of the service's answer, or none.
    ServeThen(Option<Reply>),
}

impl Faults {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a rule about requests in force.
    pub fn add(&self, fault: Fault) -> FaultId {
        let mut rules = self.rules();
        rules.last_id += 1;
        let id = FaultId(rules.last_id);
        rules.requests.push(RequestRule { id, fault, seen: 0 });
        id
    }

    /// Puts a rule about the worker in force.
    pub fn add_worker(&self, fault: WorkerFault) -> FaultId {
        let mut rules = self.rules();
        rules.last_id += 1;
        let id = FaultId(rules.last_id);
        rules.worker.rules.push((id, fault));
        id
    }

    /// Takes a rule out of force.
    pub fn remove(&self, id: FaultId) {
        let mut rules = self.rules();
        rules.requests.retain(|rule| rule.id != id);
        rules.worker.rules.retain(|(rule, _)| *rule != id);
    }

    /// Takes all rules out of force.
    pub fn clear(&self) {
        let mut rules = self.rules();
        rules.requests.clear();
        rules.worker.rules.clear();
    }

    /// How many requests a rule has matched so far, those that it let through too.
    pub fn matched(&self, id: FaultId) -> u32 {
        self.rules().requests.iter().find(|rule| rule.id == id).map_or(0, |rule| rule.seen)
    }

    /// Whether a rule can still strike: who only looks at the cloud may be struck in the place of another, or cannot
    /// foresee what comes.
    pub fn can_strike(&self) -> bool {
        let rules = self.rules();
        let can_strike = |RequestRule { fault, seen, .. }: &RequestRule| {
            fault.times.is_none_or(|times| seen.saturating_sub(fault.skip) < times)
        };
        rules.requests.iter().any(can_strike)
            || rules.worker.rules.iter().any(|(_, rule)| rule.times != Some(0))
    }

    pub(crate) fn with_worker<R>(&self, use_rules: impl FnOnce(&mut WorkerFaults) -> R) -> R {
        use_rules(&mut self.rules().worker)
    }

    /// What happens to a request; `identity_url` is for the 401.
    pub(crate) fn decide(&self, request: &Request, identity_url: &str) -> Decision {
        let mut rules = self.rules();
        for rule in rules.requests.iter_mut().filter(|rule| rule.fault.matches(request)) {
            rule.seen += 1;
            let strike = rule.seen > rule.fault.skip;
            let struck = rule.seen.saturating_sub(rule.fault.skip);
            if strike && rule.fault.times.is_none_or(|times| struck <= times) {
                return decision(&rule.fault, identity_url);
            }
        }
        Decision::default()
    }
}

fn decision(fault: &Fault, identity_url: &str) -> Decision {
    let with_retry = |reply: Reply| match fault.retry_after {
        Some(seconds) => reply.with_header(RETRY_AFTER, seconds.to_string()),
        None => reply,
    };
    let fate = match &fault.effect {
        Effect::None => Fate::Serve,
        Effect::Answer(status, body) => Fate::Answer(with_retry(Reply::json(*status, body.clone()))),
        Effect::Page(status, html) => Fate::Answer(with_retry(Reply::page(*status, html))),
        Effect::Replica(world) => Fate::Replica(world.clone()),
        Effect::Unauthorized => Fate::Answer(with_retry(Reply::unauthorized(identity_url))),
        Effect::DropBefore => Fate::DropBefore,
        Effect::DropAfter => Fate::ServeThen(None),
        Effect::AnswerAfter(status, body) => {
            Fate::ServeThen(Some(with_retry(Reply::json(*status, body.clone()))))
        }
    };
    Decision { latency: fault.latency, fate }
}
