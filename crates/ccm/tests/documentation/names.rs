//! Annotations, flags, Events and metrics that a page names.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory as _;
use openstack_ccm::command_line::CommandLine;
use openstack_ccm_provider_openstack::load_balancer::annotations::ALL;

use crate::pages::{repository, written_pages};
use crate::writes::PACKAGES;

/// Programs whose flags are their own.
const OTHER_PROGRAMS: [&str; 15] = [
    "kubectl",
    "helm",
    "curl",
    "make",
    "cargo",
    "podman",
    "skopeo",
    "kubelet ",
    "ctr",
    "openstack ",
    "image/build.py",
    "base64",
    "sed",
    "cosign",
    "UPDATE_",
];

fn is_part_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/')
}

#[test]
fn every_annotation_that_a_page_names_exists() {
    let known: BTreeSet<&str> = ALL.iter().map(|annotation| annotation.key).collect();
    for page in written_pages() {
        for text in page.code() {
            for word in text.split(|c| !is_part_of_a_name(c)) {
                // With a dash behind its name, kubectl removes an annotation.
                let word = word.strip_suffix('-').unwrap_or(word);
                let named =
                    word.strip_prefix("loadbalancer.openstack.org/").is_some_and(|name| !name.is_empty());
                assert!(!named || known.contains(word), "{}: {word}", page.path);
            }
        }
    }
}

/// Events, findings and hints lead nowhere if they advise what nobody reads.
#[test]
fn field_56_no_text_of_the_program_advises_an_annotation_that_does_not_exist() {
    let known: BTreeSet<&str> = ALL.iter().map(|annotation| annotation.key).collect();
    let mut unknown = BTreeSet::new();
    for package in PACKAGES {
        let mut sources = String::new();
        gather_texts(&repository().join(format!("crates/{package}/src")), &mut sources);
        for word in sources.split(|c| !is_part_of_a_name(c)) {
            let word = word.trim_end_matches(['-', '.']);
            let is_named =
                word.strip_prefix("loadbalancer.openstack.org/").is_some_and(|name| !name.is_empty());
            if is_named && !known.contains(word) {
                unknown.insert(format!("{package}: {word}"));
            }
        }
    }
    assert!(unknown.is_empty(), "no such annotations: {unknown:#?}");
}

/// The sources in a folder, as far as they are no tests.
pub(crate) fn gather_texts(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            gather_texts(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            text.push_str(source.split("#[cfg(test)]").next().unwrap_or_default());
        }
    }
}

/// Flags in a text: words that begin with two dashes, and a letter behind them.
pub(crate) fn flags(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | ',' | '='))
        .filter_map(|word| word.strip_prefix("--"))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        .map(|name| name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

/// Flags of the program and its subcommands.
pub(crate) fn known_flags() -> BTreeSet<String> {
    let command = CommandLine::command();
    let below = command.get_subcommands().flat_map(clap::Command::get_subcommands);
    let of_subcommands = command.get_subcommands().chain(below).flat_map(clap::Command::get_arguments);
    let all = command.get_arguments().chain(of_subcommands);
    let mut names: BTreeSet<String> = all.filter_map(|flag| flag.get_long().map(str::to_owned)).collect();
    names.extend(["help".to_owned(), "version".to_owned()]);
    names
}

#[test]
fn every_flag_that_a_page_names_exists() {
    let known = known_flags();
    let mut unknown = Vec::new();
    for page in written_pages().iter().filter(|page| is_about_the_program(&page.path)) {
        for span in page.spans().filter(|span| !of_another_program(span)) {
            unknown.extend(missing(&page.path, span, &known));
        }
        for block in page.blocks.iter().filter(|block| matches!(block.language.as_str(), "sh" | "console")) {
            // A backslash continues the line, and with it the program.
            for line in block.text.replace("\\\n", " ").lines().filter(|line| !of_another_program(line)) {
                unknown.extend(missing(&page.path, line, &known));
            }
        }
    }
    assert!(unknown.is_empty(), "no such flags: {unknown:#?}");
}

/// Decisions, the changelog and the pages on tests also speak of the tests' own programs.
fn is_about_the_program(path: &str) -> bool {
    let folders = ["README.md", "docs/README.md", "docs/tutorials/", "docs/guides/", "docs/reference/"];
    folders.iter().any(|folder| path.starts_with(folder)) || path == "docs/explanation/advertising.md"
}

pub(crate) fn of_another_program(text: &str) -> bool {
    // Flags that values of other programs are about stand alone in the text.
    let of_build = ["--ca-bundle", "--architecture", "--connect-to", "--reuse-values", "--keep"];
    OTHER_PROGRAMS.iter().any(|program| text.contains(program))
        || of_build.iter().any(|flag| text.starts_with(flag))
}

fn missing(page: &str, text: &str, known: &BTreeSet<String>) -> Vec<String> {
    let unknown = flags(text).filter(|name| !known.contains(*name));
    unknown.map(|name| format!("{page}: --{name}")).collect()
}

#[test]
fn every_event_and_metric_that_a_page_names_exists() {
    let mut sources = String::new();
    for package in PACKAGES {
        gather(&repository().join(format!("crates/{package}/src")), &mut sources);
    }
    // A test compares this page with what the program says.
    let metrics = std::fs::read_to_string(repository().join("docs/reference/metrics.md")).unwrap();
    for page in written_pages() {
        for span in page.spans() {
            let name = span.split(['{', ' ']).next().unwrap();
            let event = name.contains("LoadBalancer") && name.chars().all(|c| c.is_ascii_alphanumeric());
            let metric = name.starts_with("openstack_ccm_") || name.starts_with("openstack_api_");
            if event || metric {
                let family = name.trim_end_matches("_total");
                let known = if metric { &metrics } else { &sources };
                assert!(known.contains(family), "{}: {name}", page.path);
            }
        }
    }
}

fn gather(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}
