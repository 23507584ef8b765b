//! Tags of Neutron's objects.

use std::collections::BTreeSet;

use super::{Neutron, V2};
use crate::error::ApiError;
use crate::optional::OptionalPart;

/// Kinds of objects whose tags this program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    Port,
    FloatingIp,
    SecurityGroup,
}

impl Tagged {
    /// Returns the path of the collection, and the metric names of the calls that remove one tag and that replace all.
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
    /// Removes one tag.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] if the object does not have the tag; any other [`ApiError`].
    pub async fn delete_tag(&self, kind: Tagged, id: &str, tag: &str) -> Result<(), ApiError> {
        let [collection, name, _] = kind.names();
        self.client.execute(&V2.delete(name, &[collection, id, "tags", tag])).await
    }

    /// Replaces all tags of an object.
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
            Tagged::FloatingIp => self.client.noting(OptionalPart::FloatingIpTags, &call, answer).await,
            Tagged::SecurityGroup => self.client.noting(OptionalPart::SecurityGroupTags, &call, answer).await,
            Tagged::Port => answer.await,
        }
    }
}
