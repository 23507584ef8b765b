//! Each module names only modules above it in the table of this folder.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/load_balancer");

/// The modules in the order of the table.
fn order() -> Vec<String> {
    let row = Regex::new(r"(?m)^//! \| \w* ?\| \[?`(\w+)`").expect("an expression");
    let text = fs::read_to_string(format!("{FOLDER}/mod.rs")).expect("the folder has a root");
    row.captures_iter(&text).map(|row| row[1].to_owned()).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

/// The modules of this folder that a file names, without its tests and comments.
fn named(path: &Path, order: &[String]) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a file");
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = product.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code: String = lines.collect::<Vec<_>>().join(" ");
    let inside = path.strip_prefix(FOLDER).expect("a file of the folder");
    let is_root =
        inside.components().count() == 1 || inside.ends_with("mod.rs") && inside.components().count() == 2;
    let parent = if is_root { r"(?:crate::load_balancer|\bsuper)" } else { "crate::load_balancer" };
    let path = Regex::new(&format!(r"{parent}::(?:(\w+)|\{{([^;]*)\}};)")).expect("an expression");
    let word = Regex::new(r"\w+").expect("an expression");
    let mut named = Vec::new();
    for found in path.captures_iter(&code) {
        named.extend(found.get(1).map(|one| one.as_str().to_owned()));
        let group = found.get(2).map(|group| group.as_str()).unwrap_or_default();
        named.extend(word.find_iter(group).map(|one| one.as_str().to_owned()));
    }
    named.retain(|name| order.contains(name));
    named
}

#[test]
fn each_module_names_only_modules_above_it() {
    let order = order();
    assert!(order.len() > 15, "the table was not found: {order:?}");
    let place = |name: &str| order.iter().position(|one| one == name);
    let mut seen = 0;
    for path in files(Path::new(FOLDER)) {
        let inside = path.strip_prefix(FOLDER).expect("a file of the folder").to_string_lossy().into_owned();
        let module = inside.split(['/', '.']).next().unwrap_or_default().to_owned();
        if inside.contains("tests") || ["mod", "layers"].contains(&module.as_str()) {
            continue;
        }
        let own = place(&module).unwrap_or_else(|| panic!("{module} is not in the table"));
        for name in named(&path, &order).into_iter().filter(|name| *name != module) {
            seen += 1;
            assert!(place(&name) < Some(own), "{inside} names {name}, which is below it");
        }
    }
    assert!(seen > 100, "hardly any module names another: {seen}");
}
