//! Scans the lines of a file: headers, keys, comments.

use super::cursor::{Cursor, is_comment, is_letter, is_name_part};
use super::{Document, Entry, EntryValue, Position, Section, SyntaxError, SyntaxProblem, value};

/// Limits the number of errors about a file that is no configuration at all.
const MAX_ERRORS: usize = 30;

/// Scans a file.
///
/// Never fails as a whole: [`Document::errors`] contains the errors, and a document with errors must not be used as a
/// configuration.
pub fn scan(bytes: &[u8]) -> Document {
    let text = String::from_utf8_lossy(bytes);
    let mut scanner = Scanner::new(&text);
    scanner.encoding(bytes);
    while scanner.line() {}
    let mut document = scanner.document;
    document.errors.sort_by_key(|error| error.position);
    document
}

/// The current section.
#[derive(Clone, Copy)]
enum Current {
    /// No header yet.
    None,
    /// A header with an error: its keys are read for their syntax and dropped.
    Broken,
    /// Index in the document.
    Section(usize),
}

struct Scanner<'text> {
    text: &'text str,
    cursor: Cursor<'text>,
    current: Current,
    document: Document,
}

impl<'text> Scanner<'text> {
    fn new(text: &'text str) -> Self {
        Self { text, cursor: Cursor::new(text), current: Current::None, document: Document::default() }
    }

    /// Reports encoding errors, each at most once: byte-order mark at the start, NUL, not UTF-8.
    fn encoding(&mut self, bytes: &[u8]) {
        if self.cursor.peek() == Some('\u{feff}') {
            self.error(self.cursor.position(), None, SyntaxProblem::ByteOrderMark);
            self.cursor.advance();
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            let position = position_of(self.text, error.valid_up_to());
            self.error(position, None, SyntaxProblem::NotUtf8);
        }
        if let Some(offset) = self.text.find('\0') {
            self.error(position_of(self.text, offset), None, SyntaxProblem::Nul);
        }
    }

    /// Scans one line, or several if a value continues. Returns `false` at the end.
    fn line(&mut self) -> bool {
        if self.document.errors.len() >= MAX_ERRORS {
            self.error(self.cursor.position(), None, SyntaxProblem::TooMany);
            return false;
        }
        self.cursor.skip_blanks();
        let position = self.cursor.position();
        match self.cursor.peek() {
            None => return false,
            Some('\n') => {
                self.cursor.advance();
            }
            Some('[') => self.header(position),
            Some(character) if is_comment(character) => self.cursor.skip_line(),
            Some(character) if is_letter(character) => self.key(position),
            Some(_) => {
                self.error(position, None, SyntaxProblem::LineStart);
                self.cursor.skip_line();
            }
        }
        true
    }

    fn header(&mut self, position: Position) {
        self.cursor.advance();
        match self.header_parts() {
            Ok((name, subsection)) => {
                self.current = Current::Section(self.document.sections.len());
                self.document.sections.push(Section { name, subsection, position });
            }
            Err(problem) => {
                self.current = Current::Broken;
                self.error(position, None, problem);
            }
        }
        self.cursor.skip_line();
    }

    fn header_parts(&mut self) -> Result<(String, Option<String>), SyntaxProblem> {
        self.cursor.skip_blanks();
        if !self.cursor.peek().is_some_and(is_letter) {
            return Err(SyntaxProblem::SectionName);
        }
        let name = self.cursor.take_while(is_name_part).to_owned();
        self.cursor.skip_blanks();
        let subsection = if self.cursor.advance_if('"') { Some(self.subsection()?) } else { None };
        self.cursor.skip_blanks();
        if !self.cursor.advance_if(']') {
            return Err(SyntaxProblem::SectionHeader);
        }
        self.cursor.skip_blanks();
        match self.cursor.peek() {
            None | Some('\n') => Ok((name, subsection)),
            Some(character) if is_comment(character) => Ok((name, subsection)),
            Some(_) => Err(SyntaxProblem::BehindSection),
        }
    }

    /// Scans a sub-section name after its opening quote, including the closing one.
    fn subsection(&mut self) -> Result<String, SyntaxProblem> {
        let mut name = String::new();
        loop {
            match self.cursor.peek() {
                None | Some('\n') => return Err(SyntaxProblem::OpenSubsection),
                Some('"') => break,
                Some('\\') => {
                    self.cursor.advance();
                    match self.cursor.peek() {
                        Some(escaped @ ('\\' | '"')) => name.push(escaped),
                        Some(_) | None => return Err(SyntaxProblem::SubsectionEscape),
                    }
                }
                Some(other) => name.push(other),
            }
            self.cursor.advance();
        }
        self.cursor.advance();
        if name.is_empty() { Err(SyntaxProblem::EmptySubsection) } else { Ok(name) }
    }

    fn key(&mut self, position: Position) {
        let key = self.cursor.take_while(is_name_part).to_owned();
        if matches!(self.current, Current::None) {
            self.error(position, Some(&key), SyntaxProblem::KeyOutsideSection);
            // One error is enough for all keys before the first header.
            self.current = Current::Broken;
        }
        let behind_name = self.cursor.position();
        self.cursor.skip_blanks();
        let adjacent = self.cursor.position() == behind_name;
        match self.cursor.peek() {
            None | Some('\n') => self.entry(key, position, EntryValue::Absent, false),
            Some(character) if is_comment(character) => self.entry(key, position, EntryValue::Absent, false),
            Some('=') => self.value(key, position),
            Some(character) => {
                let (key, problem) = if adjacent {
                    let rest =
                        self.cursor.take_while(|next| !next.is_whitespace() && !matches!(next, '=' | ':'));
                    (format!("{key}{rest}"), SyntaxProblem::KeyCharacter(character))
                } else {
                    (key, SyntaxProblem::EqualSign)
                };
                self.error(position, Some(&key), problem);
                self.cursor.skip_line();
            }
        }
    }

    fn value(&mut self, key: String, position: Position) {
        self.cursor.advance();
        let scanned = value::scan(&mut self.cursor);
        let open = scanned.problems.iter().any(|(_, problem)| *problem == SyntaxProblem::OpenQuote);
        let value =
            if scanned.problems.is_empty() { EntryValue::Text(scanned.text) } else { EntryValue::Broken };
        for (place, problem) in scanned.problems {
            self.error(place, Some(&key), problem);
        }
        self.entry(key, position, value, scanned.cut_by_comment);
        if open {
            // The following lines are most likely the rest of the value, a certificate or a secret: they are no keys, and must not
            // be shown as such.
            self.cursor.skip_to_section();
        }
    }

    fn entry(&mut self, key: String, position: Position, value: EntryValue, cut_by_comment: bool) {
        if let Current::Section(section) = self.current {
            self.document.entries.push(Entry { section, key, position, value, cut_by_comment });
        }
    }

    fn error(&mut self, position: Position, key: Option<&str>, problem: SyntaxProblem) {
        let section = match self.current {
            Current::Section(index) => self.document.sections.get(index).map(|section| section.name.clone()),
            Current::None | Current::Broken => None,
        };
        self.document.errors.push(SyntaxError { position, section, key: key.map(str::to_owned), problem });
    }
}

fn position_of(text: &str, offset: usize) -> Position {
    let mut cursor = Cursor::new(text);
    for (place, _) in text.char_indices() {
        if place >= offset {
            break;
        }
        cursor.advance();
    }
    cursor.position()
}
