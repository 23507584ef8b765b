//! `doctor`, `plan` and `status` say the same of an address.

use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use super::breaks::{Break, Part, of_part};
use super::stage::{Kind, Stage};
use super::verdict::{codes, diagnose};

/// What a subcommand writes for programs.
async fn written(words: &'static [&'static str], flags: Vec<String>) -> Value {
    let run = tokio::task::spawn_blocking(move || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_openstack-ccm"));
        program.args(words).args(["-o", "json"]).args(flags).output().unwrap()
    });
    let output = run.await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let start = text.find('{').unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&text[start..]).unwrap()
}

/// The addresses and hostnames of a list of entries.
fn places(entries: &Value) -> Vec<String> {
    let entries = entries.as_array().into_iter().flatten();
    entries
        .filter_map(|entry| entry["ip"].as_str().or(entry["hostname"].as_str()).map(str::to_owned))
        .collect()
}

/// What the plan makes of the status, where it changes it.
fn planned(plan: &Value) -> Option<Vec<String>> {
    let subjects = plan["subjects"].as_array().unwrap();
    let web = subjects.iter().find(|subject| subject["subject"] == "default/web")?;
    let changes = web["changes"].as_array().into_iter().flatten();
    let status = changes.into_iter().find(|change| change["kind"] == "status")?;
    Some(places(&status["after"]["ingress"]))
}

/// What contradicts what.
async fn contradictions(stage: &Stage) -> Vec<String> {
    let doctor = diagnose(stage).await.unwrap();
    let flags = stage.flags().to_vec();
    let plan = written(&["plan", "default/web"], flags.clone()).await;
    let kubeconfig: Vec<String> = flags.into_iter().filter(|flag| flag.starts_with("--kubeconfig")).collect();
    let status = written(&["status"], kubeconfig).await;

    let published = places(&stage.web()["status"]["loadBalancer"]["ingress"]);
    let text = doctor.to_string();
    let knows = ["openstack-ccm would publish", r#""field":"would publish""#]
        .iter()
        .any(|words| text.contains(words));
    let mut found = Vec::new();
    if let Some(after) = planned(&plan) {
        // Which address comes in place of one that is gone, only the cloud will know.
        let is_said = knows || (after.is_empty() && text.contains("D509"));
        if after != published && !is_said && !published.is_empty() {
            found.push(format!(
                "plan publishes {after:?} in place of {published:?}, doctor says nothing of it"
            ));
        }
        for place in after.iter().filter(|place| text.contains(&format!("{place} is not"))) {
            found.push(format!(
                "plan publishes {place}, and doctor says that it is wrong: {:?}",
                codes(&doctor)
            ));
        }
    } else if knows {
        found.push(format!("doctor knows of another status, and plan does not: {:?}", codes(&doctor)));
    }
    let web = status["services"].as_array().unwrap().iter().find(|service| service["name"] == "web").unwrap();
    if (web["published"] == "no address") != published.is_empty() {
        found.push(format!("status says {web}"));
    }
    let is_unpublished = text.contains("D206");
    if is_unpublished != published.is_empty() {
        found.push(format!("{published:?} is published, and doctor says {:?}", codes(&doctor)));
    }
    found
}

#[rstest]
#[case::proxy(Kind::Proxy)]
#[case::hostname(Kind::Hostname)]
#[tokio::test(start_paused = true)]
async fn doctor_plan_and_status_agree_about_addresses(#[case] kind: Kind) {
    let stage = Stage::of(kind).await;
    let mut found = contradictions(&stage).await;
    assert_eq!(found, [""; 0], "healthy");
    let breaks = [Part::Published, Part::Floating].into_iter().flat_map(of_part);
    for Break { name, does, .. } in breaks.filter(|one| (one.fits)(kind)) {
        stage.heal();
        does(&stage);
        found.extend(contradictions(&stage).await.into_iter().map(|text| format!("{name}: {text}")));
    }
    assert!(found.is_empty(), "{}", json!(found));
}
