//! Why a Service is queued. Pure.

use crate::queue::Reason;

/// Why a Service is queued. The most urgent cause comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The Service is new, changed, or to be removed.
    Changed,
    /// The provider can continue its work.
    Woken,
    /// What is known of the cluster's support for `ipMode` changed, or another client edited the status: publish again.
    Readvertise,
    /// The controller started, and the Service is published already.
    Startup,
    /// The backends changed.
    Nodes,
    /// An earlier reconciliation failed, or waited long enough.
    Retry,
    /// The Service has waited so long that an Event says for what.
    Waited,
    /// An earlier reconciliation assumed a result, which is verified now.
    Again,
    /// Nothing happened for a long time: look for changes made in the cloud.
    Resync,
}

impl Reason for Causes {
    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the rank of the most urgent cause.
    fn rank(self) -> u32 {
        self.0.trailing_zeros()
    }

    fn is_own_change(self) -> bool {
        self == Self::only(Cause::Changed)
    }
}

/// A set of causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Causes(u16);

impl Causes {
    /// The set with one cause.
    pub(crate) fn only(cause: Cause) -> Self {
        Self(1 << cause as u8)
    }

    /// Whether the cause is in the set.
    pub(crate) fn has(self, cause: Cause) -> bool {
        self.0 & Self::only(cause).0 != 0
    }

    pub(crate) fn asks_for_more_than(self, these: &[Cause]) -> bool {
        let these = these.iter().fold(Self::default(), |set, cause| set.and(Self::only(*cause)));
        self.0 & !these.0 != 0
    }
}
