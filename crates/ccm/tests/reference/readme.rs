//! What the README says was tested, from the table that the end-to-end tests write into `docs/reference/versions.md`.

use crate::repository;

const BEGIN: &str = "<!-- begin: written by `make docs` from docs/reference/versions.md -->\n";
const END: &str = "<!-- end -->";

/// Versions of one product in the first column of the table, the oldest first.
fn tested(versions: &str, product: &str) -> Vec<String> {
    let rows =
        versions.lines().filter_map(|line| line.strip_prefix(&format!("| {product} "))?.split(' ').next());
    let mut found: Vec<String> = rows.filter(|version| *version != "|").map(str::to_owned).collect();
    // Releases of OpenStack had names before they had numbers.
    found.sort_by_key(|version| (version.starts_with(char::is_numeric), version.clone()));
    found
}

fn list(versions: &[String]) -> String {
    let (last, others) = versions.split_last().unwrap();
    format!("{} and {last}", others.join(", "))
}

#[test]
fn the_readme_says_what_was_tested() {
    let versions = std::fs::read_to_string(repository("docs/reference/versions.md")).unwrap();
    let (kubernetes, openstack) = (tested(&versions, "Kubernetes"), tested(&versions, "OpenStack"));
    assert!(kubernetes.len() > 4 && openstack.len() > 3, "{kubernetes:?} {openstack:?}");
    let sentence = format!(
        "Tested [end to end](docs/explanation/end-to-end.md) with real services of Kubernetes {} and OpenStack {}.\n",
        list(&kubernetes),
        list(&openstack),
    );
    let path = repository("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{sentence}{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == expected, "README.md does not say what was tested; `make docs` writes it");
}
