//! The reference page is what the program does, and the table is complete.

use std::collections::BTreeSet;
use std::path::Path;

use openstack_ccm_core::advertise::IpModeChoice;
use openstack_ccm_provider_openstack::load_balancer::annotations::{
    ALL, AnnotationSource, Form, IP_MODE, is_ours, reference_markdown,
};

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/annotations.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, reference_markdown()).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == reference_markdown(),
        "docs/reference/annotations.md is out of date; regenerate it with\n\
         UPDATE_DOCS=1 cargo test -p openstack-ccm-provider-openstack --test settings reference"
    );
}

/// The annotations of OCCM, and that of Kubernetes which it reads. A key that is missing here breaks manifests.
const OF_OCCM: [&str; 35] = [
    "service.beta.kubernetes.io/openstack-internal-load-balancer",
    "service.beta.kubernetes.io/load-balancer-source-ranges",
    "loadbalancer.openstack.org/node-selector",
    "loadbalancer.openstack.org/connection-limit",
    "loadbalancer.openstack.org/floating-network-id",
    "loadbalancer.openstack.org/floating-subnet-id",
    "loadbalancer.openstack.org/floating-subnet",
    "loadbalancer.openstack.org/floating-subnet-tags",
    "loadbalancer.openstack.org/class",
    "loadbalancer.openstack.org/keep-floatingip",
    "loadbalancer.openstack.org/port-id",
    "loadbalancer.openstack.org/lb-method",
    "loadbalancer.openstack.org/proxy-protocol",
    "loadbalancer.openstack.org/x-forwarded-for",
    "loadbalancer.openstack.org/timeout-client-data",
    "loadbalancer.openstack.org/timeout-member-connect",
    "loadbalancer.openstack.org/timeout-member-data",
    "loadbalancer.openstack.org/timeout-tcp-inspect",
    "loadbalancer.openstack.org/subnet-id",
    "loadbalancer.openstack.org/network-id",
    "loadbalancer.openstack.org/member-subnet-id",
    "loadbalancer.openstack.org/flavor-id",
    "loadbalancer.openstack.org/availability-zone",
    "loadbalancer.openstack.org/enable-health-monitor",
    "loadbalancer.openstack.org/health-monitor-delay",
    "loadbalancer.openstack.org/health-monitor-timeout",
    "loadbalancer.openstack.org/health-monitor-max-retries",
    "loadbalancer.openstack.org/health-monitor-max-retries-down",
    "loadbalancer.openstack.org/hostname",
    "loadbalancer.openstack.org/load-balancer-address",
    "loadbalancer.openstack.org/default-tls-container-ref",
    "loadbalancer.openstack.org/load-balancer-id",
    "loadbalancer.openstack.org/load-balancer-tags",
    "loadbalancer.openstack.org/listener-tags",
    "loadbalancer.openstack.org/pool-tags",
];

#[test]
fn every_annotation_of_occm_is_in_the_table() {
    let of_occm: BTreeSet<&str> = OF_OCCM.into_iter().collect();
    let inherited = ALL.iter().filter(|annotation| !matches!(annotation.since, AnnotationSource::Version(_)));
    let table: BTreeSet<&str> = inherited.map(|annotation| annotation.key).collect();
    assert_eq!(table, of_occm);
}

#[test]
fn every_key_is_there_once_and_recognised_as_ours() {
    let keys: BTreeSet<&str> = ALL.iter().map(|annotation| annotation.key).collect();
    assert_eq!(keys.len(), ALL.len());
    for annotation in ALL.iter().filter(|annotation| annotation.since != AnnotationSource::Kubernetes) {
        assert!(is_ours(annotation.key), "{}", annotation.key);
        assert!(!annotation.effect.is_empty() && !annotation.effect.contains('\n'), "{}", annotation.key);
    }
}

#[test]
fn the_words_of_ip_mode_are_those_that_are_read() {
    assert_eq!(IP_MODE.form, Form::Word(&IpModeChoice::VALUES));
}
