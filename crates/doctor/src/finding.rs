//! What was found, with evidence and fix.

use std::borrow::Cow;
use std::fmt;

use openstack_ccm_core::command::command;
use serde::Serialize;

use crate::code::{Code, Severity};

/// What a finding stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The object: `Service shop/web`, `pool 1234`.
    pub object: String,
    pub field: String,
    pub value: String,
}

impl Evidence {
    /// One piece.
    pub fn new(object: impl Into<String>, field: impl Into<String>, value: impl Into<String>) -> Self {
        Self { object: object.into(), field: field.into(), value: value.into() }
    }
}

/// What to do about a finding. What facts say gets into it as the words of a command only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix(Cow<'static, str>);

impl Fix {
    /// A command, for a shell.
    pub fn command<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Self {
        Self(Cow::Owned(command(words)))
    }

    /// A command about an object in a namespace.
    pub fn kubectl<'a>(namespace: &'a str, words: impl IntoIterator<Item = &'a str>) -> Self {
        Self::command(["kubectl", "--namespace", namespace].into_iter().chain(words))
    }
}

/// Where no command does it.
impl From<&'static str> for Fix {
    fn from(advice: &'static str) -> Self {
        Self(Cow::Borrowed(advice))
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    /// What is so, in one line.
    pub text: String,
    /// What it stands on.
    pub evidence: Vec<Evidence>,
    /// A command, or what to write; absent where the page says all there is.
    pub fix: Option<Fix>,
    /// The node, where it is about one.
    pub node: Option<String>,
    /// Other ports of the Service are well, so that not everything ends here.
    pub partial: bool,
}

impl Finding {
    /// One without evidence yet.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), evidence: Vec::new(), fix: None, node: None, partial: false }
    }

    /// With one more piece of evidence.
    #[must_use]
    pub fn seen(
        mut self,
        object: impl Into<String>,
        field: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        self.evidence.push(Evidence::new(object, field, value));
        self
    }

    /// With what to do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<Fix>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// About a node.
    #[must_use]
    pub fn on(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// About some of `all` ports, or about all of them.
    #[must_use]
    pub fn of_ports(mut self, concerned: usize, all: usize) -> Self {
        self.partial = concerned < all;
        self
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        self.code.entry().severity
    }
}

/// The result of one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// All is well.
    Ok(String),
    /// Nothing has to be looked at.
    Skipped(String),
    /// It could not be looked at, and why.
    Unknown(String),
    /// Something was found.
    Found(Finding),
}

impl From<Finding> for Check {
    fn from(finding: Finding) -> Self {
        Self::Found(finding)
    }
}

/// A look that is well.
pub fn ok(text: impl Into<String>) -> Check {
    Check::Ok(text.into())
}

/// A look that could not be taken.
pub fn unknown(text: impl Into<String>) -> Check {
    Check::Unknown(text.into())
}

/// Nothing to look at.
pub fn skipped(text: impl Into<String>) -> Check {
    Check::Skipped(text.into())
}
