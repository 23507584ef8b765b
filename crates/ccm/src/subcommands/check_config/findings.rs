//! What a check found, written line by line as it is found.

use std::fmt::Display;

use crate::subcommands::output::print_line;

/// Counts of what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    errors: usize,
    warnings: usize,
}

impl Findings {
    /// Something that does not work; `subject` says whose it is, and is empty for the configuration itself.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) fn error(&mut self, subject: &str, text: impl Display) -> anyhow::Result<()> {
        self.errors += 1;
        say(subject, "error", text)
    }

    /// Something that works and is most likely not what was meant.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) fn warning(&mut self, subject: &str, text: impl Display) -> anyhow::Result<()> {
        self.warnings += 1;
        say(subject, "warning", text)
    }

    /// Counts what another check found.
    pub(super) fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        self.warnings += other.warnings;
    }

    /// Says in one line how a check went.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) fn conclude(&self, what: &str) -> anyhow::Result<()> {
        let Self { errors, warnings } = self;
        let verdict = if *errors == 0 { "valid" } else { "not valid" };
        print_line(format_args!("{what}: {verdict}, {errors} error(s), {warnings} warning(s)"))
    }

    /// The result of the whole.
    ///
    /// # Errors
    /// There are errors.
    pub(super) fn result(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.errors == 0, "{} error(s) found, listed above", self.errors);
        Ok(())
    }
}

fn say(subject: &str, kind: &str, text: impl Display) -> anyhow::Result<()> {
    // What a Service says may hold line breaks; a finding is one line.
    let text = text.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    if subject.is_empty() {
        print_line(format_args!("{kind}: {text}"))
    } else {
        print_line(format_args!("{subject}: {kind}: {text}"))
    }
}
