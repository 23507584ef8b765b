//! Links between pages.

use std::collections::BTreeSet;
use std::path::Path;

use crate::pages::{Page, pages, repository};

/// Targets of the links of a page: `[text](target)`.
fn targets(page: &Page) -> impl Iterator<Item = &str> {
    page.prose.iter().flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next())
}

#[test]
fn every_link_between_pages_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let mut broken = Vec::new();
    for page in &pages {
        for target in targets(page).filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(&page.path).parent().unwrap();
            let path = if file.is_empty() { page.path.clone() } else { normal(&folder.join(file)) };
            let found = repository().join(&path).exists();
            let heading = anchor.is_empty()
                || pages
                    .iter()
                    .find(|page| page.path == path)
                    .is_some_and(|page| page.anchors().iter().any(|known| known == anchor));
            if !found || !heading {
                broken.push(format!("{}: {target}", page.path));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Without `..`, so that two ways to one file are one path.
fn normal(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str().unwrap().split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[test]
fn every_page_of_the_documentation_is_reached_from_its_index() {
    let pages = pages();
    let index = pages.iter().find(|page| page.path == "docs/README.md").unwrap();
    let linked: BTreeSet<String> =
        targets(index).map(|target| normal(&Path::new("docs").join(target))).collect();
    for page in pages.iter().filter(|page| page.path.starts_with("docs/") && page.path != "docs/README.md") {
        let folder = Path::new(&page.path).parent().unwrap().to_str().unwrap();
        assert!(
            linked.contains(&page.path) || linked.contains(folder),
            "docs/README.md does not lead to {}",
            page.path
        );
    }
}
