//! What becomes of the children that are known when one of them is seen anew.

use std::collections::BTreeSet;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::{Listener, Pool};

use super::convert;
use super::observed::{Children, ObservedPool};

impl Children {
    /// Puts a listener in the place of the one with this id; absent, it is gone.
    pub(crate) fn put_listener(&mut self, id: &str, seen: Option<Listener>) -> Result<(), Failure> {
        let place = self.listeners.iter().position(|listener| listener.id == id);
        let before = place.map(|place| self.listeners.swap_remove(place));
        let default_before = before.as_ref().and_then(|before| before.default_pool_id.as_deref());
        for pool in self.pools.iter_mut().filter(|pool| Some(pool.id.as_str()) == default_before) {
            pool.used_by.remove(id);
        }
        let Some(seen) = seen else { return Ok(()) };
        for pool in self.pools.iter_mut().filter(|pool| seen.default_pool_id.as_ref() == Some(&pool.id)) {
            pool.used_by.insert(id.to_owned());
        }
        // One that was not known was made in this chain of changes.
        let ours = before.is_none_or(|before| before.ours);
        self.listeners.push(convert::listener(seen, ours)?);
        Ok(())
    }

    /// Puts a pool in the place of the one with this id, which keeps what is in it; absent, it is gone.
    pub(crate) fn put_pool(&mut self, id: &str, seen: Option<Pool>) {
        let place = self.pools.iter().position(|pool| pool.id == id);
        let before = place.map(|place| self.pools.swap_remove(place));
        let Some(seen) = seen else { return };
        let used_by: BTreeSet<String> = seen.listeners.iter().map(|listener| listener.id.clone()).collect();
        let ours = before.as_ref().is_none_or(|before| before.ours);
        let (members, monitor) = before.map(|before| (before.members, before.monitor)).unwrap_or_default();
        self.pools.push(ObservedPool { members, monitor, ..convert::pool(seen, ours, used_by) });
    }
}
