//! Reports of drift repairs: the cloud was changed although the Service did not change. Pure.

use openstack_ccm_core::notice::Notice;

use super::cause::{Cause, Causes};

/// Event reason: the cloud differed from what the Service asks for.
const DRIFT_REPAIRED: &str = "LoadBalancerDriftRepaired";
/// Maximum of steps listed in an Event.
const MAX_LISTED_STEPS: usize = 5;

/// The repairs of a check for drift so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// The steps that were waited for.
    steps: Vec<String>,
}

/// Returns the check for drift for a reconciliation with these causes: it begins, goes on, or ends, because after a reconciliation
/// for another cause a change is no drift any more.
pub(super) fn after(drift: Option<Drift>, causes: Causes) -> Option<Drift> {
    if causes == Causes::only(Cause::Resync) {
        return Some(Drift::default());
    }
    drift.filter(|_| !causes.asks_for_more_than(&[Cause::Woken, Cause::Retry, Cause::Waited]))
}

impl Drift {
    /// Notes a step that keeps the cloud busy.
    pub(super) fn note(&mut self, step: &str) {
        self.steps.push(step.to_owned());
    }

    /// Ends the check: returns what was repaired, if anything. `changed` says whether the last reconciliation changed something
    /// too, and `done` what.
    pub(super) fn report(mut self, changed: bool, done: &[String]) -> Option<Notice> {
        self.steps.extend_from_slice(done);
        (changed || !self.steps.is_empty()).then(|| repaired(&self))
    }
}

fn repaired(drift: &Drift) -> Notice {
    let mut message =
        "the load balancer was changed in the cloud although the Service did not change; the change was reverted"
            .to_owned();
    for (index, step) in drift.steps.iter().take(MAX_LISTED_STEPS).enumerate() {
        message.push_str(if index == 0 { ": " } else { "; " });
        message.push_str(step);
    }
    if drift.steps.len() > MAX_LISTED_STEPS {
        message.push_str("; and more");
    }
    Notice::warning(DRIFT_REPAIRED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_lists_some_steps_and_stays_short() {
        let steps: Vec<String> = (0..7).map(|number| format!("step {number}")).collect();
        let message = repaired(&Drift { steps }).message;
        assert!(message.ends_with(": step 0; step 1; step 2; step 3; step 4; and more"), "{message}");
        assert!(repaired(&Drift::default()).message.ends_with("was reverted"));
    }
}
