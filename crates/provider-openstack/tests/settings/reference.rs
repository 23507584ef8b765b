//! The reference page is what the program does, and the table is complete.

use std::collections::BTreeSet;
use std::path::Path;

use openstack_ccm_core::advertise::IpModeChoice;
use openstack_ccm_provider_openstack::load_balancer::annotations::{
    ALL, AnnotationSource, Form, IP_MODE, is_ours, reference_markdown,
};

#[allow(dead_code, reason = "the tests of other tables use other parts")]
#[path = "../../../ccm/tests/occm/mod.rs"]
mod occm;

fn of_occm(key: &str) -> Option<String> {
    occm::since("annotations", key)
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/annotations.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, reference_markdown(of_occm)).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == reference_markdown(of_occm),
        "docs/reference/annotations.md is out of date; regenerate it with\n\
         UPDATE_DOCS=1 cargo test -p openstack-ccm-provider-openstack --test settings reference"
    );
}

/// A key of OCCM that is missing here breaks manifests, and one that OCCM does not have is not to be called OCCM's.
#[test]
fn the_annotations_of_occm_are_those_that_its_releases_and_merged_changes_have() {
    let of_occm: BTreeSet<&str> = occm::all("annotations").keys().map(String::as_str).collect();
    let inherited = ALL.iter().filter(|annotation| annotation.since == AnnotationSource::Occm);
    let inherited: BTreeSet<&str> = inherited.map(|annotation| annotation.key).collect();
    assert_eq!(of_occm.difference(&inherited).collect::<Vec<_>>(), Vec::<&&str>::new());
    for key in inherited.difference(&of_occm) {
        assert_eq!(occm::announced()["annotations"][*key]["state"], "merged", "{key}");
    }
}

/// What is proposed for OCCM under a name has that name here already, or the data say what is here instead.
#[test]
fn every_annotation_that_is_announced_for_occm_is_understood() {
    for (key, thread) in occm::announced()["annotations"].as_object().unwrap() {
        assert_ne!(ALL.iter().any(|annotation| annotation.key == key), thread["here"].is_string(), "{key}");
    }
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
