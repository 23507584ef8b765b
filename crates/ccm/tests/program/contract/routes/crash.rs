//! The program is killed at every call and started anew: routes, pairs and conditions end as without.

use rstest::rstest;

use super::stage::Stage;
use crate::support::{Call, Stop};

/// What is going on when the program is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    FirstNodes,
    NodeAdded,
    NodeRemoved,
    RangeMoved,
}

impl Story {
    fn begins_with_the_program(self) -> bool {
        match self {
            Self::FirstNodes => true,
            Self::NodeAdded | Self::NodeRemoved | Self::RangeMoved => false,
        }
    }

    fn act(self, stage: &Stage) {
        match self {
            Self::FirstNodes => {}
            Self::NodeAdded => stage.add_node("node-3", &["10.244.3.0/24"]),
            Self::NodeRemoved => stage.remove_node("node-2"),
            Self::RangeMoved => {
                // A node that is recreated under its name gets another range.
                let node = stage.world.kube.get("nodes", "", "node-2").unwrap();
                stage.world.kube.delete("nodes", "", "node-2").unwrap();
                let mut anew = node.clone();
                anew["metadata"] = serde_json::json!({"name": "node-2"});
                anew["spec"]["podCIDR"] = "10.244.9.0/24".into();
                anew["spec"]["podCIDRs"] = serde_json::json!(["10.244.9.0/24"]);
                stage.world.kube.create(&anew).unwrap();
            }
        }
    }
}

/// One run, killed once at most. Answers how it ended, and the calls up to the last write.
async fn run(story: Story, atomic: bool, stop: Option<Stop>) -> (String, Vec<Call>) {
    let mut stage = if atomic { Stage::new() } else { Stage::new().without("extraroute-atomic") };
    stage.add_routes(&["192.168.0.0/24 via 198.18.0.77"]);
    if story.begins_with_the_program() {
        stage.world.start_until(stop).await;
    } else {
        stage = stage.converged().await;
        if let Some(stop) = stop {
            stage.world.stop_at(stop);
        }
    }
    story.act(&stage);
    if !stage.world.survives().await {
        stage.world.kill().await;
        stage.world.start_to_rest().await;
    }
    let mut calls = stage.world.take_calls();
    calls.truncate(calls.iter().rposition(|call| call.write).map_or(0, |last| last + 1));
    (stage.state(), calls)
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn routes_survive_a_kill_at_any_call(
    #[values(Story::FirstNodes, Story::NodeAdded, Story::NodeRemoved, Story::RangeMoved)] story: Story,
    #[values(true, false)] atomic: bool,
) {
    let (expected, calls) = run(story, atomic, None).await;
    insta::assert_snapshot!(format!("{story:?}"), expected);
    assert!(calls.len() >= 2, "{story:?} makes only {} calls", calls.len());
    for stop in Stop::beside(&calls) {
        let (end, _) = run(story, atomic, Some(stop)).await;
        assert!(
            end == expected,
            "{story:?} killed {stop:?} ended differently:\n{end}\nexpected:\n{expected}"
        );
    }
}
