//! Files and commands that pages show, as a reader would save and type them.

use anyhow::{Context as _, Result};

use crate::artifacts::source;

/// The block of a page that is marked `file=NAME`.
pub(crate) fn file(page: &str, name: &str) -> Result<String> {
    let files = blocks(&text(page)?, &format!(" file={name}"));
    files.into_iter().next().with_context(|| format!("{page} shows no file {name}"))
}

/// The blocks of a page that a reader types, in order.
pub(crate) fn commands(page: &str) -> Result<Vec<String>> {
    Ok(blocks(&text(page)?, "```sh run"))
}

fn text(page: &str) -> Result<String> {
    let path = source("../docs").join(page);
    std::fs::read_to_string(path).with_context(|| format!("{page} cannot be read"))
}

/// The blocks whose first line ends with a mark. Those of a list are indented.
fn blocks(page: &str, mark: &str) -> Vec<String> {
    let mut lines = page.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let fence = line.trim_start();
        if fence.starts_with("```") && fence.ends_with(mark) {
            let indent = &line[..line.len() - fence.len()];
            let own = lines.by_ref().map(|line| line.strip_prefix(indent).unwrap_or(line));
            found.push(own.take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_block_that_carries_its_name() {
        let page = "Text.\n\n```sh\nno\n```\n\n```json file=a.json\n[1]\n[2]\n```\n\nMore.\n";
        assert_eq!(blocks(page, " file=a.json"), ["[1]\n[2]\n"]);
        assert!(blocks(page, " file=b.json").is_empty());
    }

    #[test]
    fn only_what_a_reader_types_is_a_command() {
        let page = "1. Text:\n\n   ```sh run\n   one\n   two\n   ```\n\n```sh\nno\n```\n";
        assert_eq!(blocks(page, "```sh run"), ["one\ntwo\n"]);
    }
}
