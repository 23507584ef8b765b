//! How long a Service has waited for work other than its own, and when an Event names that work. Pure.

use std::mem::discriminant;
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{BUSY, CHILD_PENDING, Outcome, QUEUED, SHARED, WaitsOn};
use tokio::time::Instant;

use super::cause::{Cause, Causes};
use super::queue::Reschedule;

/// Time that a Service waits before an Event says for what.
const EVENT_DELAY: Duration = Duration::from_secs(10);

/// The wait of a Service.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    on: WaitsOn,
    since: Instant,
    /// When the Service is reconciled anyway.
    until: Instant,
    said: bool,
}

impl Wait {
    /// Begins a wait, or continues a wait of the same kind.
    pub(super) fn again(before: Option<Self>, on: WaitsOn, now: Instant, at_most: Duration) -> Self {
        let before = before.filter(|before| discriminant(&before.on) == discriminant(&on));
        let (since, said) = before.map_or((now, false), |before| (before.since, before.said));
        Self { on, since, until: now + at_most, said }
    }

    /// Returns the Event, if one is due and not written yet, and when the Service is reconciled again.
    pub(super) fn next(&mut self, now: Instant) -> (Option<Notice>, Reschedule) {
        let left = self.until.saturating_duration_since(now);
        let say_at = self.since + EVENT_DELAY;
        if self.said || matches!(self.on, WaitsOn::OwnStep(_)) || say_at >= self.until {
            return (None, Reschedule::Wait(left));
        }
        if now < say_at {
            return (None, Reschedule::WaitFor(say_at - now, Causes::only(Cause::Waited)));
        }
        self.said = true;
        (notice(&self.on), Reschedule::Wait(left))
    }
}

/// Whether this result ends a wait: a failure does as well as a success, and a later wait is a new one.
pub(super) fn is_over(result: &Result<Outcome, Failure>) -> bool {
    !matches!(result, Ok(Outcome::Waiting(_)))
}

/// Returns the Event, with a reason for each kind. An own step needs none.
fn notice(on: &WaitsOn) -> Option<Notice> {
    let (reason, message) = match on {
        WaitsOn::OwnStep(_) => return None,
        WaitsOn::OtherChange(what) => (
            BUSY,
            format!("Waiting: the cloud is applying a change that this Service did not request ({what})"),
        ),
        WaitsOn::StalledChild(what) => {
            (CHILD_PENDING, format!("Waiting: the cloud has not finished a change ({what})"))
        }
        WaitsOn::Turn => (
            SHARED,
            "Waiting: another Service that uses the same load balancer is being reconciled".to_owned(),
        ),
        WaitsOn::Creations(before) => (
            QUEUED,
            format!(
                "Queued: about {} other load balancers are created first, because the cloud slows down when it creates many at once",
                rounded(*before)
            ),
        ),
    };
    Some(Notice::normal(reason, message))
}

/// Rounds up to one significant digit: the number is an estimate.
fn rounded(count: usize) -> usize {
    let unit = std::iter::successors(Some(1), |unit| Some(unit * 10)).take_while(|unit| *unit <= count);
    let unit = unit.last().unwrap_or(1);
    count.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::provider::Waiting;

    use super::*;

    fn other(text: &str) -> WaitsOn {
        WaitsOn::OtherChange(text.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_waits_for_is_said_once_after_ten_seconds() {
        let (start, minute) = (Instant::now(), Duration::from_secs(60));
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut wait = Wait::again(None, other("lb is PENDING_UPDATE"), start, minute);
        let waited = Reschedule::WaitFor(Duration::from_secs(7), Causes::only(Cause::Waited));
        assert_eq!(wait.next(at(3)), (None, waited));
        let mut wait = Wait::again(Some(wait), other("lb is still PENDING_UPDATE"), at(4), minute);
        let (notice, next) = wait.next(at(10));
        assert!(notice.unwrap().message.contains("still PENDING_UPDATE"));
        assert_eq!(next, Reschedule::Wait(Duration::from_secs(54)));
        let mut wait = Wait::again(Some(wait), other("lb is PENDING_UPDATE"), at(64), minute);
        assert_eq!(wait.next(at(80)), (None, Reschedule::Wait(Duration::from_secs(44))));
        let mut wait = Wait::again(Some(wait), WaitsOn::Turn, at(90), minute);
        assert_eq!(wait.next(at(100)).0.unwrap().reason, "LoadBalancerShared");
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_of_its_own_is_not_said() {
        let start = Instant::now();
        let mut wait =
            Wait::again(None, WaitsOn::OwnStep("create".to_owned()), start, Duration::from_secs(60));
        let next = wait.next(start + Duration::from_secs(20));
        assert_eq!(next, (None, Reschedule::Wait(Duration::from_secs(40))));
    }

    #[test]
    fn a_failure_ends_a_wait_as_a_success_does() {
        let at_most = Duration::from_secs(60);
        let waiting = Waiting { on: other("lb is PENDING_UPDATE"), at_most, unfinished: None };
        assert!(!is_over(&Ok(Outcome::Waiting(waiting))));
        assert!(is_over(&Ok(Outcome::Released)));
        assert!(is_over(&Err(Failure::user_input("no such subnet"))));
    }

    #[test]
    fn a_place_in_the_queue_is_rounded() {
        assert_eq!([0, 3, 9, 10, 11, 34, 101].map(rounded), [0, 3, 9, 10, 20, 40, 200]);
    }
}
