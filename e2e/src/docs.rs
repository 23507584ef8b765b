//! Writes what a run has seen into the sources.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::artifacts::source;
use crate::report::{Report, say};
use crate::truth::recorded_file;

/// The page with the table.
const PAGE: &str = "../docs/explanation/end-to-end.md";
/// Longest cell of it.
const CELL: usize = 160;
const BEGIN: &str = "<!-- begin: written by `make e2e E2E_ARGS=--record` -->";
const END: &str = "<!-- end -->";

/// Keeps the answers of the real APIs, and the table if all groups were run.
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
    if !all {
        say("the table of the page is written only by a run of all groups");
        return Ok(());
    }
    let page = source(PAGE);
    let text = std::fs::read_to_string(&page)?;
    Ok(std::fs::write(page, with_table(&text, &report.table(Some(CELL)))?)?)
}

/// The page with another table between its marks.
fn with_table(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("the page has no mark {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the page has no mark {END}"))?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_of_the_page_changes() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nMore.\n");
        let written = with_table(&page, "| new |").unwrap();
        assert_eq!(written, format!("# Title\n\n{BEGIN}\n| new |\n{END}\n\nMore.\n"));
    }

    #[test]
    fn the_page_has_its_marks() {
        let page = std::fs::read_to_string(source(PAGE)).unwrap();
        assert!(with_table(&page, "").is_ok());
    }
}
