//! Commands of the pages: targets of make, values of the chart, files.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::pages::{pages, read, repository};

/// The targets of a Makefile.
pub(crate) fn targets(makefile: &str) -> BTreeSet<&str> {
    let rules = makefile.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    rules
        .filter_map(|line| line.split_once(':'))
        .flat_map(|(targets, _)| targets.split_whitespace())
        .collect()
}

#[test]
fn every_target_of_make_that_a_page_names_exists() {
    let makefile = read("Makefile");
    let targets = targets(&makefile);
    for page in pages() {
        for text in page.code() {
            let Some(rest) = text.trim().trim_start_matches("$ ").strip_prefix("make ") else { continue };
            let target = rest.split_whitespace().next().unwrap();
            assert!(targets.contains(target), "{}: make {target}", page.path);
        }
    }
}

#[test]
fn every_value_of_the_chart_that_a_command_sets_exists() {
    let schema: Value = serde_json::from_str(&read("charts/openstack-ccm/values.schema.json")).unwrap();
    for page in pages() {
        for block in &page.blocks {
            let text = block.text.replace("\\\n", " ");
            for line in text.lines().filter(|line| line.contains("charts/openstack-ccm")) {
                let words: Vec<&str> = line.split_whitespace().collect();
                for pair in words.windows(2).filter(|pair| pair[0].starts_with("--set")) {
                    let path = pair[1].split('=').next().unwrap();
                    let mut place = &schema;
                    for key in path.split('.') {
                        place = &place["properties"][key];
                    }
                    assert!(!place.is_null(), "{}: the chart has no value {path}", page.path);
                }
            }
        }
    }
}

#[test]
fn every_file_that_a_command_takes_from_the_repository_exists() {
    for page in pages() {
        for word in page.code().flat_map(str::split_whitespace) {
            let word = word.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | ','));
            let of_repository = ["charts/", "image/", "manifests/", "crates/", "docs/"];
            if of_repository.iter().any(|folder| word.starts_with(folder))
                && word.is_ascii()
                && !word.contains('{')
            {
                assert!(repository().join(word).exists(), "{}: {word}", page.path);
            }
        }
    }
}
