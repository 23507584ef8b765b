//! One line of a plan, in the marks that `terraform plan` made known.

use std::fmt;

use serde::Serialize;

use super::fields::Field;

/// What becomes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// `+`
    Create,
    /// `~`
    Change,
    /// `-`
    Delete,
    /// `-/+`
    Replace,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Create => "+",
            Self::Change => "~",
            Self::Delete => "-",
            Self::Replace => "-/+",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What becomes of it.
    pub mark: Mark,
    /// Kind of object: `listener`, `status`, `annotations`.
    pub kind: String,
    /// Id in the cloud; absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What distinguishes it from others of its kind: `443/TCP`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The pool of members.
    #[serde(skip)]
    pub parent: Option<String>,
    /// What would be other.
    pub fields: Vec<Field>,
    /// How many objects the line stands for.
    pub count: usize,
}

/// How many objects would be created, changed and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// `+`, and `-/+`.
    pub add: usize,
    /// `~`
    pub change: usize,
    /// `-`, and `-/+`.
    pub destroy: usize,
}

impl Changes {
    /// The sum of these lines.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Self {
        lines.into_iter().fold(Self::default(), |sum, Line { mark, count, .. }| match mark {
            Mark::Create => Self { add: sum.add + count, ..sum },
            Mark::Change => Self { change: sum.change + count, ..sum },
            Mark::Delete => Self { destroy: sum.destroy + count, ..sum },
            Mark::Replace => Self { add: sum.add + count, destroy: sum.destroy + count, ..sum },
        })
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { add, change, destroy } = self;
        write!(f, "{add} to add, {change} to change, {destroy} to destroy")
    }
}
