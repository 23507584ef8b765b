//! What a step changes of an object: the request itself, as [`openstack_ccm_openstack_api`] sends it.

use openstack_ccm_openstack_api::octavia::{
    UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use crate::load_balancer::model::Tags;

/// Changes of an object with a name and tags. What is absent stays as it is.
pub(crate) trait Changes: Clone + Default + PartialEq {
    fn name(&mut self) -> &mut Option<String>;

    /// All tags from now on, those of others included.
    fn tags(&mut self) -> &mut Option<Tags>;

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags, where nothing else changes.
    fn only_tags(&self) -> Option<Tags> {
        let mut others = self.clone();
        let tags = others.tags().take();
        tags.filter(|_| others.is_empty())
    }
}

macro_rules! changes {
    ($($request:ty),+) => {
        $(impl Changes for $request {
            fn name(&mut self) -> &mut Option<String> {
                &mut self.name
            }

            fn tags(&mut self) -> &mut Option<Tags> {
                &mut self.tags
            }
        })+
    };
}

changes!(UpdateLoadBalancer, UpdateListener, UpdatePool, UpdateHealthMonitor);
