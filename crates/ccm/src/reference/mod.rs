//! The generated pages of the reference. Tests compare them with what is stored, `make docs` regenerates them.

pub mod clouds;
pub mod events;
pub mod flags;
pub mod metrics;

/// First line of a generated page.
const GENERATED: &str = "<!-- Generated; do not edit. `make docs` regenerates it. -->";

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
