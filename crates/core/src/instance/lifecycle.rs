//! What is done about nodes whose machine is gone or shut down.

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
pub enum NodeAction {
    /// Nothing.
    Leave,
    /// Its machine is missing: if that stays so and is believed, the Node is deleted.
    Missing,
    /// The shutdown taint is set.
    Taint,
    /// The shutdown taint is removed.
    Lift,
}

/// What is done about a node that is not ready, from what the cloud says of its machine. A shutdown taint stays until
/// the node is ready: a machine that was started may take long to become a node again.
pub fn action(presence: &Presence) -> NodeAction {
    match presence {
        Presence::Gone => NodeAction::Missing,
        Presence::ShutDown => NodeAction::Taint,
        Presence::Exists | Presence::Foreign(_) | Presence::Unknown(_) => NodeAction::Leave,
    }
}

/// What is done about a ready node; the cloud is not asked.
pub fn action_for_ready(has_shutdown_taint: bool) -> NodeAction {
    if has_shutdown_taint { NodeAction::Lift } else { NodeAction::Leave }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::failure::Failure;

    #[rstest]
    #[case::gone(Presence::Gone, NodeAction::Missing)]
    #[case::shut_down(Presence::ShutDown, NodeAction::Taint)]
    #[case::runs(Presence::Exists, NodeAction::Leave)]
    #[case::foreign(Presence::Foreign("aws".into()), NodeAction::Leave)]
    #[case::unknown(Presence::Unknown(Failure::user_input("x")), NodeAction::Leave)]
    fn only_certain_knowledge_has_consequences(#[case] presence: Presence, #[case] expected: NodeAction) {
        assert_eq!(action(&presence), expected);
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
