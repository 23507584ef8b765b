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

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What becomes of it.
    pub mark: Mark,
    /// Kind of object: `listener`, `status`, `annotations`.
    pub kind: String,
    /// Id in the cloud; absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What tells it from others of its kind: `443/TCP`.
    pub name: String,
    /// What would be other.
    pub fields: Vec<Field>,
    /// How many objects the line stands for.
    pub count: usize,
}
