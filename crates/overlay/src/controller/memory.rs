//! What is remembered of the Services. Only a help: all of it can be lost at any moment.

use std::collections::HashMap;
use std::sync::Mutex;

use openstack_ccm_advertise::announce::Announced;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::lock::lock;

use crate::rewrites::Rewrites;

/// One Service.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// `metadata.uid`: another object of the same name starts without memories.
    uid: Option<String>,
    /// What was told last about the publication.
    pub(super) announced: Announced,
    /// What else was told last.
    pub(super) told: Vec<Notice>,
    /// Why it is left alone, as a metric label, if it is.
    pub(super) refused: Option<&'static str>,
    /// When its status was written.
    pub(super) rewrites: Rewrites,
    /// Whether its status is left alone for a while because another manager keeps rewriting it.
    pub(super) contested: bool,
    /// Failed reconciliations in a row.
    pub(super) failures: u32,
}

/// The Services that a reconciliation has seen and that are chosen, or were.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<ServiceKey, Remembered>>);

impl Memory {
    /// Reads or changes what is remembered of a Service.
    pub(super) fn with<R>(
        &self,
        key: &ServiceKey,
        uid: Option<&String>,
        change: impl FnOnce(&mut Remembered) -> R,
    ) -> R {
        let mut services = lock(&self.0);
        let known = services.entry(key.clone()).or_default();
        if known.uid.as_ref() != uid {
            *known = Remembered { uid: uid.cloned(), ..Remembered::default() };
        }
        change(known)
    }

    /// Whether anything is remembered of a Service.
    pub(super) fn knows(&self, key: &ServiceKey) -> bool {
        lock(&self.0).contains_key(key)
    }

    /// Forgets a Service.
    pub(super) fn forget(&self, key: &ServiceKey) -> Option<Remembered> {
        lock(&self.0).remove(key)
    }
}
