//! The stories of the fault runs, played calmly: each step is planned, then done.

use std::time::Duration;

use fastrand::Rng;

use crate::fault_run::{Edit, Stage, Story};

/// Stories without `PLAN_STORIES`, from the seed `PLAN_FIRST` on.
const SHORT: u64 = 5;

/// After so long routes were compared and every load balancer was looked at: a plan sees what the program has not yet.
const LOOKED: Duration = Duration::from_secs(400);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// Plays one story; answers how many edits were compared, and what surprised.
async fn play(seed: u64) -> (usize, Vec<String>) {
    let story = Story::of(&mut Rng::with_seed(seed));
    // What is marked when depends on what the program remembers.
    let mut stage = Stage::with(&story, "identity-tags-per-minute = 0\n").await;
    let (mut compared, mut surprises) = (0, Vec::new());
    stage.world.quiet_unplanned().await;
    for edit in story.steps.iter().flat_map(|step| &step.edits) {
        stage.apply(edit);
        let prediction = stage.world.predict().await;
        tokio::time::sleep(LOOKED).await;
        stage.world.quiet_unplanned().await;
        // Of a node that comes or goes all controllers hear at the same time, and none knows what the others will do.
        if matches!(edit, Edit::Join { .. } | Edit::Vanish { .. }) {
            continue;
        }
        match stage.world.surprise(&prediction) {
            Some(surprise) => surprises.push(format!("PLAN_FIRST={seed}: {edit:?}\n{surprise}")),
            None => compared += usize::from(stage.world.is_comparable(&prediction)),
        }
    }
    stage.end().await;
    (compared, surprises)
}

/// `PLAN_STORIES=1000` plays as many.
#[test]
fn stories_go_as_planned() {
    let (first, count) = (number("PLAN_FIRST").unwrap_or_default(), number("PLAN_STORIES").unwrap_or(SHORT));
    let (mut compared, mut surprises) = (0, Vec::new());
    for seed in first..first + count {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let (steps, surprised) = runtime.unwrap().block_on(play(seed));
        compared += steps;
        surprises.extend(surprised);
    }
    assert!(
        surprises.is_empty(),
        "{} beside {compared} edits as planned:\n{}",
        surprises.len(),
        surprises.join("\n")
    );
    assert!(compared as u64 >= count, "only {compared} edits of {count} stories could be compared");
}
