//! Tags of Neutron's objects.

use std::collections::BTreeSet;

use super::{Neutron, delete, put};
use crate::error::ApiError;

/// Kinds of objects whose tags are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// A port.
    Port,
    /// A floating IP.
    FloatingIp,
    /// A security group.
    SecurityGroup,
}

impl Tagged {
    const fn collection(self) -> &'static str {
        match self {
            Self::Port => "ports",
            Self::FloatingIp => "floatingips",
            Self::SecurityGroup => "security-groups",
        }
    }

    const fn calls(self) -> TagCalls {
        match self {
            Self::Port => TagCalls { delete: "port_tag_delete", replace: "port_tags_update" },
            Self::FloatingIp => {
                TagCalls { delete: "floating_ip_tag_delete", replace: "floating_ip_tags_update" }
            }
            Self::SecurityGroup => {
                TagCalls { delete: "security_group_tag_delete", replace: "security_group_tags_update" }
            }
        }
    }
}

/// Names of the calls in the metrics.
struct TagCalls {
    delete: &'static str,
    replace: &'static str,
}

/// Objects by their tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagFilter {
    /// Has all of these.
    pub all: Vec<String>,
}

impl TagFilter {
    /// Objects with all of these tags.
    pub fn all(tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { all: tags.into_iter().map(Into::into).collect() }
    }
}

impl Neutron {
    /// Takes one tag away.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] when the object does not have it; any other [`ApiError`].
    pub async fn delete_tag(&self, kind: Tagged, id: &str, tag: &str) -> Result<(), ApiError> {
        self.client.execute(&delete(kind.calls().delete, &[kind.collection(), id, "tags", tag])).await
    }

    /// Makes the tags of an object exactly these.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub async fn replace_tags(
        &self,
        kind: Tagged,
        id: &str,
        tags: &BTreeSet<String>,
    ) -> Result<(), ApiError> {
        let call = put(kind.calls().replace, &[kind.collection(), id, "tags"]).body("tags", tags);
        self.client.execute(&call).await
    }
}
