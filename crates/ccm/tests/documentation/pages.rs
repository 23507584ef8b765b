//! The pages and their parts.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a file of the repository.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// One page.
pub(crate) struct Page {
    /// Path from the root of the repository.
    pub(crate) path: String,
    /// Lines outside of code blocks.
    pub(crate) prose: Vec<String>,
    /// Code blocks.
    pub(crate) blocks: Vec<Block>,
}

/// One code block.
#[derive(Default)]
pub(crate) struct Block {
    /// The word behind the fence.
    pub(crate) language: String,
    /// The words after it: `run` for commands that a test executes (`run=WHERE` where they are not for a cluster), `file=NAME` for the
    /// content of a file that later commands use.
    pub(crate) attributes: Vec<String>,
    /// Its text, without the indentation of the fence.
    pub(crate) text: String,
}

impl Block {
    fn begin(information: &str) -> Self {
        let mut words = information.split_whitespace().map(str::to_owned);
        Self { language: words.next().unwrap_or_default(), attributes: words.collect(), text: String::new() }
    }

    /// Whether it has this attribute.
    pub(crate) fn is(&self, attribute: &str) -> bool {
        self.attributes.iter().any(|given| given == attribute)
    }

    /// The name of the file that it is.
    pub(crate) fn file(&self) -> Option<&str> {
        self.attributes.iter().find_map(|given| given.strip_prefix("file="))
    }
}

impl Page {
    fn parse(path: String, text: &str) -> Self {
        let (mut prose, mut blocks) = (Vec::new(), Vec::new());
        let mut open: Option<(usize, Block)> = None;
        for line in text.lines() {
            let indentation = line.len() - line.trim_start().len();
            match (line.trim_start().strip_prefix("```"), open.take()) {
                (Some(_), Some((_, block))) => blocks.push(block),
                (Some(information), None) => open = Some((indentation, Block::begin(information))),
                (None, Some((fence, mut block))) => {
                    block.text.push_str(line.get(fence.min(indentation)..).unwrap_or_default());
                    block.text.push('\n');
                    open = Some((fence, block));
                }
                (None, None) => prose.push(line.to_owned()),
            }
        }
        assert!(open.is_none(), "{path}: a code block does not end");
        Self { path, prose, blocks }
    }

    /// Texts between backticks outside of code blocks.
    pub(crate) fn spans(&self) -> impl Iterator<Item = &str> {
        self.prose.iter().flat_map(|line| line.split('`').skip(1).step_by(2))
    }

    /// Everything that a reader may type or copy: spans and lines of code blocks.
    pub(crate) fn code(&self) -> impl Iterator<Item = &str> {
        self.spans().chain(self.blocks.iter().flat_map(|block| block.text.lines()))
    }

    /// Anchors of the headings, as GitHub makes them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let headings = self.prose.iter().filter(|line| line.starts_with('#'));
        headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// The pages that somebody wrote: those made from the program's tables cannot name what is not in them.
pub(crate) fn written_pages() -> Vec<Page> {
    let generated = |page: &Page| page.prose.iter().any(|line| line.starts_with("<!-- Generated"));
    pages().into_iter().filter(|page| !generated(page)).collect()
}

/// All pages: those at the root, the end-to-end tests' and everything in docs.
pub(crate) fn pages() -> Vec<Page> {
    let at_the_root = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "GOVERNANCE.md",
        "MAINTAINERS.md",
    ];
    let mut paths: Vec<String> = at_the_root.map(str::to_owned).to_vec();
    let beside = [
        "e2e/README.md",
        "e2e/CASES.md",
        "e2e/MEASURING.md",
        "release/README.md",
        "crates/ccm/tests/compatibility/SCENARIOS.md",
    ];
    paths.extend(beside.map(str::to_owned));
    collect("docs", &mut paths);
    paths.sort();
    paths.into_iter().map(|path| Page::parse(path.clone(), &read(&path))).collect()
}

fn collect(folder: &str, paths: &mut Vec<String>) {
    for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&path, paths);
        } else if path.ends_with(".md") {
            paths.push(path);
        }
    }
}
