//! What is written into a Service: the addresses of its load balancer and our annotations.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::announce::News;
use openstack_ccm_advertise::cluster::Cluster;
use openstack_ccm_advertise::compare::compare;
use openstack_ccm_advertise::entry::{IngressEntry, same_entries};
use openstack_ccm_advertise::status::{entries, ingress};
use openstack_ccm_advertise::{Advertisement, Mode, Publication};
use openstack_ccm_core::advertise::SettingNames;
use openstack_ccm_core::provider::Ready;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::CallError;
use serde_json::{Map, Value, json};

use super::change::Written;
use super::intent::{self, uid};
use super::sync::ServiceSync;

/// Writes that one publication may need: one, and the fallback when the server dropped a mode.
const WRITES: usize = 3;

/// How a publication ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// The Service says what it should, or is gone.
    Done,
    /// The Service asks for something else by now: decide again.
    Stale,
}

/// The annotations that do not have their wanted value yet.
pub(super) fn missing_annotations(service: &k8s::Service, annotations: &Written) -> Written {
    let empty = BTreeMap::new();
    let present = service.metadata.annotations.as_ref().unwrap_or(&empty);
    annotations
        .iter()
        .filter(|(key, value)| present.get(*key) != value.as_ref())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// A merge patch that sets entries and annotations of the Service with this uid. The uid is a precondition: another
/// object of the same name refuses it as immutable.
fn patch(uid: &str, entries: Option<&[IngressEntry]>, annotations: &Written) -> Value {
    let mut metadata = json!({"uid": uid});
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let mut patch = json!({"metadata": metadata});
    if let Some(entries) = entries {
        patch["status"] = json!({"loadBalancer": {"ingress": ingress(entries)}});
    }
    patch
}

/// What is left to be written when the load balancer is gone: no entries, and the annotations that say so.
pub(super) fn clearing(service: &k8s::Service, annotations: &Written) -> Option<Value> {
    let annotations = missing_annotations(service, annotations);
    let mut patch = Map::new();
    if !annotations.is_empty() {
        patch.insert("metadata".into(), json!({"annotations": annotations}));
    }
    if !entries(service).is_empty() {
        patch.insert("status".into(), json!({"loadBalancer": {"ingress": null}}));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// What there is to publish; `published` is what the status said so far.
pub(super) fn publication<'a>(
    ready: &'a Ready,
    published: &'a [IngressEntry],
    settings: &'a SettingNames,
) -> Publication<'a> {
    Publication {
        addresses: &ready.addresses,
        path: ready.path,
        preference: &ready.preference,
        access: &ready.cluster_access,
        published,
        settings,
    }
}

impl ServiceSync {
    /// Makes the Service say what `ready` means on this cluster, and writes the annotations, in one request where
    /// both differ, and in none where nothing does.
    pub(super) async fn publish(
        &self,
        service: Arc<k8s::Service>,
        ready: &Ready,
        annotations: &Written,
    ) -> Result<Published, CallError> {
        let key = intent::key(&service);
        let ready = &self.agreed(&key, ready);
        // What others wrote into the status decides nothing where it is known what was published.
        let published = self.memory.with(&key, |known| known.published.clone()).flatten();
        let published = published.unwrap_or_else(|| entries(&service));
        let publication = publication(ready, &published, &self.names.settings);
        let before = Mode::of(&entries(&service));
        let mut current = service;
        for _ in 0..WRITES {
            let cluster = self.cluster(&key).await;
            let (advertisement, same) = compare(&entries(&current), &publication, &cluster);
            let missing = missing_annotations(&current, annotations);
            if same && missing.is_empty() {
                self.memory.with(&key, |known| known.published = Some(entries(&current)));
                self.advertised(&key, uid(&current), &advertisement, before);
                return Ok(Published::Done);
            }
            let send = (!same).then_some(advertisement.entries.as_slice());
            self.expect(&key, send, &missing);
            current = match self.write(&current, send, &missing).await? {
                WriteEnd::Answer(answer) => answer,
                WriteEnd::Gone => return Ok(Published::Done),
                WriteEnd::Stale => return Ok(Published::Stale),
            };
            self.answered(&key, &current);
            let Some(sent) = send else { continue };
            if !self.written(&key, &current, sent, &advertisement) {
                self.advertised(&key, uid(&current), &advertisement, before);
                return Ok(Published::Done);
            }
        }
        Ok(Published::Done)
    }

    /// Takes in the answer to a status write; answers whether it showed the cluster in another light, so that the
    /// decision has to be made again.
    fn written(
        &self,
        key: &ServiceKey,
        answer: &k8s::Service,
        sent: &[IngressEntry],
        advertisement: &Advertisement,
    ) -> bool {
        let published = entries(answer);
        self.advertise_metrics.wrote_status((advertisement.mode.as_str(), advertisement.reason.as_str()));
        let learned = self.server.answered(sent, &published);
        if !learned && !same_entries(&published, sent, false) {
            // Writing it again would not help: something admits and changes it.
            tracing::warn!(service = %key, "the API server stored other ingress entries than were sent");
        }
        self.memory.with(key, |known| known.published = Some(published));
        learned
    }

    /// Writes annotations alone; nothing happens when they are there already.
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
        if let WriteEnd::Answer(answer) = self.write(service, None, &missing).await? {
            self.answered(&key, &answer);
        }
        Ok(())
    }

    /// What is known of the cluster now; asks the API server if it was not asked yet.
    async fn cluster(&self, candidate: &ServiceKey) -> Cluster {
        let server = self.server.server(candidate).await;
        let data_plane = self.nodes.borrow().fitness.clone();
        Cluster { gate: self.server.gate(), server, data_plane }
    }

    /// Remembers what is about to be written, so that the watch knows the echo even when it is faster than the
    /// answer.
    fn expect(&self, key: &ServiceKey, entries: Option<&[IngressEntry]>, annotations: &Written) {
        self.memory.with(key, |known| {
            if let Some(entries) = entries {
                known.published = Some(entries.to_vec());
            }
            known.written.extend(annotations.clone());
        });
    }

    async fn write(
        &self,
        service: &k8s::Service,
        entries: Option<&[IngressEntry]>,
        annotations: &Written,
    ) -> Result<WriteEnd, CallError> {
        let key = intent::key(service);
        let patch = patch(uid(service), entries, annotations);
        let error = match self.writer.patch_status(&key, &patch).await {
            Ok(answer) => return Ok(WriteEnd::Answer(answer)),
            Err(error) if error.is_not_found() => return Ok(WriteEnd::Gone),
            Err(error) if error.is_invalid() || error.is_conflict() => error,
            Err(error) => return Err(error),
        };
        // Refused: the decision may have been made on a state that is gone.
        match self.writer.get(&key).await? {
            None => Ok(WriteEnd::Gone),
            Some(newest) if uid(&newest) != uid(service) => Ok(WriteEnd::Gone),
            Some(newest) if self.ours.wanted(&newest, true) != self.ours.wanted(service, true) => {
                Ok(WriteEnd::Stale)
            }
            Some(_) => Err(error),
        }
    }

    /// Tells log, metrics and user in which mode the Service is published, when that is news. `found` is the mode that
    /// the status had before, by whoever published it.
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
                "publication of the load balancer decided"
            );
        }
        for notice in notices {
            self.tell(key, uid, notice);
        }
    }
}

/// How a write of status or annotations ended.
enum WriteEnd {
    Answer(Arc<k8s::Service>),
    Gone,
    Stale,
}

#[cfg(test)]
mod tests {
    use openstack_ccm_advertise::cluster::ServerSupport;
    use openstack_ccm_advertise::entry::IpMode;
    use openstack_ccm_advertise::node::Fitness;
    use openstack_ccm_core::advertise::{ClusterAccess, Needs, Path, Preference};
    use rstest::rstest;
    use serde_json::from_value;

    use super::*;

    fn service(ingress: &Value) -> k8s::Service {
        from_value(json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u1", "annotations": {"kept": "1", "id": "old"}},
            "status": {"loadBalancer": {"ingress": ingress}},
        }))
        .unwrap()
    }

    fn ready(path: Path) -> Ready {
        Ready {
            addresses: vec!["192.0.2.1".parse().unwrap()],
            path,
            preference: Preference { hostname_suffix: Some("example.org".into()), ..Preference::default() },
            cluster_access: ClusterAccess::Open,
            changed: false,
            unfinished: None,
            again_after: None,
        }
    }

    const SETTINGS: SettingNames = SettingNames {
        ip_mode_annotation: "lb.example.org/ip-mode",
        hostname_annotation: "lb.example.org/hostname",
        cluster_sources_annotation: None,
        ip_mode_setting: "--ip-mode",
        hostname_suffix_setting: "--hostname-suffix",
    };

    fn cluster(server: ServerSupport) -> Cluster {
        Cluster { gate: None, server, data_plane: Fitness::Fit }
    }

    const PROXY: Path = Path::ThroughLoadBalancer(Needs::ProxyProtocol);

    /// The status is written only when it says something else.
    ///
    /// Framework: S20, same.
    /// Framework: S21, better: an absent `ipMode` means `VIP`, so that nothing is written over and over.
    /// Framework: S22, same.
    #[rstest]
    #[case::s20_same(json!([{"ip": "192.0.2.1", "ipMode": "VIP"}]), Path::Direct, ServerSupport::Keeps, true)]
    #[case::s21_absent_is_vip(json!([{"ip": "192.0.2.1"}]), Path::Direct, ServerSupport::Keeps, true)]
    #[case::s21_old_server(json!([{"ip": "192.0.2.1"}]), Path::Direct, ServerSupport::Drops, true)]
    #[case::s22_mode_differs(json!([{"ip": "192.0.2.1", "ipMode": "VIP"}]), PROXY, ServerSupport::Keeps, false)]
    #[case::proxy_published(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]), PROXY, ServerSupport::Keeps, true)]
    #[case::fallback_published(json!([{"hostname": "192.0.2.1.example.org"}]), PROXY, ServerSupport::Drops, true)]
    #[case::downgrade(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]), PROXY, ServerSupport::Drops, false)]
    #[case::upgrade(json!([{"hostname": "192.0.2.1.example.org"}]), PROXY, ServerSupport::Keeps, false)]
    #[case::unknown_server_keeps_what_is_there(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]), PROXY, ServerSupport::Unknown, true)]
    #[case::unknown_server_new_service(json!([]), PROXY, ServerSupport::Unknown, false)]
    #[case::unknown_mode_is_repaired(json!([{"ip": "192.0.2.1", "ipMode": "Router"}]), PROXY, ServerSupport::Keeps, false)]
    #[case::empty_entry_is_repaired(json!([{}]), Path::Direct, ServerSupport::Keeps, false)]
    fn framework_s20_s21_s22_the_status_is_written_only_when_it_differs(
        #[case] published: Value,
        #[case] path: Path,
        #[case] server: ServerSupport,
        #[case] same: bool,
    ) {
        let published = entries(&service(&published));
        let ready = ready(path);
        assert_eq!(
            compare(&published, &publication(&ready, &published, &SETTINGS), &cluster(server)).1,
            same
        );
    }

    /// A patch carries only what is ours and differs: annotations of others and the spec cannot be damaged.
    ///
    /// Framework: S26, same.
    #[test]
    fn framework_s26_a_patch_carries_only_what_is_ours_and_differs() {
        let annotations = Written::from([
            ("id".into(), Some("new".into())),
            ("kept".into(), Some("1".into())),
            ("gone".into(), None),
        ]);
        let missing = missing_annotations(&service(&json!([])), &annotations);
        let entry = IngressEntry::address("192.0.2.1".parse().unwrap(), Some(IpMode::Proxy));
        assert_eq!(
            patch("u1", Some(&[entry]), &missing),
            json!({
                "metadata": {"uid": "u1", "annotations": {"id": "new"}},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Proxy"}]}},
            })
        );
    }

    /// An empty status is not cleared again.
    ///
    /// Framework: S25, same.
    #[test]
    fn framework_s25_nothing_is_cleared_twice() {
        let removed = Written::from([("id".into(), None)]);
        assert_eq!(
            clearing(&service(&json!([{"ip": "192.0.2.1"}])), &removed),
            Some(json!({
                "metadata": {"annotations": {"id": null}},
                "status": {"loadBalancer": {"ingress": null}},
            }))
        );
        assert_eq!(clearing(&service(&json!([])), &Written::new()), None);
    }
}
