//! Where the table of a folder says so, each module names only modules above it in the table: no circle of modules.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use rstest::rstest;

/// A folder of modules whose root has a table of them.
struct Folder {
    path: PathBuf,
    /// The folder as a path in Rust.
    module: &'static str,
    /// The modules in the order of the table.
    order: Vec<String>,
}

impl Folder {
    fn new(root: &str, module: &'static str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(root);
        let path = root.parent().unwrap().to_owned();
        let row = Regex::new(r"(?m)^//! \|(?: \w* ?\|)? \[?`(\w+)`(.*?)\]? \|").unwrap();
        let others = Regex::new(r"`(\w+)`").unwrap();
        let text = fs::read_to_string(&root).unwrap();
        let names = |row: regex::Captures<'_>| {
            let rest: Vec<String> = others.captures_iter(&row[2]).map(|one| one[1].to_owned()).collect();
            std::iter::once(row[1].to_owned()).chain(rest).collect::<Vec<_>>()
        };
        let order = row.captures_iter(&text).flat_map(names).collect();
        Self { path, module, order }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.order.iter().position(|one| one == name)
    }

    /// The modules of the folder that a file names, without its tests and comments.
    fn named(&self, file: &Path) -> Vec<String> {
        let text = fs::read_to_string(file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = product.lines().map(|line| line.split("//").next().unwrap_or_default());
        let code: String = lines.collect::<Vec<_>>().join(" ");
        let inside = file.strip_prefix(&self.path).unwrap();
        let depth = inside.components().count();
        let is_root = depth == 1 || inside.ends_with("mod.rs") && depth == 2;
        let parent = if is_root { format!(r"(?:{}|\bsuper)", self.module) } else { self.module.to_owned() };
        let path = Regex::new(&format!(r"{parent}::(?:(\w+)|\{{([^;]*)\}};)")).unwrap();
        let word = Regex::new(r"\w+").unwrap();
        let mut named = Vec::new();
        for found in path.captures_iter(&code) {
            named.extend(found.get(1).map(|one| one.as_str().to_owned()));
            let group = found.get(2).map(|group| group.as_str()).unwrap_or_default();
            named.extend(word.find_iter(group).map(|one| one.as_str().to_owned()));
        }
        named.retain(|name| self.order.contains(name));
        named
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

#[rstest]
#[case::load_balancer("provider-openstack/src/load_balancer/mod.rs", "crate::load_balancer", 100)]
#[case::service("controllers/src/service/mod.rs", "crate::service", 60)]
#[case::flags("ccm/src/args/mod.rs", "crate::args", 10)]
#[case::subcommands("ccm/src/subcommands/mod.rs", "crate::subcommands", 2)]
#[case::program("ccm/src/lib.rs", "crate", 100)]
fn each_module_names_only_modules_above_it(
    #[case] root: &str,
    #[case] module: &'static str,
    #[case] at_least: usize,
) {
    let folder = Folder::new(root, module);
    let mut seen = 0;
    for file in files(&folder.path) {
        let inside = file.strip_prefix(&folder.path).unwrap().to_string_lossy().into_owned();
        let own = inside.split(['/', '.']).next().unwrap_or_default().to_owned();
        if inside.contains("tests") || ["mod", "lib", "main"].contains(&own.as_str()) {
            continue;
        }
        let place = folder.place(&own).unwrap_or_else(|| panic!("{root}: {own} is not in the table"));
        for name in folder.named(&file).into_iter().filter(|name| *name != own) {
            seen += 1;
            assert!(folder.place(&name) < Some(place), "{root}: {inside} names {name}, which is below it");
        }
    }
    assert!(seen >= at_least, "{root}: hardly any module names another: {seen}");
}
