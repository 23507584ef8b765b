//! The condition `NetworkUnavailable` of a node, by which the scheduler learns whether pods there can be reached.

use super::NodeRoute;
use super::plan::NodePlan;

/// Type of the condition.
pub const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";

/// What the condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// All routes to the pods of the node are there.
    Available,
    /// A route is missing.
    Unavailable,
}

impl Network {
    /// Returns `status`, `reason` and `message` of the condition, as other software expects them.
    pub fn texts(self) -> [&'static str; 3] {
        match self {
            Self::Available => ["False", "RouteCreated", "RouteController created a route"],
            Self::Unavailable => ["True", "NoRouteCreated", "RouteController failed to create a route"],
        }
    }

    /// Whether a condition with this status and reason has to be written again.
    pub fn differs_from(self, condition: Option<(&str, &str)>) -> bool {
        let [status, reason, _] = self.texts();
        condition != Some((status, reason))
    }
}

/// Returns the state to publish for a node; `None` if other software owns the condition, because the node has no range of pod
/// addresses and no route.
pub fn network(node: &NodePlan, is_missing: impl Fn(&NodeRoute) -> bool) -> Option<Network> {
    if node.routes.is_empty() && node.problems.is_empty() {
        return node.has_other_routes.then_some(Network::Unavailable);
    }
    let whole = node.problems.is_empty() && !node.routes.iter().any(is_missing);
    Some(if whole { Network::Available } else { Network::Unavailable })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The condition is written only where status or reason differ.
    ///
    /// Framework: R12, same.
    #[rstest]
    #[case::none_created(None, Network::Available, true)]
    #[case::none_failed(None, Network::Unavailable, true)]
    #[case::created_created(Some(("False", "RouteCreated")), Network::Available, false)]
    #[case::calico_created(Some(("False", "CalicoIsUp")), Network::Available, true)]
    #[case::other_failed(Some(("True", "Other")), Network::Unavailable, true)]
    #[case::created_failed(Some(("False", "RouteCreated")), Network::Unavailable, true)]
    #[case::failed_failed(Some(("True", "NoRouteCreated")), Network::Unavailable, false)]
    fn framework_r12_the_condition_is_written_only_where_it_differs(
        #[case] current: Option<(&str, &str)>,
        #[case] wanted: Network,
        #[case] expected: bool,
    ) {
        assert_eq!(wanted.differs_from(current), expected);
    }

    #[rstest]
    #[case::nothing(0, false, false, false, None)]
    #[case::left_over(0, false, true, false, Some(Network::Unavailable))]
    #[case::there(1, false, false, false, Some(Network::Available))]
    #[case::missing(1, false, false, true, Some(Network::Unavailable))]
    #[case::half(1, true, false, false, Some(Network::Unavailable))]
    fn a_node_is_reachable_when_every_route_is_there(
        #[case] routes: usize,
        #[case] problem: bool,
        #[case] has_other_routes: bool,
        #[case] missing: bool,
        #[case] expected: Option<Network>,
    ) {
        let route = NodeRoute {
            destination: "10.244.1.0/24".parse().unwrap(),
            next_hop: "10.0.0.11".parse().unwrap(),
        };
        let node = NodePlan {
            name: "n1".to_owned(),
            routes: vec![route; routes],
            problems: if problem {
                vec![super::super::plan::Problem::NotANetwork { cidr: "x".to_owned() }]
            } else {
                Vec::new()
            },
            has_other_routes,
        };
        assert_eq!(network(&node, |_| missing), expected);
    }
}
