//! The value behind an equal sign.

use super::cursor::{Cursor, is_blank, is_comment};
use super::{Position, SyntaxProblem};

pub(super) struct Scanned {
    /// Quotes and escapes resolved, blanks at both ends dropped.
    pub(super) text: String,
    /// See [`super::Entry::cut_by_comment`].
    pub(super) cut_by_comment: bool,
    pub(super) problems: Vec<(Position, SyntaxProblem)>,
}

/// Reads a value up to the line end, comment or end of the text that ends it.
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
            // Carriage returns vanish wherever they stand, as the blanks that they count as.
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
    /// Length of the text up to the last character that is not a blank at the end.
    kept: usize,
    /// Whether the last character was an ordinary one outside quotes.
    before_is_bare: bool,
    problems: Vec<(Position, SyntaxProblem)>,
}

impl Builder {
    fn keep(&mut self, character: char) {
        self.text.push(character);
        self.kept = self.text.len();
    }

    /// Behind a backslash outside quotes: a line end or a quote.
    fn bare_backslash(&mut self, cursor: &mut Cursor<'_>, position: Position) {
        let mut behind = cursor.clone();
        behind.advance_if('\r');
        match behind.advance() {
            // Blanks before a continuation are inside the value.
            Some('\n') => self.kept = self.text.len(),
            Some('"') => self.keep('"'),
            Some(_) | None => return self.problems.push((position, SyntaxProblem::BareBackslash)),
        }
        *cursor = behind;
    }

    /// Behind an opening quote, over the end quote. Stops before a line end.
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
