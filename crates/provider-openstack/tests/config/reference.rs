//! The reference page is what the program does.

use std::path::Path;

use openstack_ccm_provider_openstack::config::reference_markdown;

#[allow(dead_code, reason = "the tests of other tables use other parts")]
#[path = "../../../ccm/tests/occm/mod.rs"]
mod occm;

fn of_occm(key: &str) -> Option<String> {
    occm::since("keys", key)
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cloud-conf.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, reference_markdown(of_occm)).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == reference_markdown(of_occm),
        "docs/reference/cloud-conf.md is out of date; regenerate it with\n\
         UPDATE_DOCS=1 cargo test -p openstack-ccm-provider-openstack --test config reference"
    );
}

/// A key that is missing here would be ignored at the switch.
#[test]
fn every_key_of_occm_is_on_the_page() {
    let page = reference_markdown(of_occm);
    for (key, entry) in occm::all("keys") {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
        assert!(row.is_some_and(|row| row.contains("| OCCM")), "{key} {entry}: {row:?}");
    }
    let in_no_release = page.lines().find(|line| line.ends_with("|  |") && line.starts_with("| `"));
    assert_eq!(in_no_release, None, "called OCCM's, and no release has it");
}
