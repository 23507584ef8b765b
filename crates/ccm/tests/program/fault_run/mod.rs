//! Random edits under random faults and kills: in the end everything is as in a calm run of the same edits, nothing of
//! others was touched, and nothing of ours is left over once all Services are gone.
//!
//! A run is told by its seed alone. `FAULT_RUNS=10000` makes many runs, `FAULT_SEED=7` repeats one.

mod outcome;
mod story;
mod trouble;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;

use story::{Stage, Story};
use trouble::Trouble;

/// Runs without `FAULT_RUNS`.
const SHORT: u64 = 3;
/// Longer than the longest delay of a retry and a look for drift together.
const LONG_ENOUGH: Duration = Duration::from_secs(800);

/// How one run ended: with the last edits, and after all Services were deleted.
type Ends = (Vec<String>, Vec<String>);

/// Tells the story, with or without trouble.
async fn tell(story: &Story, mut trouble: Option<Trouble>) -> Ends {
    let mut stage = Stage::new().await;
    for step in &story.steps {
        if let Some(trouble) = &mut trouble {
            trouble.brew(&stage.world);
        }
        step.edits.iter().for_each(|edit| stage.apply(edit));
        if stage.world.is_killed_within(step.pause).await {
            stage.world.kill().await;
            stage.world.start().await;
        }
    }
    if let Some(trouble) = trouble {
        trouble.end(&mut stage.world).await;
    }
    tokio::time::sleep(LONG_ENOUGH).await;
    let edited = outcome::describe(&stage.world);
    stage.delete_services();
    tokio::time::sleep(LONG_ENOUGH).await;
    let emptied = outcome::describe(&stage.world);
    assert!(stage.world.cloud.leaked_ports().is_empty(), "ports of load balancers are left");
    assert_eq!(
        stage.world.cloud.load_balancers().len(),
        1,
        "only the load balancer of somebody else is left"
    );
    stage.world.stop().await;
    (edited, emptied)
}

fn alone(work: impl Future<Output = Ends>) -> Ends {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

fn run(seed: u64) {
    let story = Story::of(&mut Rng::with_seed(seed));
    let calm = alone(tell(&story, None));
    let rough = alone(tell(&story, Some(Trouble::of(Rng::with_seed(!seed)))));
    for (what, calm, rough) in [("edits", &calm.0, &rough.0), ("deletion", &calm.1, &rough.1)] {
        let difference = outcome::difference(calm, rough);
        assert!(
            difference.is_empty(),
            "after the {what} of {story:#?}\n- calm\n+ under faults\n{difference}"
        );
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn faults_and_kills_change_no_end() {
    let seeds = match number("FAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FAULT_RUNS").unwrap_or(SHORT),
    };
    for seed in seeds {
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            let text = cause.downcast_ref::<String>().map_or("it says no more", String::as_str);
            panic!("FAULT_SEED={seed}: {text}");
        }
    }
}
