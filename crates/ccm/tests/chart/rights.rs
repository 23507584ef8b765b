//! The rights of the program: what docs/reference/rbac.md states is what the chart grants.

use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::Value;

use crate::helm::{Objects, Release, read, strings};

/// Role, API group, resource, verb, names.
type Right = (String, String, String, String, String);

fn granted(objects: &Objects) -> BTreeSet<Right> {
    let roles = objects.all("ClusterRole").chain(objects.all("Role"));
    roles.flat_map(|role| rules(role).into_iter()).collect()
}

fn rules(role: &Value) -> Vec<Right> {
    let mut rights = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                for verb in strings(&rule["verbs"]) {
                    let kind = role["kind"].as_str().unwrap().to_owned();
                    let names = strings(&rule["resourceNames"]).join(", ");
                    rights.push((kind, group.clone(), resource.clone(), verb, names));
                }
            }
        }
    }
    rights
}

/// The rows of the table: role, group, resources, names, verbs, and more.
fn documented(page: &str) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| ClusterRole |") || line.starts_with("| Role |"))
    {
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        for group in cells[2].split(", ") {
            let group = if group == "core" { "" } else { group };
            for verb in cells[5].split(", ") {
                rights.insert((
                    cells[1].clone(),
                    group.to_owned(),
                    cells[3].clone(),
                    verb.to_owned(),
                    cells[4].clone(),
                ));
            }
        }
    }
    rights
}

#[test]
fn the_page_states_exactly_what_the_chart_grants() {
    let Some(objects) = Release::new().objects() else { return };
    assert_eq!(documented(&read("docs/reference/rbac.md")), granted(&objects));
}

#[rstest]
#[case::only_services("service", &["services/status"], &["nodes/status"])]
#[case::only_nodes("cloud-node", &["nodes/status"], &["services"])]
#[case::only_lifecycle("cloud-node-lifecycle", &[], &["services", "nodes/status"])]
#[case::only_routes("route", &["nodes/status"], &["services"])]
fn a_controller_that_does_not_run_has_no_rights(
    #[case] controller: &str,
    #[case] needed: &[&str],
    #[case] not_needed: &[&str],
) {
    let release = Release::new().set(&format!("enabledControllers={{{controller}}}"));
    let Some(objects) = release.objects() else { return };
    let resources: BTreeSet<String> = granted(&objects).into_iter().map(|right| right.2).collect();
    for resource in needed {
        assert!(resources.contains(*resource), "{resource}");
    }
    for resource in not_needed {
        assert!(!resources.contains(*resource), "{resource}");
    }
}

#[rstest]
#[case::all("enabledControllers={*}", true)]
#[case::all_but_one("enabledControllers={*,-cloud-node-lifecycle}", false)]
#[case::long_name("enabledControllers={cloud-node-lifecycle-controller}", true)]
#[case::further_argument("extraArgs={--controllers=*}", true)]
#[case::without("enabledControllers={service}", false)]
fn the_right_to_delete_nodes_follows_the_lifecycle_controller(#[case] setting: &str, #[case] has_it: bool) {
    let Some(objects) = Release::new().set(setting).objects() else { return };
    let deletes = granted(&objects).iter().any(|right| right.2 == "nodes" && right.3 == "delete");
    assert_eq!(deletes, has_it);
}

/// Tokens of other accounts are asked for only where each controller is to have its own, and only of those.
#[rstest]
#[case::without("extraArgs={--v=2}", &[])]
#[case::switched_off("extraArgs={--use-service-account-credentials=false}", &[])]
#[case::switched_on("extraArgs={--use-service-account-credentials}", &["node-controller, route-controller, service-controller"])]
#[case::switched_on_with_value("extraArgs={--use-service-account-credentials=true}", &["node-controller, route-controller, service-controller"])]
fn tokens_of_accounts_follow_the_flag(#[case] setting: &str, #[case] expected: &[&str]) {
    let Some(objects) = Release::new().set(setting).objects() else { return };
    let names: Vec<String> = granted(&objects)
        .into_iter()
        .filter(|right| right.2 == "serviceaccounts/token" && right.3 == "create" && right.0 == "Role")
        .map(|right| right.4)
        .collect();
    assert_eq!(names, expected);
}

#[test]
fn nothing_is_granted_on_secrets_or_on_everything() {
    for values in ["everything.yaml", "occm-documented.yaml"] {
        let Some(objects) = Release::new().values(values).objects() else { return };
        for (role, group, resource, verb, _) in granted(&objects) {
            assert!(
                resource != "secrets" && resource != "*" && verb != "*" && group != "*",
                "{role} {resource} {verb}"
            );
        }
    }
}
