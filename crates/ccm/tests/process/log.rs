//! What is written when something fails: the cause, in the format that was asked for.

use serde_json::Value;

use crate::process::Process;
use crate::stage::{Stage, free_port, until};

/// Leads the program to an API server that is not there.
fn without_kubernetes(stage: &Stage) -> String {
    let server = format!("http://127.0.0.1:{}", free_port());
    let kubeconfig = std::fs::read_to_string(stage.file("kubeconfig")).unwrap();
    let known = kubeconfig.split_whitespace().find(|word| word.contains("http://")).unwrap();
    let known = known.trim_matches(|letter| "\"{},".contains(letter));
    std::fs::write(stage.file("kubeconfig"), kubeconfig.replace(known, &server)).unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_out_of_reach_is_named_with_the_cause_once_and_without_advice_about_rights() {
    let stage = Stage::new().await;
    let server = without_kubernetes(&stage);
    let process = Process::start(&stage, "ccm", &[]);
    let tries = || process.output().matches("check=kubernetes").count();
    until("it has tried twice", || tries() >= 2).await;
    let (tries, output) = (tries(), process.output());
    let message = format!("the API server {server} cannot be reached: ");
    assert_eq!(output.matches(&message).count(), tries, "{output}");
    assert!(output.to_lowercase().matches("connection refused").count() <= tries, "{output}");
    for noise in ["ServiceError", "extension-apiserver-authentication-reader", "client error"] {
        assert!(!output.contains(noise), "{noise} in {output}");
    }
    let (status, body) = process.until_answers("/readyz").await;
    assert_eq!(status, 500);
    assert!(body.contains("[-]kubernetes failed: ") && body.contains(&message), "{body}");
}

/// Every line of the output, as JSON.
fn records(output: &str) -> Vec<Value> {
    let record = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    output.lines().map(record).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_a_json_log_is_a_record_with_the_keys_of_kubernetes() {
    let stage = Stage::new().await;
    let mut process = Process::start(&stage, "ccm", &["--logging-format=json", "--v=4"]);
    process.until_ready().await;
    stage.serve("web").await;
    process.stops().await;
    let records = records(&process.output());
    assert!(records.len() > 5, "{records:#?}");
    for record in &records {
        assert!(record["ts"].is_number() && record["msg"].is_string(), "{record}");
        assert!(["error", "warn", "info", "debug"].contains(&record["level"].as_str().unwrap()), "{record}");
    }
    assert!(
        records.iter().any(|record| record["msg"] == "became leader" && record["v"] == 0),
        "{records:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_end_the_program_are_records_as_well() {
    let stage = Stage::new().await;
    for (arguments, named) in [
        (&["--logging-format=json", "--cloud-config=/nowhere"][..], "/nowhere"),
        (&["--logging-format", "json", "--controllers=foo", "--cloud-config=x"], "foo"),
        (&["--no-such-flag", "--logging-format=json"], "--no-such-flag"),
    ] {
        let (status, output) = Process::run(&stage, arguments);
        assert!(!status.success(), "{output}");
        let records = records(&output);
        let last = records.last().unwrap();
        assert_eq!(last["level"], "error", "{output}");
        assert!(last["err"].as_str().unwrap().contains(named), "{output}");
    }
}
