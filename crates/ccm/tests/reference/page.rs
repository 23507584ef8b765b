//! What the generated pages of the reference have in common.

/// First line of a generated page.
pub(crate) const GENERATED: &str = "<!-- Generated; do not edit. `make docs` regenerates it. -->";

/// A text as a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
