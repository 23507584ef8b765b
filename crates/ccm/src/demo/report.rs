//! What the demo shows: a table with one line for each thing that was measured.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// Columns of the table where standard output is not a terminal.
const WIDTH_OF_A_LOG: u16 = 140;

/// One measured thing.
struct Line {
    situation: String,
    published: String,
    who: String,
    result: String,
    stated: bool,
}

/// The lines of one chapter.
pub(super) struct Chapter {
    title: &'static str,
    explanation: &'static str,
    lines: Vec<Line>,
}

impl Chapter {
    /// A chapter with a sentence that says what to look at.
    pub(super) fn new(title: &'static str, explanation: &'static str) -> Self {
        Self { title, explanation, lines: Vec::new() }
    }

    /// Adds a line: the situation, what the status says, who asked and what came of it, and whether that is as stated.
    pub(super) fn line(
        &mut self,
        situation: impl Into<String>,
        published: impl Into<String>,
        who: impl Into<String>,
        result: impl Into<String>,
        stated: bool,
    ) {
        self.lines.push(Line {
            situation: situation.into(),
            published: published.into(),
            who: who.into(),
            result: result.into(),
            stated,
        });
    }

    /// Writes the chapter to standard output and returns how many lines are not as stated.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) fn print(self) -> anyhow::Result<usize> {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        if !std::io::stdout().is_terminal() {
            table.set_width(WIDTH_OF_A_LOG);
        }
        table.set_header(["situation", "status of the Service", "who asks", "what happens", ""]);
        for line in &self.lines {
            let mark = Cell::new(if line.stated { "as stated" } else { "NOT AS STATED" });
            table.add_row([
                Cell::new(&line.situation),
                Cell::new(&line.published),
                Cell::new(&line.who),
                Cell::new(&line.result),
                mark.set_alignment(CellAlignment::Right),
            ]);
        }
        let wrong = self.lines.iter().filter(|line| !line.stated).count();
        let mut output = std::io::stdout().lock();
        writeln!(output, "\n{}\n{}\n{table}", self.title, self.explanation)
            .context("standard output is closed")?;
        Ok(wrong)
    }
}
