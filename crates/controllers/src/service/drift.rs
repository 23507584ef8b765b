//! The report of a repair: the cloud was changed behind the back of a Service that did not change.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::ServiceKey;

use super::cause::{Cause, Causes};
use super::sync::ServiceSync;

/// The cloud differed from what the Service asks for.
const DRIFT_REPAIRED: &str = "LoadBalancerDriftRepaired";
/// Steps that an event lists at most.
const MOST_STEPS: usize = 5;

/// What a look for drift has put right so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// What was waited for: the steps that keep the cloud busy.
    steps: Vec<String>,
}

impl ServiceSync {
    /// A look for drift begins, or a reconciliation for another reason, after which a change is no drift any more.
    pub(super) fn note_cause(&self, key: &ServiceKey, causes: Causes) {
        let looks = causes == Causes::only(Cause::Resync);
        let goes_on = !causes.asks_for_more_than(&[Cause::Woken, Cause::Retry]);
        self.memory.with(key, |known| {
            if looks {
                known.drift = Some(Drift::default());
            } else if !goes_on {
                known.drift = None;
            }
        });
    }

    /// The cloud is busy with a change.
    pub(super) fn note_step(&self, key: &ServiceKey, step: &str) {
        self.memory.with(key, |known| {
            if let Some(drift) = &mut known.drift {
                drift.steps.push(step.to_owned());
            }
        });
    }

    /// The load balancer agrees with its Service again: says what was put right, if anything was.
    pub(super) fn report_drift(&self, key: &ServiceKey, uid: &str, changed: bool) {
        let Some(drift) = self.memory.with(key, |known| known.drift.take()).flatten() else { return };
        if !changed && drift.steps.is_empty() {
            return;
        }
        self.metrics.drift_repaired();
        let notice = repaired(&drift);
        tracing::warn!(service = %key, message = notice.message, "drift repaired");
        self.tell(key, uid, notice);
    }
}

fn repaired(drift: &Drift) -> Notice {
    let mut message =
        "something was changed in the cloud although the Service did not change, and was corrected"
            .to_owned();
    for (index, step) in drift.steps.iter().take(MOST_STEPS).enumerate() {
        message.push_str(if index == 0 { ": " } else { "; " });
        message.push_str(step);
    }
    if drift.steps.len() > MOST_STEPS {
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
        assert!(repaired(&Drift::default()).message.ends_with("was corrected"));
    }
}
