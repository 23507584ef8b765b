//! Faults that a test asks for: wrong answers, lost answers, silence, delay.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::log::RequestRecord;

/// Decides whether a fault is about a request.
type Matcher = Box<dyn Fn(&RequestRecord) -> bool + Send + Sync>;

/// Names a fault that was injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultId(usize);

/// What happens to a matching request.
#[derive(Debug, Clone, PartialEq)]
enum Action {
    /// Answers without touching any object.
    Answer { status: u16, body: Value, retry_after: Option<u64> },
    /// Fails the connection before the request has an effect.
    Refuse,
    /// Performs the request, then fails the connection.
    LoseAnswer,
    /// Never answers, without an effect.
    Hang,
    /// Performs the request after a while.
    Delay(Duration),
}

/// What is to be done with a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Serve,
    Answer { status: u16, body: Value, retry_after: Option<u64> },
    Refuse,
    ServeAndLoseAnswer,
    Hang,
    ServeAfter(Duration),
}

/// A fault: which requests it is about, and what happens to them. Without [`Fault::after`] and [`Fault::times`] it
/// is about each matching request.
///
/// ```
/// use openstack_ccm_kube_sim::{ApiVersion, Fault, Sim};
///
/// let sim = Sim::new(ApiVersion::V1_36);
/// sim.inject(Fault::on("PATCH", "/services/web/status").after(1).times(2).unavailable());
/// ```
pub struct Fault {
    matcher: Matcher,
    skip: usize,
    remaining: Option<usize>,
    action: Action,
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { matcher: _, skip, remaining, action } = self;
        formatter
            .debug_struct("Fault")
            .field("skip", skip)
            .field("remaining", remaining)
            .field("action", action)
            .finish()
    }
}

impl Fault {
    /// Requests with this method (`*` for any) whose path contains `path_part`. Refuses the connection unless
    /// another action is chosen.
    pub fn on(method: &str, path_part: &str) -> Self {
        let (method, path_part) = (method.to_owned(), path_part.to_owned());
        Self::when(move |request| {
            (method == "*" || request.method.as_str() == method) && request.path.contains(&path_part)
        })
    }

    /// Requests that a function chooses.
    pub fn when(matcher: impl Fn(&RequestRecord) -> bool + Send + Sync + 'static) -> Self {
        Self { matcher: Box::new(matcher), skip: 0, remaining: None, action: Action::Refuse }
    }

    /// Leaves the first `count` matching requests alone.
    pub fn after(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }

    /// Ends after this many faults.
    pub fn times(mut self, count: usize) -> Self {
        self.remaining = Some(count);
        self
    }

    /// Ends after one fault.
    pub fn once(self) -> Self {
        self.times(1)
    }

    fn with(mut self, action: Action) -> Self {
        self.action = action;
        self
    }

    /// Answers with this status and body; no object is touched.
    pub fn answer(self, status: u16, body: Value) -> Self {
        self.with(Action::Answer { status, body, retry_after: None })
    }

    /// Answers with a `Status` object of this code, reason and message.
    pub fn fail(self, code: u16, reason: &str, message: &str) -> Self {
        let body = status(code, reason, message);
        self.answer(code, body)
    }

    /// Answers 503.
    pub fn unavailable(self) -> Self {
        self.fail(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    }

    /// Answers 429 with `Retry-After`.
    pub fn too_many_requests(self, seconds: u64) -> Self {
        let body = status(429, "TooManyRequests", "the server has received too many requests");
        self.with(Action::Answer { status: 429, body, retry_after: Some(seconds) })
    }

    /// Answers 409: the object has been modified.
    pub fn conflict(self) -> Self {
        let message = "Operation cannot be fulfilled: the object has been modified; please apply your changes to the \
                       latest version and try again";
        self.fail(409, "Conflict", message)
    }

    /// Fails the connection; the request has no effect.
    pub fn refuse(self) -> Self {
        self.with(Action::Refuse)
    }

    /// Performs the request, then fails the connection: the client cannot know.
    pub fn lose_answer(self) -> Self {
        self.with(Action::LoseAnswer)
    }

    /// Never answers; the request has no effect.
    pub fn hang(self) -> Self {
        self.with(Action::Hang)
    }

    /// Performs the request after this time.
    pub fn delay(self, time: Duration) -> Self {
        self.with(Action::Delay(time))
    }

    fn strike(&mut self, request: &RequestRecord) -> Option<Verdict> {
        if self.remaining == Some(0) || !(self.matcher)(request) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.remaining = self.remaining.map(|count| count - 1);
        Some(match self.action.clone() {
            Action::Answer { status, body, retry_after } => Verdict::Answer { status, body, retry_after },
            Action::Refuse => Verdict::Refuse,
            Action::LoseAnswer => Verdict::ServeAndLoseAnswer,
            Action::Hang => Verdict::Hang,
            Action::Delay(time) => Verdict::ServeAfter(time),
        })
    }
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code})
}

/// All injected faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<(FaultId, Fault)>,
    injected: usize,
}

impl Faults {
    pub(crate) fn inject(&mut self, fault: Fault) -> FaultId {
        let id = FaultId(self.injected);
        self.injected += 1;
        self.faults.push((id, fault));
        id
    }

    pub(crate) fn remove(&mut self, id: FaultId) {
        self.faults.retain(|(one, _)| *one != id);
    }

    pub(crate) fn clear(&mut self) {
        self.faults.clear();
    }

    /// Whether a fault is left that can strike.
    pub(crate) fn can_strike(&self) -> bool {
        self.faults.iter().any(|(_, fault)| fault.remaining != Some(0))
    }

    /// The first fault that strikes decides.
    pub(crate) fn judge(&mut self, request: &RequestRecord) -> Verdict {
        self.faults.iter_mut().find_map(|(_, fault)| fault.strike(request)).unwrap_or(Verdict::Serve)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_fault_strikes_the_chosen_requests_only() {
        let request = |method: Method, path: &str| {
            RequestRecord::new(method, path, "", &HeaderMap::new(), &[], Timestamp::UNIX_EPOCH)
        };
        let mut faults = Faults::default();
        faults.inject(Fault::on("GET", "/nodes").after(1).times(1).refuse());
        let verdicts: Vec<Verdict> = ["/api/v1/nodes", "/api/v1/nodes", "/api/v1/nodes"]
            .into_iter()
            .map(|path| faults.judge(&request(Method::GET, path)))
            .collect();
        assert_eq!(verdicts, [Verdict::Serve, Verdict::Refuse, Verdict::Serve]);
        assert_eq!(faults.judge(&request(Method::POST, "/api/v1/nodes")), Verdict::Serve);
    }
}
