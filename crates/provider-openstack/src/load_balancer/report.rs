//! What a reconciliation reports besides its result.

use std::collections::BTreeMap;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Outcome, Reconciliation};
use openstack_ccm_core::service::Service;

use super::annotations::{CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID};
use crate::load_balancer::identity::outputs::{is_written_by_us, may_have_moved};
use crate::load_balancer::objects::Ownership;

/// Value of [`OWNED_LOAD_BALANCER_ID`] if the Service uses a load balancer of another owner.
const NONE_OWNED: &str = "none";

/// Collects notices and annotations during a reconciliation, so that they are available however it ends.
#[derive(Debug, Default)]
pub(crate) struct Report {
    notices: Vec<Notice>,
    annotations: BTreeMap<String, Option<String>>,
    foreign_addresses: Vec<IpAddr>,
}

impl Report {
    /// Reports a notice to the user, once.
    pub(crate) fn notice(&mut self, notice: Notice) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    pub(crate) fn notices(&mut self, notices: impl IntoIterator<Item = Notice>) {
        notices.into_iter().for_each(|notice| self.notice(notice));
    }

    /// Sets an annotation of the Service, unless it has this value already.
    pub(crate) fn annotate(&mut self, service: &Service, key: &str, value: impl Into<String>) {
        let value = value.into();
        if service.annotations.get(key) == Some(&value) {
            self.annotations.remove(key);
        } else {
            self.annotations.insert(key.to_owned(), Some(value));
        }
    }

    pub(crate) fn remove_annotation(&mut self, service: &Service, key: &str) {
        self.annotations.remove(key);
        if service.annotations.contains_key(key) {
            self.annotations.insert(key.to_owned(), None);
        }
    }

    /// Writes the load balancer's id to the Service's annotations, and whether it was made for the Service. The latter has to wait
    /// if it would hide that the Service used another load balancer before.
    pub(crate) fn load_balancer(&mut self, service: &Service, id: &str, ownership: Ownership) {
        self.annotate(service, LOAD_BALANCER_ID.key, id);
        if ownership == Ownership::Guest || !may_have_moved(service) {
            self.ownership(service, id, ownership);
        }
    }

    /// Writes whether the Service's load balancer was made for it.
    pub(crate) fn ownership(&mut self, service: &Service, id: &str, ownership: Ownership) {
        let owned = match ownership {
            Ownership::Sole | Ownership::Shared => id,
            Ownership::Guest => NONE_OWNED,
        };
        self.annotate(service, OWNED_LOAD_BALANCER_ID.key, owned);
    }

    /// Withdraws addresses that are now used by others.
    pub(crate) fn withdraw(&mut self, service: &Service, addresses: Vec<IpAddr>) {
        let annotated = service.annotations.get(LOAD_BALANCER_ADDRESS.key);
        let annotated = annotated.and_then(|address| address.parse().ok());
        if annotated.is_some_and(|address| addresses.contains(&address)) {
            self.remove_annotation(service, LOAD_BALANCER_ADDRESS.key);
        }
        self.foreign_addresses.extend(addresses);
    }

    /// Removes the annotations about a load balancer that is gone.
    pub(crate) fn forget_load_balancer(&mut self, service: &Service) {
        if is_written_by_us(service) {
            self.remove_annotation(service, LOAD_BALANCER_ID.key);
        }
        self.remove_annotation(service, LOAD_BALANCER_ADDRESS.key);
        self.remove_annotation(service, OWNED_LOAD_BALANCER_ID.key);
        self.remove_annotation(service, CONVERGED_DIGEST.key);
    }

    /// Returns the result with notices and annotations. The annotation of earlier versions is only removed by a write that is
    /// needed anyway: each write of a Service is sent to the service proxy of every node.
    pub(crate) fn end(mut self, service: &Service, result: Result<Outcome, Failure>) -> Reconciliation {
        if !self.annotations.is_empty() {
            self.remove_annotation(service, CONVERGED_DIGEST.key);
        }
        let Self { notices, annotations, foreign_addresses } = self;
        Reconciliation { result, notices, annotations, foreign_addresses }
    }
}
