//! The verdict in the status of a pod, encoded by the readiness of two containers. Pure.
//!
//! | `conclusive` | `fit` | `kubectl get pods` | the node |
//! | --- | --- | --- | --- |
//! | ready | ready | 2/2 | fit |
//! | ready | not | 1/2 | unfit |
//! | not | not | 0/2 | not known |
//! | not | ready | 1/2 | contradiction: what answered cannot be a service proxy |
//!
//! The kubelet probes the two one after the other, so that one of them may be ahead for a moment: only a lasting state counts
//! ([`crate::ledger`]).

use crate::observed_pod::ObservedPod;
use crate::verdict::{Finding, Verdict};
use crate::{CONCLUSIVE, FIT};

/// The verdict that a pod reports of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Carried {
    /// Its service proxy honours the mode, or short-circuits nothing.
    Fit,
    /// Its service proxy ignores the mode.
    Unfit,
    /// Something other than a service proxy answers.
    Contradiction,
}

impl Carried {
    /// Returns the readiness of the containers `conclusive` and `fit` for a held finding.
    pub fn readiness(held: Option<Finding>) -> (bool, bool) {
        match held {
            Some(Finding::Contradiction) => (false, true),
            held => match held.map(Finding::verdict) {
                Some(Verdict::Fit) => (true, true),
                Some(Verdict::Unfit) => (true, false),
                Some(Verdict::Unknown) | None => (false, false),
            },
        }
    }

    /// Reads what a pod reports. `None` unless both containers run: the readiness of an ended container means nothing.
    pub fn of_pod(pod: &ObservedPod) -> Option<Self> {
        if pod.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let statuses = pod.status.container_statuses.as_ref()?;
        let ready = |name: &str| {
            let status = statuses.iter().find(|status| status.name == name)?;
            status.state.running.is_some().then_some(status.ready)
        };
        match (ready(CONCLUSIVE)?, ready(FIT)?) {
            (true, true) => Some(Self::Fit),
            (true, false) => Some(Self::Unfit),
            (false, true) => Some(Self::Contradiction),
            (false, false) => None,
        }
    }

    pub fn verdict(self) -> Verdict {
        match self {
            Self::Fit => Verdict::Fit,
            Self::Unfit => Verdict::Unfit,
            Self::Contradiction => Verdict::Unknown,
        }
    }

    /// Returns a text for people, where the finding is unknown.
    pub fn text(self) -> &'static str {
        match self {
            Self::Fit => "its service proxy short-circuits no address with ipMode Proxy",
            Self::Unfit => Finding::Ignores.text(),
            Self::Contradiction => Finding::Contradiction.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn pod(conclusive: &Value, fit: &Value) -> ObservedPod {
        from_value(json!({
            "metadata": {"name": "canary-x"},
            "status": {"phase": "Running", "containerStatuses": [conclusive, fit]},
        }))
        .unwrap()
    }

    fn status(name: &str, ready: bool) -> Value {
        json!({"name": name, "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}}})
    }

    #[rstest]
    #[case(Some(Finding::Honours), Some(Carried::Fit))]
    #[case(Some(Finding::NeverShortCircuits), Some(Carried::Fit))]
    #[case(Some(Finding::Ignores), Some(Carried::Unfit))]
    #[case(Some(Finding::Contradiction), Some(Carried::Contradiction))]
    #[case(Some(Finding::Silence), None)]
    #[case(None, None)]
    fn what_a_pod_finds_arrives(#[case] held: Option<Finding>, #[case] expected: Option<Carried>) {
        let (conclusive, fit) = Carried::readiness(held);
        assert_eq!(Carried::of_pod(&pod(&status(CONCLUSIVE, conclusive), &status(FIT, fit))), expected);
    }

    #[test]
    fn a_pod_that_ends_says_nothing() {
        let mut deleted = pod(&status(CONCLUSIVE, true), &status(FIT, true));
        assert_eq!(Carried::of_pod(&deleted), Some(Carried::Fit));
        deleted.metadata.deletion_timestamp = from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(Carried::of_pod(&deleted), None);
        let mut ended = status(FIT, false);
        ended["state"] = json!({"terminated": {"exitCode": 1}});
        assert_eq!(Carried::of_pod(&pod(&status(CONCLUSIVE, true), &ended)), None);
        assert_eq!(Carried::of_pod(&ObservedPod::default()), None);
    }
}
