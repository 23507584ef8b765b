//! What a kubelet does about a controller that ends: it starts it again. Here that is done once in a group, and only after an end that the
//! machine has brought about; any other end is what the tests are there to find.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};

use crate::machine::process::Daemon;
use crate::machine::say;
use crate::machine::watch::Ending;
use crate::machine::world;

/// What the program says when it ends because it does not lead any more, and what it has said before when nobody else took the lead.
const LAST_LINE: &str = "openstack-ccm: leadership was lost";
const REASON: &str = "leadership lost: ";
const ANSWERED_LATE: &str = "leadership lost: the lease was not renewed in time";
/// What a row says of it.
pub(crate) const STARTED_AGAIN: &str =
    "the controller lost its Lease because the API server answered late, and was started again";

/// How often a controller was started again in the present group.
static RESTARTS: AtomicU32 = AtomicU32::new(0);

/// From now on nobody was started again: another group begins, or a scenario has taken the API server away itself.
pub(crate) fn count_anew() {
    RESTARTS.store(0, Ordering::Relaxed);
}

pub(crate) fn restarts() -> u32 {
    RESTARTS.load(Ordering::Relaxed)
}

/// Fails where the controller of the present group has not run through: what it counts begins anew with it.
///
/// # Errors
/// It was started again.
pub(crate) fn ran_through() -> Result<()> {
    ensure!(restarts() == 0, "not judged, because {STARTED_AGAIN}: the group is begun anew");
    Ok(())
}

/// What is done about a controller that ended and that no scenario has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    StartAgain,
    /// Its group has failed.
    Fail,
}

fn answer(ending: &Ending, restarts: u32) -> Answer {
    let last = ending.lines.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let reason = ending.lines.lines().rfind(|line| line.contains(REASON)).unwrap_or_default();
    let by_the_machine =
        ending.exit == Some(1) && last.starts_with(LAST_LINE) && reason.contains(ANSWERED_LATE);
    if by_the_machine && restarts == 0 { Answer::StartAgain } else { Answer::Fail }
}

/// A controller's process, absent after a scenario has ended it.
pub(super) struct Kept(Slot);

type Slot = Arc<Mutex<Option<Daemon>>>;

/// How it is started, again and again.
type Launch = Arc<dyn Fn() -> Result<Daemon> + Send + Sync>;

impl Kept {
    /// Starts a process that is started again.
    pub(super) fn start(launch: impl Fn() -> Result<Daemon> + Send + Sync + 'static) -> Result<Self> {
        let slot = Slot::default();
        let mut process = lock(&slot);
        let launch: Launch = Arc::new(launch);
        *process = Some(start(&launch, &slot)?);
        drop(process);
        Ok(Self(slot))
    }

    /// A process that is left to itself.
    pub(super) fn alone(process: Daemon) -> Self {
        Self(Arc::new(Mutex::new(Some(process))))
    }

    pub(super) fn with(&self, act: impl FnOnce(&Daemon)) {
        if let Some(process) = lock(&self.0).as_ref() {
            act(process);
        }
    }

    /// Takes the process, which then nobody starts again.
    pub(super) fn take(&self) -> Option<Daemon> {
        lock(&self.0).take()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.take();
    }
}

fn lock(slot: &Slot) -> MutexGuard<'_, Option<Daemon>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(launch: &Launch, slot: &Slot) -> Result<Daemon> {
    let (again, own) = (Arc::clone(launch), Arc::clone(slot));
    Ok(launch()?.watched(move |ending| ended(&again, &own, &ending)))
}

fn ended(launch: &Launch, slot: &Slot, ending: &Ending) {
    let mut process = lock(slot);
    if process.is_none() {
        return;
    }
    if answer(ending, restarts()) == Answer::Fail {
        return world::give_up(&ending.to_string());
    }
    RESTARTS.fetch_add(1, Ordering::Relaxed);
    say(&format!("     {STARTED_AGAIN}"));
    match start(launch, slot) {
        Ok(another) => *process = Some(another),
        Err(error) => world::give_up(&format!("the controller cannot be started again: {error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: &str = "ERROR leadership lost: the lease was not renewed in time lease=x\n\
        WARN reconciliations that did not finish in time are cancelled\n\
        openstack-ccm: leadership was lost (lease x); the process exits and has to be restarted\n";

    #[test]
    fn a_lease_that_was_lost_to_a_late_server_is_no_fault_of_the_controller() {
        assert_eq!(answer(&Ending::sample(Some(1), LOST), 0), Answer::StartAgain);
    }

    #[test]
    fn what_happens_twice_in_a_group_fails_it() {
        assert_eq!(answer(&Ending::sample(Some(1), LOST), 1), Answer::Fail);
    }

    #[test]
    fn every_other_end_fails_the_group() {
        let taken = LOST.replace("the lease was not renewed in time", "another instance has the lease");
        let panicked = format!("{LOST}thread 'main' panicked at x.rs:1:1:\n");
        for (exit, lines) in [
            (Some(1), taken.as_str()),
            // An earlier loss is no excuse for a later end.
            (Some(101), panicked.as_str()),
            (Some(1), "openstack-ccm: the cloud.conf has no auth-url\n"),
            (None, LOST),
            (Some(0), ""),
        ] {
            assert_eq!(answer(&Ending::sample(exit, lines), 0), Answer::Fail, "{exit:?} {lines}");
        }
    }
}
