//! The workflows of the forge: they do nothing that a machine at hand cannot do.

use serde_json::Value;

use crate::commands::targets;
use crate::pages::{read, repository};

/// The steps of all jobs of all workflows, with the name of the file.
fn steps() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(repository().join(".github/workflows")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let workflow: Value = serde_saphyr::from_str(&read(&format!(".github/workflows/{name}"))).unwrap();
        for job in workflow["jobs"].as_object().unwrap().values() {
            found.extend(job["steps"].as_array().unwrap().iter().map(|step| (name.clone(), step.clone())));
        }
    }
    assert!(found.len() > 10);
    found
}

#[test]
fn every_step_of_a_workflow_is_a_target_of_make() {
    let makefile = read("Makefile");
    let targets = targets(&makefile);
    for (name, step) in steps() {
        let Some(command) = step["run"].as_str() else { continue };
        let target = command.strip_prefix("make ").and_then(|rest| rest.split_whitespace().next());
        assert!(target.is_some_and(|target| targets.contains(target)), "{name}: {command}");
        assert!(!command.contains("${{"), "{name}: {command}: what others choose is no part of a command");
    }
}

#[test]
fn every_action_of_a_workflow_is_pinned_to_a_commit() {
    for (name, step) in steps() {
        let Some(action) = step["uses"].as_str() else { continue };
        let commit = action.split_once('@').map_or("", |(_, commit)| commit);
        assert!(commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{name}: {action}");
    }
}

#[test]
fn every_folder_whose_dependencies_are_kept_up_to_date_exists() {
    let configuration: Value = serde_saphyr::from_str(&read(".github/dependabot.yml")).unwrap();
    for update in configuration["updates"].as_array().unwrap() {
        let several = update["directories"].as_array().cloned().unwrap_or_default();
        for folder in several.iter().chain(update.get("directory")) {
            let folder = folder.as_str().unwrap();
            assert!(repository().join(folder.trim_start_matches('/')).is_dir(), "{folder}");
        }
    }
}

#[test]
fn who_is_asked_to_review_is_who_the_page_of_maintainers_names() {
    let (owners, page) = (read(".github/CODEOWNERS"), read("MAINTAINERS.md"));
    let rules = owners.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let asked: Vec<&str> = rules.flat_map(|rule| rule.split_whitespace().skip(1)).collect();
    assert!(!asked.is_empty());
    for name in asked {
        assert!(page.contains(&format!("[{name}]")), "{name} is not in MAINTAINERS.md");
    }
}
