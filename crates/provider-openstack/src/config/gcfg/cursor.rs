//! Reads a text character by character, and tracks the position.

use super::Position;

/// The current place in a text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'text> {
    rest: &'text str,
    position: Position,
}

impl<'text> Cursor<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self { rest: text, position: Position { line: 1, column: 1 } }
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn advance(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = &self.rest[character.len_utf8()..];
        if character == '\n' {
            self.position = Position { line: self.position.line.saturating_add(1), column: 1 };
        } else {
            self.position.column = self.position.column.saturating_add(1);
        }
        Some(character)
    }

    pub(super) fn advance_if(&mut self, expected: char) -> bool {
        let hit = self.peek() == Some(expected);
        if hit {
            self.advance();
        }
        hit
    }

    pub(super) fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'text str {
        let start = self.rest;
        while self.peek().is_some_and(&holds) {
            self.advance();
        }
        &start[..start.len() - self.rest.len()]
    }

    /// Skips the blanks of the dialect: space, tab, carriage return.
    pub(super) fn skip_blanks(&mut self) {
        self.take_while(is_blank);
    }

    /// Skips to the end of the line, without the line break.
    pub(super) fn skip_line(&mut self) {
        self.take_while(|character| character != '\n');
    }

    /// Skips to the next line that starts with `[`, or to the end.
    pub(super) fn skip_to_section(&mut self) {
        loop {
            self.skip_line();
            if self.advance().is_none() {
                return;
            }
            self.skip_blanks();
            if self.peek() == Some('[') {
                return;
            }
        }
    }
}

/// Returns whether this is a blank of the dialect. A carriage return is one, so that CRLF works.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r')
}

/// Returns whether a section or key name may start with this character.
pub(super) fn is_letter(character: char) -> bool {
    character.is_alphabetic()
}

/// Returns whether a section or key name may contain this character.
pub(super) fn is_name_part(character: char) -> bool {
    character.is_alphanumeric() || character == '-'
}

/// Returns whether this character starts a comment.
pub(super) fn is_comment(character: char) -> bool {
    matches!(character, '#' | ';')
}
