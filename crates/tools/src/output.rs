//! The output of subcommands: results to standard output, and progress to standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use openstack_ccm_core::text::{printable, printable_lines};
use serde::Serialize;
use tokio::time::Instant;

const ESCAPE: char = '\u{1b}';
/// How long progress stays silent at first.
const FIRST_REPORT_DELAY: Duration = Duration::from_secs(1);
/// Interval between two lines of progress where lines cannot be overwritten.
const REPEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Writes a text. Foreign text in it can make a terminal change its colours, but nothing else.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    print_as_it_is(styled(&text.to_string()))
}

/// Returns the text with its colours and weights, but without other control sequences for a terminal.
fn styled(text: &str) -> String {
    let mut parts = text.split(ESCAPE);
    let mut shown = printable_lines(parts.next().unwrap_or_default());
    for part in parts {
        match part
            .strip_prefix('[')
            .and_then(|part| part.split_once('m'))
            .filter(|(style, _)| is_style(style))
        {
            Some((style, rest)) => shown.push_str(&format!("{ESCAPE}[{style}m{}", printable_lines(rest))),
            None => shown.push_str(&printable_lines(&format!("{ESCAPE}{part}"))),
        }
    }
    shown
}

/// Returns whether a style is plain, bold, or a colour other than that of the background.
fn is_style(style: &str) -> bool {
    style.split(';').all(|one| matches!(one, "0" | "1" | "31" | "32" | "33" | "34" | "35" | "36"))
}

/// Writes a text that contains no foreign text.
///
/// # Errors
/// Standard output is closed.
pub fn print_as_it_is(text: impl Display) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}").and_then(|()| stdout.flush()).context("standard output cannot be written")
}

/// Writes a text with a line break.
///
/// # Errors
/// Standard output is closed.
pub fn print_line(text: impl Display) -> anyhow::Result<()> {
    print(format_args!("{text}\n"))
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The same as YAML.
    Yaml,
}

impl Form {
    /// Returns a value as programs read it, with a line break at the end.
    ///
    /// # Errors
    /// It has no such form.
    pub fn document(self, value: &impl Serialize) -> anyhow::Result<String> {
        Ok(match self {
            Self::Yaml => serde_saphyr::to_string(value)?,
            Self::Text | Self::Json => serde_json::to_string_pretty(value)? + "\n",
        })
    }
}

/// Returns whether an error only means that the reader closed the pipe, as `| head -1` does.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns `1 Service`, `2 Services`.
pub(crate) fn plural(count: usize, one: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {one}{ending}")
}

/// Shows progress to a waiting user: on a terminal in one line that is overwritten, otherwise as a line now and then.
pub(crate) struct Progress {
    begun: Instant,
    written: Option<Instant>,
    on_terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), written: None, on_terminal: io::stderr().is_terminal() }
    }

    /// Writes the progress, if the work takes longer than a second.
    pub(crate) fn report(&mut self, text: impl Display) {
        let now = Instant::now();
        let pause = if self.on_terminal { Duration::ZERO } else { REPEAT_INTERVAL };
        let is_due = now.duration_since(self.begun) >= FIRST_REPORT_DELAY
            && self.written.is_none_or(|written| now.duration_since(written) >= pause);
        if !is_due {
            return;
        }
        self.written = Some(now);
        let text = printable(&text.to_string());
        // A failure is ignored: progress that cannot be shown is not missed.
        let _ = if self.on_terminal {
            write!(io::stderr(), "\r\u{1b}[K{text}")
        } else {
            writeln!(io::stderr(), "{text}")
        };
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.on_terminal && self.written.is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::bold_and_colours(
        "\u{1b}[1ma\u{1b}[0m \u{1b}[1;32mb\u{1b}[0m\n",
        "\u{1b}[1ma\u{1b}[0m \u{1b}[1;32mb\u{1b}[0m\n"
    )]
    #[case::what_hides("\u{1b}[8ma", "\\u001b[8ma")]
    #[case::what_moves("a\u{1b}[2J\u{1b}]0;x\u{7}", "a\\u001b[2J\\u001b]0;x\\u0007")]
    #[case::json("{\"a\": \"\u{202e}\"}", "{\"a\": \"\\u202e\"}")]
    fn a_text_of_somebody_else_can_do_nothing_to_a_terminal(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(styled(text), expected);
    }
}
