//! The reference page is what the program does.

use std::path::Path;

use openstack_ccm_provider_openstack::config::reference_markdown;

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cloud-conf.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, reference_markdown()).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == reference_markdown(),
        "docs/reference/cloud-conf.md is out of date; regenerate it with\n\
         UPDATE_DOCS=1 cargo test -p openstack-ccm-provider-openstack --test config reference"
    );
}
