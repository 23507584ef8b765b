//! Writes into a Service the addresses of its load balancer and our annotations.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::announce::News;
use openstack_ccm_advertise::cluster::Cluster;
use openstack_ccm_advertise::decision::compare;
use openstack_ccm_advertise::entry::{entries, names_address, same_entries};
use openstack_ccm_advertise::{Advertisement, Mode, shared};
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::Ready;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::CallError;

use super::context::ServiceSync;
use super::event_texts;
use super::intent::{self, uid};
use super::written::{Written, missing_annotations, patch, publication};

/// Maximum of writes for one publication: the first, and fallbacks when the server dropped a mode.
const MAX_WRITES: usize = 3;

/// How a publication ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// The Service is published as wanted, or is gone.
    Done,
    /// The Service asks for something else by now: decide again.
    Stale,
    /// Each write showed other support by the API server, as several servers of different versions do: the status is not as
    /// wanted.
    Unsettled,
}

impl Published {
    /// Returns the failure of a publication that is not as wanted.
    pub(super) fn unsettled() -> Failure {
        Failure::new(
            FailureClass::Unavailable,
            "the status could not be written as intended: the API server stores ipMode in some writes and drops it in others, as during \
             an upgrade; the status is written again later",
        )
    }
}

impl ServiceSync {
    /// Publishes `ready` as this cluster supports it, and writes the annotations, in one request if both differ, and in none
    /// if nothing does.
    pub(super) async fn publish(
        &self,
        service: Arc<k8s::Service>,
        ready: &Ready,
        annotations: &Written,
    ) -> Result<Published, CallError> {
        let key = intent::key(&service);
        let ready = &self.agreed(&key, ready);
        // Edits of the status by others do not count if our last publication is known.
        let published = self.memory.with(&key, |known| known.published.clone()).flatten();
        let published = published.unwrap_or_else(|| entries(&service));
        let publication = publication(ready, &published, &self.names.settings);
        let before = Mode::of(&entries(&service));
        let mut current = service;
        for written in 0.. {
            let cluster = self.cluster(&key).await;
            let (advertisement, same) = compare(&entries(&current), &publication, &cluster);
            let missing = missing_annotations(&current, annotations);
            if same && missing.is_empty() {
                self.memory.with(&key, |known| known.published = Some(entries(&current)));
                self.advertised(&key, uid(&current), &advertisement, before);
                self.note_external_ips(&key, uid(&current), ready);
                return Ok(Published::Done);
            }
            if written == MAX_WRITES {
                break;
            }
            let send = (!same).then_some(advertisement.entries.as_slice());
            self.expect(&key, send, &missing);
            current = match self.write(&current, send, &missing).await? {
                StatusWriteEnd::Answer(answer) => answer,
                StatusWriteEnd::Gone => return Ok(Published::Done),
                StatusWriteEnd::Stale => return Ok(Published::Stale),
            };
            self.answered(&key, &current);
            let Some(sent) = send else { continue };
            if !self.written(&key, &current, sent, &advertisement) {
                self.advertised(&key, uid(&current), &advertisement, before);
                self.note_external_ips(&key, uid(&current), ready);
                return Ok(Published::Done);
            }
        }
        Ok(Published::Unsettled)
    }

    /// Takes in the answer to a status write; returns whether it changed what is known of the cluster, so that the
    /// decision has to be made again.
    fn written(
        &self,
        key: &ServiceKey,
        answer: &k8s::Service,
        sent: &[k8s::LoadBalancerIngress],
        advertisement: &Advertisement,
    ) -> bool {
        let published = entries(answer);
        self.advertise_metrics.wrote_status((advertisement.mode.as_str(), advertisement.reason.as_str()));
        let learned = self.server.answered(sent, &published);
        if !learned && !same_entries(&published, sent, false) {
            // Another write would not help: an admission plugin changes the entries.
            tracing::warn!(
                service = %key,
                "the API server stored ingress entries that differ from those that were sent: an \
                 admission plugin might change them"
            );
        }
        self.memory.with(key, |known| known.published = Some(published));
        learned
    }

    /// Removes addresses from the status that are not the Service's any more.
    pub(super) async fn withdraw(
        &self,
        service: &Arc<k8s::Service>,
        foreign: &[IpAddr],
    ) -> Result<(), CallError> {
        let (gone, kept): (Vec<_>, Vec<_>) = entries(service)
            .into_iter()
            .partition(|entry| foreign.iter().any(|address| names_address(entry, *address)));
        if gone.is_empty() {
            return Ok(());
        }
        let key = intent::key(service);
        let before = self.memory.with(&key, |known| known.ready.take()).flatten();
        self.notify_neighbours(&key, before.as_ref(), None);
        tracing::warn!(
            service = %key,
            ?foreign,
            "the status contained an address that does not belong to the Service; it is removed"
        );
        self.expect(&key, Some(&kept), &Written::new());
        if let StatusWriteEnd::Answer(answer) = self.write(service, Some(&kept), &Written::new()).await? {
            self.answered(&key, &answer);
        }
        Ok(())
    }

    /// Writes annotations alone; does nothing if they are present already.
    pub(super) async fn write_annotations(
        &self,
        service: &Arc<k8s::Service>,
        annotations: &Written,
    ) -> Result<(), CallError> {
        let missing = missing_annotations(service, annotations);
        if missing.is_empty() {
            return Ok(());
        }
        let key = intent::key(service);
        self.expect(&key, None, &missing);
        if let StatusWriteEnd::Answer(answer) = self.write(service, None, &missing).await? {
            self.answered(&key, &answer);
        }
        Ok(())
    }

    /// Writes annotations of a reconciliation that failed; only its own failure is reported.
    pub(super) async fn write_annotations_anyway(&self, service: &Arc<k8s::Service>, annotations: &Written) {
        if let Err(error) = self.write_annotations(service, annotations).await {
            tracing::warn!(service = %intent::key(service), error = error.message(), "annotations could not be written");
        }
    }

    /// Returns what is known of the cluster; probes the API server if it was not probed yet.
    async fn cluster(&self, candidate: &ServiceKey) -> Cluster {
        let server = self.server.server(candidate).await;
        let data_plane = self.nodes.borrow().fitness.clone();
        Cluster { gate: self.server.gate(), server, data_plane }
    }

    /// Remembers what is about to be written, so that the watch recognises the echo even if it is faster than the
    /// answer.
    fn expect(&self, key: &ServiceKey, entries: Option<&[k8s::LoadBalancerIngress]>, annotations: &Written) {
        self.memory.with(key, |known| {
            if let Some(entries) = entries {
                known.published = Some(entries.to_vec());
            }
            known.writes(annotations);
        });
    }

    async fn write(
        &self,
        service: &k8s::Service,
        entries: Option<&[k8s::LoadBalancerIngress]>,
        annotations: &Written,
    ) -> Result<StatusWriteEnd, CallError> {
        let key = intent::key(service);
        let patch = patch(uid(service), entries, annotations);
        let error = match self.writer.patch_status(&key, &patch).await {
            Ok(answer) => return Ok(StatusWriteEnd::Answer(answer)),
            Err(error) if error.is_not_found() => return Ok(StatusWriteEnd::Gone),
            Err(error) if error.is_invalid() || error.is_conflict() => error,
            Err(error) => return Err(error),
        };
        // Refused: the decision may be based on an outdated state.
        match self.writer.get(&key).await? {
            None => Ok(StatusWriteEnd::Gone),
            Some(newest) if uid(&newest) != uid(service) => Ok(StatusWriteEnd::Gone),
            Some(newest) if self.ours.wanted(&newest, true) != self.ours.wanted(service, true) => {
                Ok(StatusWriteEnd::Stale)
            }
            Some(_) => Err(error),
        }
    }

    /// Reports Services with the address in `externalIPs`, where clients have to come through the load balancer.
    fn note_external_ips(&self, key: &ServiceKey, uid: &str, ready: &Ready) {
        let needed = shared::needs_load_balancer(ready.path, &ready.preference);
        let others = if needed { self.cache.with_external_ip(&ready.addresses) } else { BTreeSet::new() };
        let notice = event_texts::external_ips(key, &others);
        let message = notice.as_ref().map(|notice| notice.message.clone());
        let before = self.memory.with(key, |known| std::mem::replace(&mut known.bypassed, message.clone()));
        if let Some(notice) = notice.filter(|_| before.flatten() != message) {
            self.record_event(key, uid, notice);
        }
    }

    /// Shows what another program has written, and what stays so for a while.
    pub(super) fn left_to_others(&self, key: &ServiceKey, edited: &k8s::Service) {
        let shown = Mode::of(&entries(edited));
        let changed = self.memory.with(key, |known| known.announced.left_to_others(shown)).flatten();
        if let Some((before, now)) = changed {
            self.advertise_metrics.publication_changed(before, Some(now));
        }
    }

    /// Reports to log, metrics and user in which mode the Service is published, if that is news. `found` is the mode that
    /// the status had before, whichever client published it.
    fn advertised(&self, key: &ServiceKey, uid: &str, advertisement: &Advertisement, found: Option<Mode>) {
        let news = self.memory.with(key, |known| known.announced.take_in(advertisement, found));
        let Some(News { changed, notices }) = news else { return };
        if let Some((before, now)) = changed {
            self.advertise_metrics.publication_changed(before, Some(now));
            tracing::info!(
                service = %key,
                mode = now.0,
                reason = now.1,
                because = %advertisement.reason,
                "publishing the address"
            );
        }
        for notice in notices {
            self.record_event(key, uid, notice);
        }
    }
}

/// How a write of status or annotations ended.
enum StatusWriteEnd {
    Answer(Arc<k8s::Service>),
    Gone,
    Stale,
}
