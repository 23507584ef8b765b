//! Findings with their evidence and fix.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::api::core::v1::Service;
use openstack_ccm_core::command::command;
use serde::Serialize;

use crate::code::{Code, Severity, Stops};
use crate::hop::{Port, Scope};

/// A piece of evidence for a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The object: `Service shop/web`, `pool 1234`.
    pub object: String,
    pub field: String,
    pub value: String,
}

impl Evidence {
    /// Creates a piece of evidence.
    pub fn new(object: impl Into<String>, field: impl Into<String>, value: impl Into<String>) -> Self {
        Self { object: object.into(), field: field.into(), value: value.into() }
    }
}

/// What to do about a finding. Text from facts gets into it only as quoted words of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix(Cow<'static, str>);

impl Fix {
    /// Creates a fix that is a shell command.
    pub fn command<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Self {
        Self(Cow::Owned(command(words)))
    }

    /// Creates a fix that is a `kubectl` command for an object in a namespace.
    pub fn kubectl<'a>(namespace: &'a str, words: impl IntoIterator<Item = &'a str>) -> Self {
        Self::command(["kubectl", "--namespace", namespace].into_iter().chain(words))
    }

    /// Creates a fix that is a `kubectl` command for a Service: `kubectl --namespace shop annotate service web …`.
    pub fn service(service: &Service, verb: &str, words: &[&str]) -> Self {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let (namespace, name) = (text(&service.metadata.namespace), text(&service.metadata.name));
        Self::kubectl(&namespace, [verb, "service", &name].into_iter().chain(words.iter().copied()))
    }
}

/// Creates a fix that is advice, for problems that no command fixes.
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

/// A defect or an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    /// The finding in one line.
    pub text: String,
    /// The evidence for the finding.
    pub evidence: Vec<Evidence>,
    /// A command, or advice; absent where the page of the code says enough.
    pub fix: Option<Fix>,
    /// The node that the finding is about, if any.
    pub node: Option<String>,
    /// Which packets the finding is about.
    pub scope: Scope,
    /// Which packets the finding stops.
    pub stops: Stops,
    /// Whether it certainly stops them.
    pub surely: bool,
}

impl Finding {
    /// Creates a finding without evidence.
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

    /// Adds a piece of evidence.
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

    /// Sets the fix.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<Fix>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Sets the node that the finding is about.
    #[must_use]
    pub fn on(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// Limits the finding to packets to a port; further calls add ports.
    #[must_use]
    pub fn at(mut self, port: Port) -> Self {
        self.scope.ports.get_or_insert_default().insert(port);
        self
    }

    /// Limits the finding to packets to these ports.
    #[must_use]
    pub fn at_each(self, ports: impl IntoIterator<Item = Port>) -> Self {
        ports.into_iter().fold(self, Self::at)
    }

    /// Limits the finding to packets to an address or a hostname.
    #[must_use]
    pub fn to(mut self, to: impl Into<String>) -> Self {
        self.scope.to = Some(to.into());
        self
    }

    /// Sets which packets the finding stops, in place of the code's default.
    #[must_use]
    pub fn stops(mut self, stops: Stops) -> Self {
        self.stops = stops;
        self
    }

    /// Sets whether the finding certainly stops its packets.
    #[must_use]
    pub fn surely(mut self, surely: bool) -> Self {
        self.surely = surely;
        self
    }

    /// Returns the severity of its code.
    pub fn severity(&self) -> Severity {
        self.code.entry().severity
    }
}

/// Why something was not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// A question failed, was forbidden, or has an answer that doctor does not understand.
    NotKnown,
    /// No object that doctor may read says it, or the user left it out.
    NotSeen,
    /// Not seen either: whether an application reads the header that the load balancer sends.
    HeaderNotSeen,
}

impl Gap {
    /// `not known`, `not seen`
    pub fn title(self) -> &'static str {
        if self == Self::NotKnown { "not known" } else { "not seen" }
    }
}

/// Something that was not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What was not judged, and why.
    pub text: String,
    /// Which packets it matters to.
    pub scope: Scope,
    /// Which clients' packets it matters to.
    pub matters: Stops,
    pub gap: Gap,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The check passed.
    Ok(String),
    /// The check does not apply.
    Skipped(String),
    /// The check was not made.
    Unknown(Unknown),
    /// The check has a finding.
    Found(Finding),
}

impl From<Finding> for Check {
    fn from(finding: Finding) -> Self {
        Self::Found(finding)
    }
}

/// Creates the result of a check that passed.
pub fn ok(text: impl Into<String>) -> Check {
    Check::Ok(text.into())
}

/// Creates the result of a check that could not be made.
pub fn unknown(text: impl Into<String>) -> Check {
    gap(Gap::NotKnown, text)
}

/// Creates the result of a check for which there is nothing to look at.
pub fn unseen(text: impl Into<String>) -> Check {
    gap(Gap::NotSeen, text)
}

pub(crate) fn gap(gap: Gap, text: impl Into<String>) -> Check {
    Check::Unknown(Unknown { text: text.into(), scope: Scope::default(), matters: Stops::All, gap })
}

impl Check {
    /// Limits a gap to some packets; other results stay as they are.
    #[must_use]
    pub fn about(self, scope: Scope, matters: Stops) -> Self {
        match self {
            Self::Unknown(unknown) => Self::Unknown(Unknown { scope, matters, ..unknown }),
            other => other,
        }
    }
}

/// Creates the result of a check that does not apply.
pub fn skipped(text: impl Into<String>) -> Check {
    Check::Skipped(text.into())
}
