//! Each type of a crate has a name of its own, so that a name leads to one declaration.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use rstest::rstest;

use crate::layers::{files, product};

/// The types that a crate declares, each with its files. Tests are left out, and so are the associated types of traits, which are
/// indented: what they are called is not the crate's choice.
fn declared(package: &str) -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src");
    let visible = r"(?:pub(?:\([^)]*\))? )?";
    let declaration =
        Regex::new(&format!(r"(?m)^(?:\s*{visible}(?:struct|enum|union|trait)|{visible}type) (\w+)"))
            .unwrap();
    let mut declared = BTreeMap::<_, Vec<_>>::new();
    for file in files(&root) {
        let inside = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        if inside.contains("tests") {
            continue;
        }
        for found in declaration.captures_iter(&product(&file)) {
            declared.entry(found[1].to_owned()).or_default().push(inside.clone());
        }
    }
    declared
}

#[rstest]
#[case::advertise("advertise", 30)]
#[case::canary("canary", 20)]
#[case::controllers("controllers", 60)]
#[case::core("core", 40)]
#[case::kube_sim("kube-sim", 50)]
#[case::manager("manager", 60)]
#[case::openstack_api("openstack-api", 100)]
#[case::openstack_sim("openstack-sim", 80)]
#[case::overlay("overlay", 20)]
#[case::provider("provider-openstack", 250)]
#[case::runtime("runtime", 15)]
#[case::tools("tools", 80)]
fn no_type_name_is_declared_twice_within_a_crate(#[case] package: &str, #[case] at_least: usize) {
    let mut declared = declared(package);
    assert!(declared.len() >= at_least, "hardly any type is found: {}", declared.len());
    declared.retain(|_, files| files.len() > 1);
    assert!(declared.is_empty(), "{package}: {declared:#?}");
}
