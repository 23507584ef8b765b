//! The report of a repair: the cloud was changed behind the back of a Service that did not change. Pure.

use openstack_ccm_core::notice::Notice;

use super::cause::{Cause, Causes};

/// The cloud differed from what the Service asks for.
const DRIFT_REPAIRED: &str = "LoadBalancerDriftRepaired";
/// Steps that an event lists at most.
const MAX_LISTED_STEPS: usize = 5;

/// What a check for drift has put right so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// What was waited for: the steps that keep the cloud busy.
    steps: Vec<String>,
}

/// What goes on of a check for drift with a reconciliation for these causes: one begins, or goes on, or a reconciliation for
/// another reason comes, after which a change is no drift any more.
pub(super) fn after(drift: Option<Drift>, causes: Causes) -> Option<Drift> {
    if causes == Causes::only(Cause::Resync) {
        return Some(Drift::default());
    }
    drift.filter(|_| !causes.asks_for_more_than(&[Cause::Woken, Cause::Retry, Cause::Waited]))
}

impl Drift {
    /// The cloud is busy with a change.
    pub(super) fn note(&mut self, step: &str) {
        self.steps.push(step.to_owned());
    }

    /// The load balancer is up to date again: what was put right, if anything was. `changed` says that the last reconciliation
    /// changed something too, and `done` what.
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
