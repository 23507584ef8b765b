//! Which members are healthy: the counting of checks, its results, and the tasks that check.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use super::environment::Environment;
use super::probe::probe;
use super::proxy_header::Version;
use super::wanted::{Monitor, Wanted};

/// Whether a member is healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberStatus {
    /// Its checks pass; or it is new, and none has finished.
    Online,
    /// Its checks fail: it gets no connections.
    Error,
    /// Nobody checks.
    NoMonitor,
}

/// The status of every wanted member, by id.
#[derive(Debug, Default)]
pub(super) struct HealthTable(watch::Sender<BTreeMap<String, MemberStatus>>);

impl HealthTable {
    /// A copy of the table.
    pub(super) fn read(&self) -> BTreeMap<String, MemberStatus> {
        self.0.borrow().clone()
    }

    /// The table, with a wake-up at each change.
    pub(super) fn subscribe(&self) -> watch::Receiver<BTreeMap<String, MemberStatus>> {
        self.0.subscribe()
    }

    /// Makes the table have exactly the wanted members. Results that are known stay.
    pub(super) fn reconcile(&self, wanted: &Wanted) {
        self.0.send_if_modified(|table| {
            let next = members(wanted, table);
            let changed = *table != next;
            *table = next;
            changed
        });
    }

    /// Whether a member may get connections.
    pub(super) fn is_usable(&self, member_id: &str) -> bool {
        match self.0.borrow().get(member_id) {
            Some(MemberStatus::Online | MemberStatus::NoMonitor) | None => true,
            Some(MemberStatus::Error) => false,
        }
    }

    /// Records a result; a member that is gone or not monitored any more stays so.
    fn record(&self, member_id: &str, up: bool) {
        let next = if up { MemberStatus::Online } else { MemberStatus::Error };
        self.0.send_if_modified(|table| match table.get_mut(member_id) {
            Some(status @ (MemberStatus::Online | MemberStatus::Error)) if *status != next => {
                *status = next;
                true
            }
            Some(MemberStatus::Online | MemberStatus::Error | MemberStatus::NoMonitor) | None => false,
        });
    }
}

fn members(wanted: &Wanted, known: &BTreeMap<String, MemberStatus>) -> BTreeMap<String, MemberStatus> {
    let mut table = BTreeMap::new();
    for pool in wanted.listeners.iter().filter_map(|listener| listener.pool.as_ref()) {
        for member in &pool.members {
            let status = match (&pool.monitor, known.get(&member.id)) {
                (None, _) => MemberStatus::NoMonitor,
                (Some(_), Some(MemberStatus::Error)) => MemberStatus::Error,
                (Some(_), Some(MemberStatus::Online | MemberStatus::NoMonitor) | None) => {
                    MemberStatus::Online
                }
            };
            table.insert(member.id.clone(), status);
        }
    }
    table
}

/// What is checked how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// Where, in the world.
    pub(super) target: SocketAddr,
    pub(super) monitor: Monitor,
    /// The PROXY header that goes first.
    pub(super) proxy: Option<Version>,
}

impl Check {
    /// The checks of all members that have a monitor, by member id. A pool behind several listeners is checked once.
    pub(super) fn all(wanted: &Wanted) -> BTreeMap<String, Self> {
        let mut checks = BTreeMap::new();
        for pool in wanted.listeners.iter().filter_map(|listener| listener.pool.as_ref()) {
            let Some(monitor) = &pool.monitor else { continue };
            for member in &pool.members {
                let proxy =
                    if member.is_monitored_elsewhere() { None } else { pool.protocol.proxy_version() };
                let check = Self { target: member.monitor_target(), monitor: monitor.clone(), proxy };
                checks.insert(member.id.clone(), check);
            }
        }
        checks
    }
}

/// A check that is made again and again until it is dropped.
#[derive(Debug)]
pub(super) struct RunningCheck {
    pub(super) check: Check,
    _task: AbortOnDropHandle<()>,
}

impl RunningCheck {
    /// Starts at once, in the runtime that is entered.
    pub(super) fn start(member_id: String, check: Check, environment: Environment) -> Self {
        let task = tokio::spawn(run(member_id, check.clone(), environment));
        Self { check, _task: AbortOnDropHandle::new(task) }
    }
}

async fn run(member_id: String, check: Check, environment: Environment) {
    let mut tally = Tally::new(&check.monitor, environment.health.is_usable(&member_id));
    // A delay of zero is not a delay to wait for.
    let mut ticks = interval(check.monitor.delay.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let passed =
            match tokio::time::timeout(check.monitor.timeout, probe(&check, &environment.member)).await {
                Ok(Ok(passed)) => passed,
                Ok(Err(error)) => {
                    tracing::debug!(member = %member_id, %error, "health check failed");
                    false
                }
                Err(_elapsed) => false,
            };
        tally.count(passed);
        environment.health.record(&member_id, tally.is_up());
    }
}

/// HAProxy's way of counting: a number from 0 that means up from `rise` on.
///
/// A member begins up, but falls at the first failure: its number begins at `rise`. A failure on the way up and a pass on
/// the way down start the count again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tally {
    number: u32,
    rise: u32,
    fall: u32,
}

impl Tally {
    fn new(monitor: &Monitor, up: bool) -> Self {
        let (rise, fall) = (monitor.rise.max(1), monitor.fall.max(1));
        Self { number: if up { rise } else { 0 }, rise, fall }
    }

    fn is_up(self) -> bool {
        self.number >= self.rise
    }

    fn count(&mut self, passed: bool) {
        let was_up = self.is_up();
        if !passed {
            self.number = if self.number > self.rise { self.number - 1 } else { 0 };
        } else if was_up || self.number + 1 >= self.rise {
            self.number = self.rise + self.fall - 1;
        } else {
            self.number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::wanted::MonitorKind;
    use super::*;

    fn monitor(rise: u32, fall: u32) -> Monitor {
        let second = Duration::from_secs(1);
        Monitor { kind: MonitorKind::Tcp, delay: second, timeout: second, rise, fall }
    }

    /// `+` is a check that passes, `-` one that fails; the answer has `U` for up and `D` for down after each.
    #[rstest]
    #[case::a_new_member_falls_at_the_first_failure(2, 3, "-", "D")]
    #[case::a_proven_member_falls_after_fall_failures(2, 3, "+---", "UUUD")]
    #[case::a_pass_starts_the_count_of_failures_again(2, 3, "+--+--", "UUUUUU")]
    #[case::a_fallen_member_rises_after_rise_passes(2, 3, "-++", "DDU")]
    #[case::a_failure_starts_the_count_of_passes_again(2, 3, "-+-+", "DDDD")]
    #[case::one_of_each_is_enough_when_so_configured(1, 1, "-+-+", "DUDU")]
    fn checks_are_counted_as_haproxy_does(
        #[case] rise: u32,
        #[case] fall: u32,
        #[case] checks: &str,
        #[case] expected: &str,
    ) {
        let mut tally = Tally::new(&monitor(rise, fall), true);
        let seen: String = checks
            .chars()
            .map(|check| {
                tally.count(check == '+');
                if tally.is_up() { 'U' } else { 'D' }
            })
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_member_that_was_down_must_rise_when_its_checks_are_changed() {
        let mut tally = Tally::new(&monitor(2, 3), false);
        tally.count(true);
        assert!(!tally.is_up());
        tally.count(true);
        assert!(tally.is_up());
    }
}
