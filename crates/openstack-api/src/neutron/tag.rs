//! Tags of Neutron's objects.

use std::collections::BTreeSet;

use super::{Neutron, V2};
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// Kinds of objects whose tags are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    Port,
    FloatingIp,
    SecurityGroup,
}

impl Tagged {
    /// Path of the collection, and the names in the metrics of the calls that take one tag away and that replace all.
    const fn names(self) -> [&'static str; 3] {
        match self {
            Self::Port => ["ports", "port_tag_delete", "port_tags_update"],
            Self::FloatingIp => ["floatingips", "floating_ip_tag_delete", "floating_ip_tags_update"],
            Self::SecurityGroup => {
                ["security-groups", "security_group_tag_delete", "security_group_tags_update"]
            }
        }
    }
}

impl Neutron {
    /// Takes one tag away.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] when the object does not have it; any other [`ApiError`].
    pub async fn delete_tag(&self, kind: Tagged, id: &str, tag: &str) -> Result<(), ApiError> {
        let [collection, name, _] = kind.names();
        self.client.execute(&V2.delete(name, &[collection, id, "tags", tag])).await
    }

    /// Makes the tags of an object exactly these.
    pub async fn replace_tags(
        &self,
        kind: Tagged,
        id: &str,
        tags: &BTreeSet<String>,
    ) -> Result<(), ApiError> {
        let [collection, _, name] = kind.names();
        let call = V2.put(name, &[collection, id, "tags"]).body("tags", tags);
        let answer = self.client.execute(&call);
        match kind {
            Tagged::FloatingIp => self.client.noting(OptionalPart::FloatingIpTags, answer).await,
            Tagged::Port | Tagged::SecurityGroup => answer.await,
        }
    }
}
