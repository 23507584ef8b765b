//! What the subcommands write to standard output.

use std::fmt::Display;
use std::io::Write as _;

use anyhow::Context as _;

/// Writes a text as it is.
///
/// # Errors
/// Standard output is closed.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    write!(std::io::stdout().lock(), "{text}").context("standard output is closed")
}

/// Writes a text and ends the line.
pub(crate) fn print_line(text: impl Display) -> anyhow::Result<()> {
    print(format_args!("{text}\n"))
}
