//! Selects the subnets of the floating network for a Service's floating IP: the annotations and keys `floating-subnet` and
//! `floating-subnet-tags`.
//!
//! Both are evaluated here and not by Neutron, whose `not-tags` and `not-tags-any` mean the opposite of the documented meaning of
//! `!` and `!&`.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Maximum compiled size of an expression, in bytes: far above any realistic pattern, far below a harmful one.
const MAX_COMPILED_SIZE: usize = 1 << 20;

/// The conditions for a subnet. If there are both, both must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetMatch {
    /// `floating-subnet`
    pub name: Option<NamePattern>,
    /// `floating-subnet-tags`
    pub tags: Option<TagCondition>,
}

impl SubnetMatch {
    /// Returns whether a subnet with this name and these tags matches.
    pub fn matches(&self, name: &str, tags: &[String]) -> bool {
        self.name.as_ref().is_none_or(|pattern| pattern.matches(name))
            && self.tags.as_ref().is_none_or(|condition| condition.matches(tags))
    }
}

impl fmt::Display for SubnetMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.iter().map(|name| format!("name {:?}", name.text));
        let tags = self.tags.iter().map(|tags| format!("tags {:?}", tags.text));
        let parts: Vec<String> = name.chain(tags).collect();
        if parts.is_empty() { f.write_str("any") } else { f.write_str(&parts.join(" and ")) }
    }
}

/// Why a text is not a valid name pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The regular expression behind `~` is malformed or too large.
    #[error("the regular expression is malformed: {0}")]
    Expression(String),
    /// A `[` or `{` of the glob is never closed.
    #[error("the {0:?} is never closed")]
    Unclosed(char),
    /// A glob is malformed in another way: a range such as `[z-a]`.
    #[error("the glob is malformed: {0}")]
    Glob(String),
}

/// A pattern for names: an exact name, a glob, or `~` and a regular expression, each of which must match the whole
/// name; `!` in front negates. Case matters.
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: String,
    negated: bool,
    whole: Regex,
}

/// Patterns are equal if their texts are: everything else follows from the text.
impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl NamePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A malformed glob or regular expression.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (negated, pattern) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let whole = match pattern.strip_prefix('~') {
            Some(expression) => {
                // The expression must be valid by itself: a malformed one may become valid inside the anchors.
                compile(expression).map_err(PatternError::Expression)?;
                compile(&format!(r"\A(?:{expression})\z")).map_err(PatternError::Expression)?
            }
            None => {
                compile(&format!(r"(?s)\A{}\z", glob::to_expression(pattern)?)).map_err(PatternError::Glob)?
            }
        };
        Ok(Self { text: text.to_owned(), negated, whole })
    }

    /// Returns whether the name matches.
    pub fn matches(&self, name: &str) -> bool {
        self.whole.is_match(name) != self.negated
    }
}

fn compile(expression: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(expression).size_limit(MAX_COMPILED_SIZE).build();
    // The library's message has several lines; the last one suffices.
    compiled.map_err(|error| {
        let text = error.to_string();
        let line = text.lines().last().unwrap_or_default();
        line.trim_start_matches("error: ").trim().to_owned()
    })
}

/// Why a text is not a valid tag condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the condition contains no tag")]
pub struct NoTag;

/// A tag condition: a list separated by commas or blanks, of which a subnet must have at least one; with a leading `&`, all; with
/// `!`, none; with `!&`, not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCondition {
    text: String,
    negated: bool,
    all: bool,
    tags: Vec<String>,
}

impl TagCondition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The text contains no tag.
    pub fn parse(text: &str) -> Result<Self, NoTag> {
        let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (all, rest) = rest.strip_prefix('&').map_or((false, rest), |rest| (true, rest));
        let separators = |letter: char| letter == ',' || letter.is_whitespace();
        let tags: Vec<String> =
            rest.split(separators).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        if tags.is_empty() { Err(NoTag) } else { Ok(Self { text: text.to_owned(), negated, all, tags }) }
    }

    /// Returns whether a subnet with these tags matches.
    pub fn matches(&self, tags: &[String]) -> bool {
        let found = if self.all {
            self.tags.iter().all(|tag| tags.contains(tag))
        } else {
            self.tags.iter().any(|tag| tags.contains(tag))
        };
        found != self.negated
    }
}

/// Translates OCCM's globs to regular expressions.
mod glob {
    use std::iter::Peekable;
    use std::str::Chars;

    use super::PatternError;

    /// Any number of complete path elements, each with its `/`.
    const DIRECTORIES: &str = "(?:[^/]+/)*";

    /// Translates a glob: `*` is any sequence without `/`; a leading `**/`, `/**/` and a trailing `/**` match paths; `?` is one
    /// character; `[...]` is a class; `{a,b}` are alternatives; `{{` is a brace; all else is literal.
    pub(in crate::load_balancer) fn to_expression(glob: &str) -> Result<String, PatternError> {
        let mut expression = String::new();
        let mut depth = 0_usize;
        let mut rest = glob.chars().peekable();
        while let Some(letter) = rest.next() {
            match letter {
                '*' => star(&mut rest, &mut expression),
                '/' => slash(&mut rest, &mut expression),
                '?' => expression.push('.'),
                '[' => class(&mut rest, &mut expression)?,
                '{' if rest.next_if_eq(&'{').is_some() => expression.push_str(r"\{"),
                '{' => {
                    depth += 1;
                    expression.push_str("(?:");
                }
                '}' if depth > 0 => {
                    depth -= 1;
                    expression.push(')');
                }
                ',' if depth > 0 => expression.push('|'),
                literal => push_literal(&mut expression, literal),
            }
        }
        if depth > 0 { Err(PatternError::Unclosed('{')) } else { Ok(expression) }
    }

    fn push_literal(expression: &mut String, letter: char) {
        expression.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
    }

    fn star(rest: &mut Peekable<Chars<'_>>, expression: &mut String) {
        let mut ahead = rest.clone();
        if ahead.next() == Some('*') && ahead.next() == Some('/') {
            *rest = ahead;
            expression.push_str(DIRECTORIES);
        } else {
            expression.push_str("[^/]*");
        }
    }

    fn slash(rest: &mut Peekable<Chars<'_>>, expression: &mut String) {
        expression.push('/');
        let mut ahead = rest.clone();
        if ahead.next() == Some('*') && ahead.next() == Some('*') {
            let wildcard = match ahead.next() {
                Some('/') => DIRECTORIES,
                None => ".*",
                Some(_) => return,
            };
            *rest = ahead;
            expression.push_str(wildcard);
        }
    }

    /// Copies a class up to its `]`. Characters that are special only in Rust's classes are escaped.
    fn class(rest: &mut Peekable<Chars<'_>>, expression: &mut String) -> Result<(), PatternError> {
        expression.push('[');
        if rest.next_if_eq(&'^').is_some() {
            expression.push('^');
        }
        if rest.next_if_eq(&']').is_some() {
            expression.push_str(r"\]");
        }
        while let Some(letter) = rest.next() {
            match letter {
                ']' => {
                    expression.push(']');
                    return Ok(());
                }
                '[' if rest.peek() == Some(&':') => {
                    expression.push('[');
                    named_class(rest, expression);
                }
                '[' | '&' | '~' => expression.extend(['\\', letter]),
                '\\' => {
                    expression.push('\\');
                    expression.extend(rest.next());
                }
                other => expression.push(other),
            }
        }
        Err(PatternError::Unclosed('['))
    }

    /// Copies the rest of a name such as `[:alpha:]`, whose `]` does not end the enclosing class.
    fn named_class(rest: &mut Peekable<Chars<'_>>, expression: &mut String) {
        let mut colons = 0;
        for letter in rest.by_ref() {
            expression.push(letter);
            match letter {
                ':' => colons += 1,
                ']' if colons > 1 => return,
                _ => {}
            }
        }
    }
}
