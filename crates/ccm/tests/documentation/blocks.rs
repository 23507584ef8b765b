//! Examples can be read by what they are meant for.

use openstack_ccm_provider_openstack::config::{self, ProcessEnvironment};
use serde_json::Value;

use crate::pages::{pages, read};

#[test]
fn yaml_and_json_can_be_parsed() {
    for page in pages() {
        for block in &page.blocks {
            let parts: Vec<&str> = match block.language.as_str() {
                "yaml" | "json" => block.text.split("\n---\n").collect(),
                _ => continue,
            };
            for part in parts {
                if let Err(error) = serde_saphyr::from_str::<Value>(part) {
                    panic!("{}: {error}\n{part}", page.path);
                }
            }
        }
    }
}

#[test]
fn every_block_says_its_language() {
    for page in pages().iter().filter(|page| page.path.starts_with("docs/") || page.path == "README.md") {
        for block in &page.blocks {
            assert!(!block.language.is_empty(), "{}:\n{}", page.path, block.text);
        }
    }
}

#[test]
fn every_key_of_a_cloud_conf_example_is_in_the_reference() {
    let reference = read("docs/reference/cloud-conf.md");
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.language == "ini") {
            let mut section = String::new();
            for line in block.text.lines().map(str::trim) {
                if let Some(name) = line.strip_prefix('[') {
                    section = name.split([' ', ']']).next().unwrap().to_owned();
                } else if let Some((key, _)) = line.split_once('=') {
                    let row = format!("| `{}` |", key.trim());
                    let heading = format!("\n## [{section}");
                    let part = reference
                        .split(&heading)
                        .nth(1)
                        .unwrap_or_else(|| panic!("{}: [{section}]", page.path));
                    let part = part.split("\n## ").next().unwrap();
                    assert!(part.contains(&row), "{}: [{section}] has no key {}", page.path, key.trim());
                }
            }
        }
    }
}

#[test]
fn every_whole_cloud_conf_example_is_accepted_without_a_warning() {
    let mut whole = 0;
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.language == "ini") {
            if !block.text.contains("auth-url") {
                continue;
            }
            whole += 1;
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("cloud.conf");
            std::fs::write(&file, &block.text).unwrap();
            match config::load(&[file], &ProcessEnvironment) {
                Ok(loaded) => {
                    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
                    assert!(warnings.is_empty(), "{}: {warnings:?}", page.path);
                }
                Err(errors) => panic!("{}: {errors}", page.path),
            }
        }
    }
    assert!(whole >= 3, "{whole} examples");
}

/// A misspelt `run` would leave commands untested.
#[test]
fn every_word_behind_a_fence_is_one_that_the_tests_know() {
    for page in pages() {
        for block in &page.blocks {
            let known =
                block.is("run") || block.is("run=log") || block.file().is_some_and(|name| !name.is_empty());
            assert!(block.attributes.is_empty() || known, "{}: {:?}", page.path, block.attributes);
        }
    }
}
