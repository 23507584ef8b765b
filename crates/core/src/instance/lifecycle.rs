//! What becomes of a node that is not ready.

use super::Presence;

/// What the Ready condition of a node says. False, unknown and missing are one: the kubelet does not vouch for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The condition is true.
    Ready,
    /// Anything else.
    NotReady,
}

impl Readiness {
    /// From the status of the condition, if there is one.
    pub fn of_condition(status: Option<&str>) -> Self {
        if status == Some("True") { Self::Ready } else { Self::NotReady }
    }
}

/// What is done about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Nothing.
    Leave,
    /// Its machine is missing: if that stays so and is believed, the Node is deleted.
    Missing,
    /// The shutdown taint is set.
    Taint,
    /// The shutdown taint is lifted.
    Lift,
}

/// What is done about a node that is not ready, from what the cloud says of its machine. A shutdown taint stays until
/// the node is ready: a machine that was started may take long to become a node again.
pub fn care(presence: &Presence) -> Care {
    match presence {
        Presence::Gone => Care::Missing,
        Presence::ShutDown => Care::Taint,
        Presence::Exists | Presence::Foreign(_) | Presence::Unknown(_) => Care::Leave,
    }
}

/// What is done about a ready node; the cloud is not asked.
pub fn care_of_ready(has_shutdown_taint: bool) -> Care {
    if has_shutdown_taint { Care::Lift } else { Care::Leave }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::failure::Failure;

    #[rstest]
    #[case::gone(Presence::Gone, Care::Missing)]
    #[case::shut_down(Presence::ShutDown, Care::Taint)]
    #[case::runs(Presence::Exists, Care::Leave)]
    #[case::foreign(Presence::Foreign("aws".into()), Care::Leave)]
    #[case::unknown(Presence::Unknown(Failure::user_input("x")), Care::Leave)]
    fn only_certain_knowledge_has_consequences(#[case] presence: Presence, #[case] expected: Care) {
        assert_eq!(care(&presence), expected);
    }

    #[rstest]
    #[case(Some("True"), Readiness::Ready)]
    #[case(Some("False"), Readiness::NotReady)]
    #[case(Some("Unknown"), Readiness::NotReady)]
    #[case(None, Readiness::NotReady)]
    fn readiness(#[case] status: Option<&str>, #[case] expected: Readiness) {
        assert_eq!(Readiness::of_condition(status), expected);
    }
}
