//! The changelog: a section of it becomes the notes of a release, which people skim.

use crate::pages::read;

/// Characters that an entry has at most.
const MAX_LENGTH: usize = 180;

#[test]
fn each_entry_of_the_changelog_is_one_short_line() {
    let text = read("CHANGELOG.md");
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2) {
        let (entry, next) = (pair[0], pair[1]);
        if !entry.starts_with("- ") {
            continue;
        }
        assert!(entry.chars().count() <= MAX_LENGTH, "shorten, or make two entries of: {entry}");
        let ends = next.is_empty() || next.starts_with("- ") || next.starts_with('#');
        assert!(ends, "{entry:?} goes on in the next line: {next:?}");
    }
}
