//! The steps to the desired security group: each changes one object in Neutron.

use std::fmt::{self, Display, Formatter};

use super::model::Opening;
use crate::load_balancer::objects::Tags;
use crate::load_balancer::objects::step::Handle;

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GroupStep {
    /// Creates the group. Neutron adds two rules that allow all egress.
    Create { name: String, description: String },
    /// Replaces the tags of the group.
    Tag { group: Handle, tags: Tags },
    /// Adds a rule.
    Open { group: Handle, opening: Opening },
    /// Deletes a rule. `opening` is for display.
    DeleteRule { id: String, opening: Option<Opening> },
    /// Adds the group to those of a port.
    AddToPort { group: Handle, port_id: String },
    /// Removes the group from a port, with the tag that older versions of OCCM set for it.
    RemoveFromPort { group_id: String, port_id: String },
    /// Deletes the group with its rules. Neutron refuses while a port has it.
    Delete { id: String },
}

impl Display for GroupStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { name, .. } => write!(f, "create security group {name}"),
            Self::Tag { group, tags } => {
                let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
                write!(f, "tag security group {group}: [{}]", tags.join(", "))
            }
            Self::Open { group, opening } => write!(f, "open {opening} in security group {group}"),
            Self::DeleteRule { id, opening: Some(opening) } => {
                write!(f, "delete security group rule {id} ({opening})")
            }
            Self::DeleteRule { id, opening: None } => write!(f, "delete security group rule {id}"),
            Self::AddToPort { group, port_id } => write!(f, "add security group {group} to port {port_id}"),
            Self::RemoveFromPort { group_id, port_id } => {
                write!(f, "remove security group {group_id} from port {port_id}")
            }
            Self::Delete { id } => write!(f, "delete security group {id}"),
        }
    }
}
