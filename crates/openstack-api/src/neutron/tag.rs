//! Tags of Neutron's objects.

use serde::Deserialize;

use super::{Neutron, delete, get, put};
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
            Self::Port => TagCalls {
                list: "port_tag_list",
                add: "port_tag_add",
                delete: "port_tag_delete",
                replace: "port_tags_update",
            },
            Self::FloatingIp => TagCalls {
                list: "floating_ip_tag_list",
                add: "floating_ip_tag_add",
                delete: "floating_ip_tag_delete",
                replace: "floating_ip_tags_update",
            },
            Self::SecurityGroup => TagCalls {
                list: "security_group_tag_list",
                add: "security_group_tag_add",
                delete: "security_group_tag_delete",
                replace: "security_group_tags_update",
            },
        }
    }
}

/// Names of the calls in the metrics.
struct TagCalls {
    list: &'static str,
    add: &'static str,
    delete: &'static str,
    replace: &'static str,
}

#[derive(Deserialize)]
struct Tags {
    tags: Vec<String>,
}

impl Neutron {
    /// Reads the tags of an object.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub async fn list_tags(&self, kind: Tagged, id: &str) -> Result<Vec<String>, ApiError> {
        let call = get(kind.calls().list, &[kind.collection(), id, "tags"]);
        self.client.fetch_all::<Tags>(&call).await.map(|answer| answer.tags)
    }

    /// Adds one tag; one that is there already is no error.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub async fn add_tag(&self, kind: Tagged, id: &str, tag: &str) -> Result<(), ApiError> {
        self.client.execute(&put(kind.calls().add, &[kind.collection(), id, "tags", tag])).await
    }

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
    pub async fn replace_tags(&self, kind: Tagged, id: &str, tags: &[String]) -> Result<(), ApiError> {
        let call = put(kind.calls().replace, &[kind.collection(), id, "tags"]).body("tags", tags);
        self.client.execute(&call).await
    }
}
