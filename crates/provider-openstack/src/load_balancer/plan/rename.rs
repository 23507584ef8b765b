//! The objects of a Service whose cluster was renamed get their new names and tags.
//!
//! Each object by itself: its name is rebuilt from its own parts, whatever its neighbours are called by now. The
//! load balancer comes last, so that a rename that was interrupted is recognised and goes on. Only what is the
//! Service's own is renamed; on a load balancer of somebody else that is all but the load balancer.

use openstack_ccm_core::notice::Notice;

use crate::load_balancer::names;
use crate::load_balancer::objects::step::Changes;
use crate::load_balancer::objects::{ObservedLoadBalancer, Ownership, Tags};

/// As OCCM names it.
const RENAMED: &str = "LoadBalancerRename";

/// From one generated name of the load balancer to another.
#[derive(Clone, Debug)]
pub(super) struct Rename {
    previous: String,
    present: String,
}

impl Rename {
    /// The rename that a load balancer still needs.
    pub(super) fn of(load_balancer: &ObservedLoadBalancer, present: &str) -> Option<Self> {
        let previous = load_balancer.previous_name.clone().filter(|previous| previous != present)?;
        Some(Self { previous, present: present.to_owned() })
    }

    /// What the user reads about it.
    pub(super) fn notice(&self) -> Notice {
        let Self { previous, present } = self;
        let message = format!("the cluster has been renamed: objects of {previous} are renamed to {present}");
        Notice::warning(RENAMED, message)
    }

    /// The new name of the load balancer itself.
    pub(super) fn load_balancer(&self, load_balancer: &ObservedLoadBalancer) -> Option<String> {
        let own = load_balancer.ownership != Ownership::Guest && load_balancer.name == self.previous;
        own.then(|| self.present.clone())
    }

    /// All tags, without the previous name; `tags` are those that change anyway.
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
