//! The possible syntax errors, and their fixes.

use super::Position;

/// A syntax error. Its texts never contain any part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Position of the error.
    pub position: Position,
    /// Section, if known.
    pub section: Option<String>,
    /// Key, if known.
    pub key: Option<String>,
    pub problem: SyntaxProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxProblem {
    #[error("the file starts with a byte-order mark")]
    ByteOrderMark,
    #[error("the file contains a NUL character")]
    Nul,
    #[error("the file is not UTF-8 text")]
    NotUtf8,
    #[error("a key appears before the first section")]
    KeyOutsideSection,
    #[error("a section name is missing after `[`")]
    SectionName,
    #[error("only a quoted name or `]` may follow the name in a section header")]
    SectionHeader,
    #[error("the sub-section name is empty")]
    EmptySubsection,
    #[error("the sub-section name has no closing quote on its line")]
    OpenSubsection,
    #[error("the sub-section name has an unknown escape sequence")]
    SubsectionEscape,
    #[error("the section header is followed by other text on its line")]
    BehindSection,
    #[error("the line starts with neither a section, a key nor a comment")]
    LineStart,
    #[error("`{0}` is not allowed in a key")]
    KeyCharacter(char),
    #[error("an equal sign is missing after the key")]
    EqualSign,
    #[error("a quoted value has no closing quote on its line")]
    OpenQuote,
    #[error("the quoted value has an unknown escape sequence")]
    QuotedEscape,
    #[error("the value has a backslash outside quotes")]
    BareBackslash,
    #[error("the file has too many errors to continue")]
    TooMany,
}

impl SyntaxProblem {
    /// Returns what the user can do.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::ByteOrderMark => "save the file as UTF-8 without byte-order mark",
            Self::Nul | Self::NotUtf8 => "save the file as UTF-8 text",
            Self::KeyOutsideSection => "put a line such as `[Global]` before the key",
            Self::SectionName => "write `[Name]`; names hold letters, digits and `-` and start with a letter",
            Self::SectionHeader | Self::EmptySubsection | Self::OpenSubsection => {
                "write `[Name]`, or `[Name \"sub name\"]` with the quotes"
            }
            Self::SubsectionEscape => "only `\\\\` and `\\\"` are escapes in a sub-section name",
            Self::BehindSection => "put that text on a line of its own",
            Self::LineStart => {
                "write `key = value`; keys start with a letter; comments start with `#` or `;`"
            }
            Self::KeyCharacter(_) => {
                "keys hold letters, digits and `-` only, and `=` separates key and value"
            }
            Self::EqualSign => "write `key = value`",
            Self::OpenQuote => "close the quotes on the same line; write `\\n` for a line break",
            Self::QuotedEscape => {
                "inside quotes the only escapes are `\\\\`, `\\\"`, `\\n` and `\\t`; write a backslash as `\\\\`"
            }
            Self::BareBackslash => "put the value in double quotes and double each backslash",
            Self::TooMany => "correct the errors before this line first",
        }
    }
}
