//! What was found, with evidence and fix.

use std::borrow::Cow;
use std::fmt;

use openstack_ccm_core::command::command;
use serde::Serialize;

use crate::code::{Code, Severity, Stops};
use crate::hop::{Port, Scope};

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
    /// Which packets it is about.
    pub scope: Scope,
    /// Whose packets it stops.
    pub stops: Stops,
    /// Whether it stops them for sure.
    pub surely: bool,
}

impl Finding {
    /// One without evidence yet.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        let entry = code.entry();
        Self {
            code,
            text: text.into(),
            evidence: Vec::new(),
            fix: None,
            node: None,
            scope: Scope::default(),
            stops: entry.stops,
            surely: entry.surely,
        }
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

    /// About packets to a port.
    #[must_use]
    pub fn at(mut self, port: Port) -> Self {
        self.scope.ports.get_or_insert_default().insert(port);
        self
    }

    /// About packets to an address or a hostname.
    #[must_use]
    pub fn to(mut self, to: impl Into<String>) -> Self {
        self.scope.to = Some(to.into());
        self
    }

    /// Stops these packets, in place of those that the code stops as a rule.
    #[must_use]
    pub fn stops(mut self, stops: Stops) -> Self {
        self.stops = stops;
        self
    }

    /// Stops its packets for sure, or only perhaps.
    #[must_use]
    pub fn surely(mut self, surely: bool) -> Self {
        self.surely = surely;
        self
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        self.code.entry().severity
    }
}

/// What is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What, and why.
    pub text: String,
    /// Which packets it matters to.
    pub scope: Scope,
    /// Whose packets it matters to.
    pub matters: Stops,
    /// Whether somebody asked: whoever leaves out the cloud on purpose did not.
    pub asked: bool,
}

/// The result of one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// All is well.
    Ok(String),
    /// Nothing has to be looked at.
    Skipped(String),
    /// It could not be looked at, and why.
    Unknown(Unknown),
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
    Check::Unknown(Unknown { text: text.into(), scope: Scope::default(), matters: Stops::All, asked: true })
}

impl Check {
    /// The same about some packets only, where it is not known.
    #[must_use]
    pub fn about(self, scope: Scope, matters: Stops) -> Self {
        match self {
            Self::Unknown(unknown) => Self::Unknown(Unknown { scope, matters, ..unknown }),
            other => other,
        }
    }
}

/// Nothing to look at.
pub fn skipped(text: impl Into<String>) -> Check {
    Check::Skipped(text.into())
}
