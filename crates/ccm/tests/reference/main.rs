//! The generated pages of the reference are what the program does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod calls;
mod clouds;
mod drop_in;
mod events;
mod flags;
#[path = "../occm/mod.rs"]
mod occm;
mod page;
mod readme;
mod released;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Compares a page with what is stored, or stores it.
fn compare(name: &str, page: &str) {
    let path = repository("docs/reference").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == page, "docs/reference/{name} is out of date; regenerate it with `make docs`");
}

#[test]
fn the_page_of_clouds_is_up_to_date() {
    compare("../overlay/clouds.md", &clouds::markdown());
}

#[test]
fn the_policy_of_the_chart_is_up_to_date() {
    compare("../../charts/ip-mode-overlay/files/policy.json", &openstack_ccm_overlay::policy::chart_parts());
}

#[test]
fn the_page_of_calls_is_up_to_date() {
    compare("openstack-calls.md", &calls::markdown());
}

#[test]
fn the_page_of_findings_is_up_to_date() {
    let page = openstack_ccm_doctor::code::markdown();
    compare("findings.md", &format!("{}\n\n{page}", page::GENERATED));
}

#[test]
fn the_page_of_flags_is_up_to_date() {
    compare("flags.md", &flags::markdown());
}

#[test]
fn what_the_page_says_is_said_once_are_warnings_of_it() {
    for reason in events::ONCE {
        let row = events::REASONS.iter().find(|event| event.reason == *reason);
        assert_eq!(row.map(|event| event.severity), Some("Warning"), "{reason}");
    }
}

/// Alerts, scripts and dashboards that were made with a release name it.
#[test]
fn what_a_release_had_is_still_on_the_pages() {
    let pages = ["flags.md", "events.md", "metrics.md"]
        .map(|name| std::fs::read_to_string(repository("docs/reference").join(name)).unwrap());
    for (name, version) in released::all() {
        let is_there =
            |page: &String| [format!("`{name}`"), format!("`{name}=")].iter().any(|cell| page.contains(cell));
        assert!(pages.iter().any(is_there), "{name}, which {version} has");
    }
}

/// Without its lines, what a release brings would be marked as not released.
#[test]
fn the_last_release_is_in_the_list_of_what_is_released() {
    let recorded = std::fs::read_to_string(repository("release/versions.toml")).unwrap();
    let last = recorded.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
    assert!(
        released::all().any(|(_, version)| format!("{version:?}") == last),
        "add to crates/ccm/tests/reference/released.txt what came with {last}: the pages mark it"
    );
}

/// Alerts and habits of those who come from OCCM look for its Events.
#[test]
fn every_event_of_occm_is_on_the_page() {
    for reason in occm::all("events").keys() {
        assert!(events::REASONS.iter().any(|event| event.reason == reason), "{reason}");
    }
}

/// Who compares asks for rights by the version of a chart.
#[test]
fn what_pages_say_of_the_rights_of_occm_is_of_charts_that_had_them() {
    let newest = occm::releases().pop().unwrap();
    for right in [
        "secrets list",
        "configmaps list",
        "endpoints list",
        "persistentvolumes *",
        "serviceaccounts/token create",
        "nodes *",
    ] {
        let within = occm::all("rights")[&format!("ClusterRole {right}")]["in"].as_str().unwrap();
        assert!(within.ends_with(newest), "{right}: {within}");
    }
    let announced = occm::announced()["rights"]["ClusterRole nodes get"]["chart"].as_str();
    let chart =
        announced.expect("the chart that asks for less; if a recorded release has it, read it from there");
    for page in ["docs/reference/rbac.md", "docs/guides/migrate-from-occm.md"] {
        let text = std::fs::read_to_string(repository(page)).unwrap();
        assert!(
            text.to_lowercase().contains(&format!("before its chart {chart}")),
            "{page} does not name {chart}"
        );
    }
}

/// Dashboards made for OCCM read its metrics.
#[test]
fn every_metric_of_occm_is_on_the_page() {
    let page = std::fs::read_to_string(repository("docs/reference/metrics.md")).unwrap();
    let controllers =
        ["cloud_node_lifecycle_controller_", "node_controller_", "route_controller_", "service_controller_"];
    let of_framework = occm::framework()["metrics"].as_object().unwrap().keys();
    let of_controllers =
        of_framework.filter(|name| controllers.iter().any(|controller| name.starts_with(controller)));
    assert!(of_controllers.clone().count() > 8);
    for name in occm::all("metrics").keys().chain(of_controllers) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

/// Sources of the crates that write Events.
fn sources() -> Vec<String> {
    let mut sources = Vec::new();
    let crates = ["core", "runtime", "advertise", "controllers", "provider-openstack"];
    let mut folders: Vec<_> = crates.map(|name| repository(&format!("crates/{name}/src"))).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    sources
}

/// The first argument of each `Notice::normal(` and `Notice::warning(`, with constants of the same file resolved.
fn reasons(source: &str) -> impl Iterator<Item = String> {
    let calls = ["Notice::normal(", "Notice::warning("];
    let arguments = calls.into_iter().flat_map(move |call| source.split(call).skip(1));
    arguments.filter_map(move |rest| {
        let argument = rest.split(',').next()?.trim();
        let constant = format!("const {argument}: &str = \"");
        let literal = match argument.strip_prefix('"') {
            Some(literal) => literal,
            None => source.split_once(&constant)?.1,
        };
        literal.split('"').next().map(str::to_owned)
    })
}

#[test]
fn the_page_of_events_is_up_to_date_and_knows_every_reason() {
    let sources = sources();
    let used: BTreeSet<String> = sources.iter().flat_map(|source| reasons(source)).collect();
    assert!(used.len() > 20, "{used:?}");
    for reason in &used {
        assert!(
            events::REASONS.iter().any(|event| event.reason == reason),
            "say in crates/ccm/tests/reference/events.rs what {reason} means"
        );
    }
    let quoted = |reason: &str| sources.iter().any(|source| source.contains(&format!("\"{reason}\"")));
    compare("events.md", &events::markdown(quoted));
}
