//! The simulator against recorded answers of the real services: every exchange is sent again, in file order, and the answer must
//! have the same status, headers, keys, values and texts, with ids and addresses mapped as they appear.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what it expects by panicking, its helpers too"
)]

mod compare;
mod names;
mod replay;
mod scenario;

use rstest::rstest;

use replay::Replay;

#[rstest]
#[case::discovery("discovery")]
#[case::identity("identity")]
#[case::lifecycle("lifecycle")]
#[case::full("full")]
#[case::leaks("leaks")]
#[case::variants("variants")]
#[case::quotas("quotas")]
#[case::network("network")]
#[case::tls("tls")]
#[case::compute("compute")]
#[tokio::test(start_paused = true)]
async fn recorded_exchanges_get_the_same_answers(#[case] file: &str) {
    let mut replay = Replay::new(file);
    replay.run().await;
    let differences = replay.differences();
    assert!(
        differences.is_empty(),
        "{file}: {} of {} exchanges differ\n{}",
        differences.len(),
        replay.exchanges(),
        differences.join("\n")
    );
}

#[test]
fn exceptions_name_exchanges_that_exist() {
    let names: Vec<String> = ["discovery", "identity", "variants", "network"]
        .into_iter()
        .flat_map(|file| replay::load(file).into_iter().map(|exchange| exchange.name))
        .collect();
    for (name, reason) in scenario::NOT_SIMULATED.iter().chain(scenario::SHAPE_ONLY) {
        assert!(names.iter().any(|known| known == name), "no exchange is called {name:?} ({reason})");
    }
}
