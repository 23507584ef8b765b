//! What is known of the address pairs, so that a round in which nothing changed needs no list of ports.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openstack_ccm_core::route::NodeRoute;
use tokio::time::Instant;

/// After so long the ports are looked at again, to find what was changed there by hand.
const LONGEST_TRUST: Duration = Duration::from_secs(300);

/// The routes whose pair was seen or made. It may be lost at any time.
#[derive(Debug, Default)]
pub(super) struct Verified {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    routes: BTreeSet<NodeRoute>,
    since: Option<Instant>,
}

impl Verified {
    /// Those of `routes` whose pair has to be looked at.
    pub(super) fn missing(&self, routes: &[NodeRoute]) -> Vec<NodeRoute> {
        let mut known = self.known();
        if known.since.is_some_and(|since| since.elapsed() >= LONGEST_TRUST) {
            *known = Known::default();
        }
        routes.iter().filter(|route| !known.routes.contains(route)).copied().collect()
    }

    /// These are as they should be.
    pub(super) fn add<'a>(&self, routes: impl Iterator<Item = &'a NodeRoute>) {
        let mut known = self.known();
        known.routes.extend(routes);
        known.since.get_or_insert_with(Instant::now);
    }

    /// These are about to go.
    pub(super) fn forget(&self, routes: &[NodeRoute]) {
        let mut known = self.known();
        known.routes.retain(|route| !routes.contains(route));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
