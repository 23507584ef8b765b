//! One line of a plan, with the marks of `terraform plan`.

use std::fmt;

use serde::Serialize;

use super::fields::Field;

/// The change to an object.
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
    /// The change to the object.
    pub mark: Mark,
    /// The kind of object: `listener`, `status`, `annotations`.
    pub kind: String,
    /// The id in the cloud; absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name that distinguishes the object from others of its kind: `443/TCP`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The pool of the members.
    #[serde(skip)]
    pub parent: Option<String>,
    /// The attributes that would change.
    pub fields: Vec<Field>,
    /// The number of objects in this line.
    pub count: usize,
}

/// The numbers of objects that would be created, changed and deleted.
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
    /// Sums these lines.
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
