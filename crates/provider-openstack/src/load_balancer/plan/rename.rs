//! Gives a Service's objects new names and tags after the cluster was renamed.
//!
//! Each object is renamed by itself: its new name is built from its own parts, whatever other objects are called. The load balancer
//! comes last, so that an interrupted renaming is recognised and continues. Only the Service's own objects are renamed; on a load
//! balancer of another Service that excludes the load balancer.

use openstack_ccm_core::notice::Notice;

use crate::load_balancer::names;
use crate::load_balancer::objects::step::Changes;
use crate::load_balancer::objects::{ObservedLoadBalancer, Ownership, Tags};

/// OCCM uses the same reason.
const RENAMED: &str = "LoadBalancerRename";

/// A renaming from one generated name of the load balancer to another.
#[derive(Clone, Debug)]
pub(super) struct Rename {
    previous: String,
    present: String,
}

impl Rename {
    /// Returns the renaming that a load balancer still needs.
    pub(super) fn of(load_balancer: &ObservedLoadBalancer, present: &str) -> Option<Self> {
        let previous = load_balancer.previous_name.clone().filter(|previous| previous != present)?;
        Some(Self { previous, present: present.to_owned() })
    }

    /// Returns the notice for the user.
    pub(super) fn notice(&self) -> Notice {
        let Self { previous, present } = self;
        let message = format!("the cluster has been renamed: objects of {previous} are renamed to {present}");
        Notice::warning(RENAMED, message)
    }

    /// Returns the new name of the load balancer itself, if it changes.
    pub(super) fn load_balancer(&self, load_balancer: &ObservedLoadBalancer) -> Option<String> {
        let own = load_balancer.ownership != Ownership::Guest && load_balancer.name == self.previous;
        own.then(|| self.present.clone())
    }

    /// Returns all tags without the previous name, if they change; `tags` are the new tags if they change anyway.
    pub(super) fn tags(&self, observed: &Tags, tags: Option<Tags>) -> Option<Tags> {
        let mut tags = tags.unwrap_or_else(|| observed.clone());
        tags.remove(&self.previous);
        (tags != *observed).then_some(tags)
    }

    /// Adds the rename to the changes of a listener, a pool or a health monitor.
    pub(super) fn child(&self, kind: &str, name: &str, tags: &Tags, changes: &mut impl Changes) {
        *changes.name() = names::renamed_child(name, kind, &self.previous, &self.present);
        *changes.tags() = self.tags(tags, changes.tags().take());
    }
}
