//! Scans the value after an equal sign.

use super::cursor::{Cursor, is_blank, is_comment};
use super::{Position, SyntaxProblem};

pub(super) struct Scanned {
    /// The value with quotes and escapes resolved, without blanks at both ends.
    pub(super) text: String,
    /// See [`super::Entry::cut_by_comment`].
    pub(super) cut_by_comment: bool,
    pub(super) problems: Vec<(Position, SyntaxProblem)>,
}

/// Scans a value up to the end of the line or text, or a comment.
pub(super) fn scan(cursor: &mut Cursor<'_>) -> Scanned {
    cursor.skip_blanks();
    let mut value = Builder::default();
    while let Some(character) = cursor.peek() {
        if character == '\n' || is_comment(character) {
            break;
        }
        let position = cursor.position();
        cursor.advance();
        value.before_is_bare = false;
        match character {
            '\\' => value.bare_backslash(cursor, position),
            '"' => value.quoted(cursor, position),
            // Carriage returns count as blanks and are dropped everywhere.
            '\r' => {}
            blank if is_blank(blank) => value.text.push(blank),
            other => {
                value.keep(other);
                value.before_is_bare = true;
            }
        }
    }
    value.text.truncate(value.kept);
    let cut_by_comment = value.before_is_bare && cursor.peek().is_some_and(is_comment);
    Scanned { text: value.text, cut_by_comment, problems: value.problems }
}

#[derive(Default)]
struct Builder {
    text: String,
    /// Length of the text without trailing blanks.
    kept: usize,
    /// Whether the last character was an ordinary one outside of quotes.
    before_is_bare: bool,
    problems: Vec<(Position, SyntaxProblem)>,
}

impl Builder {
    fn keep(&mut self, character: char) {
        self.text.push(character);
        self.kept = self.text.len();
    }

    /// Scans after a backslash outside of quotes: a line break or a quote.
    fn bare_backslash(&mut self, cursor: &mut Cursor<'_>, position: Position) {
        let mut behind = cursor.clone();
        behind.advance_if('\r');
        match behind.advance() {
            // Blanks before a continuation belong to the value.
            Some('\n') => self.kept = self.text.len(),
            Some('"') => self.keep('"'),
            Some(_) | None => return self.problems.push((position, SyntaxProblem::BareBackslash)),
        }
        *cursor = behind;
    }

    /// Scans after an opening quote, including the closing one. Stops before a line break.
    fn quoted(&mut self, cursor: &mut Cursor<'_>, start: Position) {
        loop {
            let position = cursor.position();
            let Some(character) = cursor.peek().filter(|character| *character != '\n') else {
                return self.problems.push((start, SyntaxProblem::OpenQuote));
            };
            cursor.advance();
            match character {
                '"' => return self.kept = self.text.len(),
                '\\' => self.quoted_escape(cursor, position),
                '\r' => {}
                other => self.keep(other),
            }
        }
    }

    fn quoted_escape(&mut self, cursor: &mut Cursor<'_>, position: Position) {
        let resolved = match cursor.peek() {
            Some(itself @ ('\\' | '"')) => itself,
            Some('n') => '\n',
            Some('t') => '\t',
            Some(_) | None => return self.problems.push((position, SyntaxProblem::QuotedEscape)),
        };
        cursor.advance();
        self.keep(resolved);
    }
}
