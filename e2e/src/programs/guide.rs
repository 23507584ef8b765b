//! Files that the guides show, as a reader would save them.

use anyhow::{Context as _, Result};

use crate::artifacts::source;

/// The block of a page that is marked `file=NAME`.
pub(crate) fn file(page: &str, name: &str) -> Result<String> {
    let path = source("../docs/guides").join(page);
    let text = std::fs::read_to_string(&path).with_context(|| format!("{page} cannot be read"))?;
    block(&text, name).with_context(|| format!("{page} shows no file {name}"))
}

fn block(page: &str, name: &str) -> Option<String> {
    let mark = format!(" file={name}");
    let mut lines = page.lines().skip_while(|line| !(line.starts_with("```") && line.ends_with(&mark)));
    lines.next()?;
    Some(lines.take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_block_that_carries_its_name() {
        let page = "Text.\n\n```sh\nno\n```\n\n```json file=a.json\n[1]\n[2]\n```\n\nMore.\n";
        assert_eq!(block(page, "a.json").as_deref(), Some("[1]\n[2]\n"));
        assert_eq!(block(page, "b.json"), None);
    }
}
