//! Writes what a run has seen into the sources.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::artifacts::source;
use crate::report::{Report, say};
use crate::truth::recorded_file;

/// The page for users.
const PAGE: &str = "../docs/explanation/end-to-end.md";
/// The page with everything.
const ALL: &str = "CASES.md";
/// Longest cell of it.
const CELL: usize = 160;
const CASES: &str = "<!-- begin: written by `make e2e E2E_ARGS=--record` -->";
const COSTS: &str = "<!-- begin: calls, written by `make e2e E2E_ARGS=--record` -->";
const BESIDE_OCCM: &str =
    "<!-- begin: calls beside OCCM, written by `make e2e E2E_ARGS='--only beside-occm --record'` -->";
const END: &str = "<!-- end -->";

/// Keeps the answers of the real APIs, what changes cost where that was measured, and the table of all cases if all groups were run.
///
/// # Errors
/// A file cannot be written, or the page has lost its marks.
pub(crate) fn record(report: &Report, run: &Path, all: bool) -> Result<()> {
    for world in std::fs::read_dir(run)? {
        let world = world?.path();
        if !world.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&world)? {
            let file = file?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
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
    fn the_pages_have_their_marks() {
        for (page, mark) in [(ALL, CASES), (ALL, COSTS), (PAGE, BESIDE_OCCM)] {
            let page = std::fs::read_to_string(source(page)).unwrap();
            assert!(with_table(&page, mark, "").is_ok(), "{mark}");
        }
    }
}
