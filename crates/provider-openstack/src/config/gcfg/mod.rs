//! The file format of cloud.conf: the dialect of the Go package `gcfg`, version 1.2.3.
//!
//! It looks like a Git configuration file, with these rules:
//!
//! - `[Name]` or `[Name "sub name"]` starts a section; names of sections and keys hold letters, digits and `-` and
//!   start with a letter, and are compared without case. Sub-section names are quoted and case sensitive.
//! - `key = value`, or `key` alone. Blanks around the value are dropped.
//! - `#` and `;` start a comment anywhere outside quotes, even inside a word.
//! - A value may be quoted in parts. Inside quotes stand `\\`, `\"`, `\n` and `\t`; outside, a backslash continues
//!   the line or escapes a quote.
//! - Lines end with LF or CRLF; carriage returns are dropped wherever they stand. A byte-order mark, a NUL and
//!   bytes that are not UTF-8 are errors.
//!
//! [`scan`] continues after an error, so that one run reports all errors, and keeps the position of every key. It knows neither the
//! meaning of keys nor the types of values.
//!
//! Values are in neither errors nor `Debug` output: the scanner cannot know which of them are secret.

mod cursor;
mod problem;
mod scanner;
mod value;

pub use problem::SyntaxError;
use problem::SyntaxProblem;
pub use scanner::scan;

use std::fmt;

/// A place in a file. Both numbers start at 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// One scanned file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Section headers in the order of the file. A name may occur several times.
    pub sections: Vec<Section>,
    /// Keys in the order of the file.
    pub entries: Vec<Entry>,
    /// All errors, in the order of the file.
    pub errors: Vec<SyntaxError>,
}

/// A section header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    /// Sub-section name with escapes resolved; never empty.
    pub subsection: Option<String>,
    /// Position of the `[`.
    pub position: Position,
}

/// A key of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Index of its section in [`Document::sections`].
    pub section: usize,
    pub key: String,
    /// Where the key starts.
    pub position: Position,
    /// The value of the key.
    pub value: EntryValue,
    /// Whether a comment character directly after the unquoted value ended it: valid, but often an accident in passwords.
    pub cut_by_comment: bool,
}

/// The value of a key.
#[derive(Clone, PartialEq, Eq)]
pub enum EntryValue {
    /// No equal sign.
    Absent,
    /// A value, possibly empty, with quotes and escapes resolved.
    Text(String),
    /// A value with a syntax error, which [`Document::errors`] holds.
    Broken,
}

impl fmt::Debug for EntryValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Absent => "Absent",
            Self::Text(_) => "Text([REDACTED])",
            Self::Broken => "Broken",
        })
    }
}
