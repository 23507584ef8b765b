//! Patches of the status and annotations of a Service, and which annotations are missing. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::Publication;
use openstack_ccm_advertise::entry::entries;
use openstack_ccm_core::advertise::SettingNames;
use openstack_ccm_core::provider::Ready;
use serde_json::{Map, Value, json};

/// Annotations with their new values; `None` removes an annotation.
pub(crate) type Written = BTreeMap<String, Option<String>>;

/// Returns the annotations that do not have their wanted value yet.
pub(super) fn missing_annotations(service: &k8s::Service, annotations: &Written) -> Written {
    let empty = BTreeMap::new();
    let present = service.metadata.annotations.as_ref().unwrap_or(&empty);
    annotations
        .iter()
        .filter(|(key, value)| present.get(*key) != value.as_ref())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns a merge patch that sets entries and annotations of the Service with this uid. The uid is a precondition: the
/// API server refuses it as immutable for another object of the same name.
pub(super) fn patch(uid: &str, entries: Option<&[k8s::LoadBalancerIngress]>, annotations: &Written) -> Value {
    let mut metadata = json!({"uid": uid});
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let mut patch = json!({"metadata": metadata});
    if let Some(entries) = entries {
        patch["status"] = json!({"loadBalancer": {"ingress": entries}});
    }
    patch
}

/// Returns the last patch after the load balancer is gone: no entries, and the final annotations.
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

/// Returns what to publish; `published` are the present entries of the status.
pub(super) fn publication<'a>(
    ready: &'a Ready,
    published: &'a [k8s::LoadBalancerIngress],
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

#[cfg(test)]
mod tests {
    use openstack_ccm_advertise::Mode;
    use openstack_ccm_advertise::cluster::{Cluster, ServerSupport};
    use openstack_ccm_advertise::decision::compare;
    use openstack_ccm_advertise::entry::of_address;
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
            done: Vec::new(),
            unfinished: None,
            requeue_after: None,
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

    /// What stays because a wish cannot be read is counted and announced as it shows, not as it would be.
    #[rstest]
    #[case::address(json!([{"ip": "192.0.2.1"}]), PROXY, Mode::Vip)]
    #[case::proxy(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]), Path::Direct, Mode::Proxy)]
    #[case::hostname(json!([{"hostname": "192.0.2.1.example.org"}]), Path::Direct, Mode::Hostname)]
    fn what_stays_is_called_what_it_is(#[case] shown: Value, #[case] path: Path, #[case] mode: Mode) {
        let published = entries(&service(&shown));
        let mut ready = ready(path);
        ready.preference.keep_published = true;
        let publication = publication(&ready, &published, &SETTINGS);
        let (kept, same) = compare(&published, &publication, &cluster(ServerSupport::Keeps));
        assert_eq!((kept.mode, kept.entries, same), (mode, published.clone(), true));
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
        let entry = of_address("192.0.2.1".parse().unwrap(), Some("Proxy"));
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
