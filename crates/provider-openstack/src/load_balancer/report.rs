//! What a pass reports besides its result.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Outcome, Pass};
use openstack_ccm_core::service::Service;

use super::annotations::{
    Annotation, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID, SETTLED,
};
use super::model::observed::Ownership;

/// Value of [`OWNED_LOAD_BALANCER_ID`] where the Service uses somebody else's.
const NONE_OWNED: &str = "none";

/// Collects notices and annotations while a pass goes on, so that they are there however it ends.
#[derive(Debug, Default)]
pub(super) struct Report {
    notices: Vec<Notice>,
    annotations: BTreeMap<String, Option<String>>,
}

impl Report {
    /// Tells the user something, once.
    pub(super) fn notice(&mut self, notice: Notice) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Tells the user several things.
    pub(super) fn notices(&mut self, notices: impl IntoIterator<Item = Notice>) {
        notices.into_iter().for_each(|notice| self.notice(notice));
    }

    /// Sets an annotation of the Service, unless it is so already.
    pub(super) fn annotate(&mut self, service: &Service, key: &str, value: impl Into<String>) {
        let value = value.into();
        if service.annotations.get(key) == Some(&value) {
            self.annotations.remove(key);
        } else {
            self.annotations.insert(key.to_owned(), Some(value));
        }
    }

    /// Removes an annotation of the Service, if it is there.
    pub(super) fn remove_annotation(&mut self, service: &Service, key: &str) {
        self.annotations.remove(key);
        if service.annotations.contains_key(key) {
            self.annotations.insert(key.to_owned(), None);
        }
    }

    /// Names the Service's load balancer in its annotations, and whether it was made for the Service. The latter has
    /// to wait where it would hide that the Service used another one before.
    pub(super) fn load_balancer(&mut self, service: &Service, id: &str, ownership: Ownership) {
        self.annotate(service, LOAD_BALANCER_ID.key, id);
        if ownership == Ownership::Guest || !may_have_moved(service) {
            self.ownership(service, id, ownership);
        }
    }

    /// Notes whether the Service's load balancer was made for it.
    pub(super) fn ownership(&mut self, service: &Service, id: &str, ownership: Ownership) {
        let owned = match ownership {
            Ownership::Sole | Ownership::Shared => id,
            Ownership::Guest => NONE_OWNED,
        };
        self.annotate(service, OWNED_LOAD_BALANCER_ID.key, owned);
    }

    /// Takes back what was written for a load balancer that is gone.
    pub(super) fn forget_load_balancer(&mut self, service: &Service) {
        if is_own_output(service) {
            self.remove_annotation(service, LOAD_BALANCER_ID.key);
        }
        self.remove_annotation(service, LOAD_BALANCER_ADDRESS.key);
        self.remove_annotation(service, OWNED_LOAD_BALANCER_ID.key);
        self.remove_annotation(service, SETTLED.key);
    }

    /// The pass with its result.
    pub(super) fn end(self, result: Result<Outcome, Failure>) -> Pass {
        Pass { result, notices: self.notices, annotations: self.annotations }
    }
}

/// Whether the id in the Service's annotation was written there by an earlier pass, for a load balancer that was made
/// for the Service. Of OCCM's passes only the address tells: the user never writes it.
pub(super) fn is_own_output(service: &Service) -> bool {
    let value = |annotation: &Annotation| service.annotations.get(annotation.key);
    match value(&OWNED_LOAD_BALANCER_ID) {
        Some(owned) => value(&LOAD_BALANCER_ID) == Some(owned),
        None => value(&LOAD_BALANCER_ADDRESS).is_some(),
    }
}

/// Whether the Service carries what only controllers write into one that they serve.
pub(super) fn was_served(service: &Service) -> bool {
    [OWNED_LOAD_BALANCER_ID, LOAD_BALANCER_ADDRESS]
        .iter()
        .any(|output| service.annotations.contains_key(output.key))
}

/// Whether the Service may have used another load balancer than the one that its annotation names: it is a guest, or
/// the user changed the annotation.
pub(super) fn may_have_moved(service: &Service) -> bool {
    let owned = service.annotations.get(OWNED_LOAD_BALANCER_ID.key);
    owned.is_some_and(|owned| service.annotations.get(LOAD_BALANCER_ID.key) != Some(owned))
}

/// Fingerprint of a Service without what passes write into it.
pub(super) fn fingerprint(service: &Service) -> u64 {
    let mut input = Service { published: Vec::new(), ..service.clone() };
    for annotation in [LOAD_BALANCER_ID, LOAD_BALANCER_ADDRESS, OWNED_LOAD_BALANCER_ID, SETTLED] {
        input.annotations.remove(annotation.key);
    }
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    hasher.finish()
}
