//! Whether to believe that machines are gone.
//!
//! A Node whose machine is gone is deleted, and its pods with it. A cloud that returns only a part of its machines, or
//! credentials of another project, look the same as deleted machines. So when most of the cluster seems gone, no Node is
//! deleted: a person decides.

use std::fmt;

use super::Presence;

/// Number of machines that may vanish together in any cluster, as long as one is left.
pub const MAX_BELIEVED_MISSING: usize = 2;

/// Counts from one check of all nodes whose machines are in the cloud, ready nodes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingMachines {
    /// Nodes that belong to this cloud by their provider id.
    pub known: usize,
    /// Known nodes whose machine the cloud does not have.
    pub missing: usize,
}

/// Why the answers of the cloud are not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt(MissingMachines);

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingMachines { known, missing } = self.0;
        write!(
            f,
            "the servers of {missing} of {known} nodes cannot be found in the cloud; no Node is deleted while more than half of the \
             servers are missing at once. If the servers were deleted, delete the Nodes with kubectl; otherwise check the configured \
             credentials, project and region, and the state of the compute service"
        )
    }
}

impl MissingMachines {
    /// Counts the answers about all nodes. Nodes that are foreign, without a provider id or of unknown state are left out.
    pub fn among<'a>(answers: impl IntoIterator<Item = &'a Presence>) -> Self {
        let mut counts = Self { known: 0, missing: 0 };
        for presence in answers {
            match presence {
                Presence::Exists | Presence::ShutDown => counts.known += 1,
                Presence::Gone => {
                    counts.known += 1;
                    counts.missing += 1;
                }
                Presence::Foreign(_) | Presence::Unnamed(_) | Presence::Unknown(_) => {}
            }
        }
        counts
    }

    /// Returns a doubt if none of several machines is left, or if more than half are missing and more than
    /// [`MAX_BELIEVED_MISSING`]. The loss of the only machine is believed.
    pub fn doubt(self) -> Option<Doubt> {
        let none_left = self.known > 1 && self.missing >= self.known;
        let too_many = self.missing > MAX_BELIEVED_MISSING && self.missing.saturating_mul(2) > self.known;
        (none_left || too_many).then_some(Doubt(self))
    }
}

/// How many rounds in a row a machine must be missing before its node is deleted.
pub const MIN_MISSING_ROUNDS: u32 = 2;

/// Maximum of Nodes deleted in one round: each costs a last query for its machine.
pub const MAX_DELETIONS_PER_ROUND: usize = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(100, 0, true)]
    #[case::one_of_many(100, 1, true)]
    #[case::half(100, 50, true)]
    #[case::more_than_half(100, 51, false)]
    #[case::all(5000, 5000, false)]
    #[case::nearly_all(5000, 4999, false)]
    #[case::the_only_one(1, 1, true)]
    #[case::both(2, 2, false)]
    #[case::one_of_two(2, 1, true)]
    #[case::two_of_three(3, 2, true)]
    #[case::three_of_four(4, 3, false)]
    fn most_of_a_cluster_does_not_vanish_at_once(
        #[case] known: usize,
        #[case] missing: usize,
        #[case] believed: bool,
    ) {
        assert_eq!(MissingMachines { known, missing }.doubt().is_none(), believed);
    }

    proptest! {
        #[test]
        fn an_empty_answer_is_never_believed_of_several_nodes(known in 2_usize..10_000) {
            let empty = MissingMachines { known, missing: known };
            prop_assert!(empty.doubt().is_some());
        }

        #[test]
        fn more_missing_machines_never_restore_belief(known in 1_usize..2000, missing in 0_usize..2000) {
            prop_assume!(missing < known);
            let fewer = MissingMachines { known, missing };
            let more = MissingMachines { known, missing: missing + 1 };
            prop_assert!(fewer.doubt().is_none() || more.doubt().is_some());
        }
    }
}
