//! Writes what a run has seen into the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::artifacts::source;
use crate::report::{Finding, Report, table};
use crate::scenario::{GROUPS, Group};
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

/// A group that went well, and what was seen.
pub(crate) type Seen<'a> = (&'a Group, &'a [Finding]);

/// Keeps the answers of the real APIs, and what changes cost where that was measured.
pub(crate) fn record(report: &Report, run: &Path) -> Result<()> {
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
    Ok(())
}

/// Writes what was seen in groups: their cases, and what they have been run with. What is known of other groups stays.
pub(crate) fn record_groups(groups: &[Seen<'_>]) -> Result<()> {
    let date = today()?;
    let mut all = String::new();
    rewrite(ALL, CASES, |known| {
        all = sections(known, groups, &date);
        all.clone()
    })?;
    rewrite(VERSIONS, TESTED, |known| versions(known, &parse(&all)))
}

/// How many cases each group has on the page, and of which day.
///
/// # Errors
/// The page cannot be read.
pub(crate) fn recorded() -> Result<BTreeMap<String, (usize, String)>> {
    let page = std::fs::read_to_string(source(ALL))?;
    let (_, known) = page.split_once(CASES).context("the page has no cases")?;
    let known = known.split_once(END).map_or(known, |(known, _)| known);
    let counts = parse(known).into_iter();
    Ok(counts.map(|section| (section.name.to_owned(), (section.count(), section.date.to_owned()))).collect())
}

/// What is known of a group: when it ran, and its cases.
struct Section<'a> {
    name: &'a str,
    date: &'a str,
    table: &'a str,
}

impl Section<'_> {
    fn count(&self) -> usize {
        self.table.lines().filter(|line| line.starts_with("| ")).count().saturating_sub(2)
    }
}

fn parse(text: &str) -> Vec<Section<'_>> {
    let sections = text.split("\n### ").skip(1).filter_map(|section| {
        let (heading, table) = section.split_once('\n')?;
        let (name, date) = heading.split_once(", ")?;
        Some(Section { name, date, table: table.trim() })
    });
    sections.collect()
}

/// The cases of each group below a heading of its own, in the order of the groups.
fn sections(known: &str, groups: &[Seen<'_>], date: &str) -> String {
    let text = |name: &str, date: &str, table: &str| format!("\n### {name}, {date}\n\n{table}\n");
    let mut texts: BTreeMap<&str, String> = parse(known)
        .iter()
        .map(|section| (section.name, text(section.name, section.date, section.table)))
        .collect();
    for (group, findings) in groups {
        texts.insert(group.name, text(group.name, date, &table(findings, Some(CELL))));
    }
    GROUPS.iter().filter_map(|group| texts.remove(group.name)).collect()
}

fn today() -> Result<String> {
    let date = crate::machine::process::run(std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    Ok(date.trim().to_owned())
}

/// What groups have been run with, each with the number of its cases. Rows of what none of them runs with stay.
fn versions(known: &str, sections: &[Section<'_>]) -> String {
    let mut rows: BTreeMap<String, String> = known
        .lines()
        .filter_map(|line| Some((line.strip_prefix("| ")?.split_once(" |")?.0.to_owned(), line.to_owned())))
        .filter(|(name, _)| name.starts_with("OpenStack") || name.starts_with("Kubernetes"))
        .collect();
    let mut ran: BTreeMap<String, (usize, Vec<String>, BTreeSet<&str>)> = BTreeMap::new();
    for section in sections {
        let Some(group) = GROUPS.iter().find(|group| group.name == section.name) else { continue };
        let minors = group.needs.iter().map(|minor| format!("Kubernetes {}", minor.text()));
        for name in minors.chain([format!("OpenStack {}", group.release.name())]) {
            let (sum, names, dates) = ran.entry(name).or_default();
            *sum += section.count();
            names.push(format!("`{}`", group.name));
            dates.insert(section.date);
        }
    }
    for (name, (cases, groups, dates)) in ran {
        // The oldest: since then each of them has been run.
        let date = dates.first().copied().unwrap_or_default();
        rows.insert(name.clone(), format!("| {name} | {cases} | {} | {date} |", groups.join(", ")));
    }
    let head = "| With | Cases | Groups of the end-to-end tests | Last run |\n| --- | ---: | --- | --- |";
    [head.to_owned()].into_iter().chain(rows.into_values()).collect::<Vec<_>>().join("\n")
}

/// Writes another table into a page.
fn replace(page: &str, mark: &str, table: &str) -> Result<()> {
    rewrite(page, mark, |_| table.to_owned())
}

/// Writes what becomes of a table into a page.
fn rewrite(page: &str, mark: &str, change: impl FnOnce(&str) -> String) -> Result<()> {
    let page = source(page);
    let text = std::fs::read_to_string(&page)?;
    let (_, rest) = text.split_once(mark).with_context(|| format!("the page has no mark {mark}"))?;
    let (known, _) = rest.split_once(END).with_context(|| format!("the page has no mark {END}"))?;
    Ok(std::fs::write(page, with_table(&text, mark, &change(known))?)?)
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
        let group = |name: &str| GROUPS.iter().find(|group| group.name == name).unwrap();
        let cases = [finding("a"), finding("b")];
        let first = sections("", &[(group("old"), &cases)], "2026-02-02");
        let both = sections(&first, &[(group("ovn"), &cases[1..])], "2026-03-03");
        let written = versions(known, &parse(&both));
        let rows: Vec<&str> = written.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| Kubernetes 1.28 | 2 | `old` | 2026-02-02 |",
                "| Kubernetes 1.36 | 1 | `ovn` | 2026-03-03 |",
                "| OpenStack 2026.2 | 3 | `old`, `ovn` | 2026-02-02 |",
                "| OpenStack yoga | 9 | `x` | 2026-01-01 |",
            ]
        );
    }

    fn finding(case: &str) -> Finding {
        Finding::failure("1 x", case, "well")
    }

    #[test]
    fn a_run_of_some_groups_leaves_the_cases_of_others() {
        let group = |name: &str| GROUPS.iter().find(|group| group.name == name).unwrap();
        let first =
            sections("\n", &[(group("old"), &[finding("a")]), (group("ovn"), &[finding("b")])], "2026-01-01");
        let second = sections(
            &first,
            &[(group("ovn"), &[finding("c")]), (group("life"), &[finding("d")])],
            "2026-02-02",
        );
        let lines: Vec<&str> =
            second.lines().filter(|line| line.contains("###") || line.contains("well")).collect();
        assert_eq!(
            lines,
            [
                "### life, 2026-02-02",
                "| **FAILED** | 1 x | d | well | 0.0 |",
                "### old, 2026-01-01",
                "| **FAILED** | 1 x | a | well | 0.0 |",
                "### ovn, 2026-02-02",
                "| **FAILED** | 1 x | c | well | 0.0 |",
            ]
        );
        assert_eq!(sections(&second, &[], "2026-03-03"), second);
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
