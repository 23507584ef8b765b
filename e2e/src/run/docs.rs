//! Writes what a run has seen into the sources.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::artifacts::source;
use crate::machine::say;
use crate::report::Report;
use crate::scenario::Group;
use crate::truth::recorded_file;

/// The page for users.
const PAGE: &str = "../docs/explanation/end-to-end.md";
/// The page that says what it runs with.
const VERSIONS: &str = "../docs/reference/versions.md";
/// The page with everything.
const ALL: &str = "CASES.md";
/// Longest cell of it.
const CELL: usize = 160;
const CASES: &str = "<!-- begin: written by `make e2e E2E_ARGS=--record` -->";
const COSTS: &str = "<!-- begin: calls, written by `make e2e E2E_ARGS=--record` -->";
const BESIDE_OCCM: &str =
    "<!-- begin: calls beside OCCM, written by `make e2e E2E_ARGS='--only beside-occm --record'` -->";
const TESTED: &str = "<!-- begin: tested with, written by `make e2e E2E_ARGS=--record` -->";
/// The page about gateways.
const GATEWAYS: &str = "../docs/reference/gateways.md";
const BY_GATEWAY: &str = "<!-- begin: gateways, written by `make e2e E2E_ARGS=--record` -->";
const END: &str = "<!-- end -->";

/// Keeps the answers of the real APIs, what changes cost where that was measured, and the table of all cases if all groups were run.
pub(crate) fn record(report: &Report, run: &Path, all: bool) -> Result<()> {
    for world in std::fs::read_dir(run)? {
        let world = world?.path();
        if !world.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&world)? {
            let file = file?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name == crate::scenario::gateways::TABLE {
                replace(
                    GATEWAYS,
                    BY_GATEWAY,
                    &format!("Seen on {}:\n\n{}", today()?, std::fs::read_to_string(&file)?),
                )?;
            }
            if let Some(name) = name.strip_prefix("recorded-").and_then(|name| name.strip_suffix(".json")) {
                std::fs::copy(&file, recorded_file(name))?;
            }
        }
    }
    if let Some(costs) = report.costs() {
        replace(ALL, COSTS, &costs)?;
    }
    if let Some(costs) = report.costs_beside_occm() {
        replace(PAGE, BESIDE_OCCM, &costs)?;
    }
    if !all {
        say("the table of all cases is written only by a run of all groups");
        return Ok(());
    }
    replace(ALL, CASES, &report.table(Some(CELL)))
}

/// Writes what groups of a run have been run with, each with the number of its cases. Rows of what this run had nothing of stay.
pub(crate) fn record_versions(groups: &[(&Group, usize)]) -> Result<()> {
    let page = std::fs::read_to_string(source(VERSIONS))?;
    let (_, rest) = page.split_once(TESTED).context("the page has no table of versions")?;
    let (known, _) = rest.split_once(END).context("the table of versions has no end")?;
    replace(VERSIONS, TESTED, &versions(known, groups, &today()?))
}

fn today() -> Result<String> {
    let date = crate::machine::process::run(std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    Ok(date.trim().to_owned())
}

fn versions(known: &str, groups: &[(&Group, usize)], date: &str) -> String {
    let mut rows: BTreeMap<String, String> = known
        .lines()
        .filter_map(|line| Some((line.strip_prefix("| ")?.split_once(" |")?.0.to_owned(), line.to_owned())))
        .filter(|(name, _)| name.starts_with("OpenStack") || name.starts_with("Kubernetes"))
        .collect();
    let mut ran: BTreeMap<String, (usize, Vec<&str>)> = BTreeMap::new();
    for (group, cases) in groups {
        let minors = group.needs.iter().map(|minor| format!("Kubernetes {}", minor.text()));
        for name in minors.chain([format!("OpenStack {}", group.release.name())]) {
            let (sum, names) = ran.entry(name).or_default();
            *sum += cases;
            names.push(group.name);
        }
    }
    for (name, (cases, groups)) in ran {
        let groups = groups.iter().map(|group| format!("`{group}`")).collect::<Vec<_>>().join(", ");
        rows.insert(name.clone(), format!("| {name} | {cases} | {groups} | {date} |"));
    }
    let head = "| With | Cases | Groups of the end-to-end tests | Last run |\n| --- | ---: | --- | --- |";
    [head.to_owned()].into_iter().chain(rows.into_values()).collect::<Vec<_>>().join("\n")
}

/// Writes another table into a page.
fn replace(page: &str, mark: &str, table: &str) -> Result<()> {
    let page = source(page);
    let text = with_table(&std::fs::read_to_string(&page)?, mark, table)?;
    Ok(std::fs::write(page, text)?)
}

/// The page with another table between a mark and the end that follows it.
fn with_table(page: &str, mark: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(mark).with_context(|| format!("the page has no mark {mark}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the page has no mark {END}"))?;
    Ok(format!("{before}{mark}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_of_the_page_changes() {
        let page = format!("# Title\n\n{COSTS}\nold\n{END}\n\n{CASES}\nold\n{END}\n\nMore.\n");
        let written = with_table(&page, CASES, "| new |").unwrap();
        assert_eq!(written, format!("# Title\n\n{COSTS}\nold\n{END}\n\n{CASES}\n| new |\n{END}\n\nMore.\n"));
    }

    #[test]
    fn a_run_of_some_groups_leaves_the_rows_of_others() {
        let known = "\n| With | Cases |\n| --- | --- |\n| Kubernetes 1.28 | 3 | `old` | 2026-01-01 |\n| OpenStack yoga | 9 | `x` | 2026-01-01 |\n";
        let group = crate::scenario::GROUPS.iter().find(|group| group.name == "old").unwrap();
        let written = versions(known, &[(group, 7)], "2026-02-02");
        let rows: Vec<&str> = written.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| Kubernetes 1.28 | 7 | `old` | 2026-02-02 |",
                "| OpenStack 2026.2 | 7 | `old` | 2026-02-02 |",
                "| OpenStack yoga | 9 | `x` | 2026-01-01 |",
            ]
        );
    }

    #[test]
    fn the_pages_have_their_marks() {
        for (page, mark) in
            [(ALL, CASES), (ALL, COSTS), (PAGE, BESIDE_OCCM), (VERSIONS, TESTED), (GATEWAYS, BY_GATEWAY)]
        {
            let page = std::fs::read_to_string(source(page)).unwrap();
            assert!(with_table(&page, mark, "").is_ok(), "{mark}");
        }
    }
}
