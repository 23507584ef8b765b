//! No circle of modules. Where the table of a folder says so, each module names only modules above it in the table.

use std::collections::{BTreeMap, BTreeSet};
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

    /// The modules of the table that a file names.
    fn named(&self, file: &Path) -> Vec<String> {
        let mut named = named(&self.path, self.module, file);
        named.retain(|name| self.order.contains(name));
        named
    }
}

/// What a file names of the folder that it is in, directly or deeper, without its tests and comments: modules, and what the folder
/// exports again.
fn named(folder: &Path, module: &str, file: &Path) -> Vec<String> {
    let code = code(file);
    let inside = file.strip_prefix(folder).unwrap();
    let depth = inside.components().count();
    let is_root = depth == 1 || inside.ends_with("mod.rs") && depth == 2;
    let parent = if is_root { format!(r"(?:\b{module}|\bsuper)") } else { format!(r"\b{module}") };
    let path = Regex::new(&format!(r"{parent}::(?:(\w+)|\{{([^;]*)\}};)")).unwrap();
    let mut named = Vec::new();
    for found in path.captures_iter(&code) {
        named.extend(found.get(1).map(|one| one.as_str().to_owned()));
        named.extend(first_segments(found.get(2).map_or("", |group| group.as_str())).map(|(first, _)| first));
    }
    named
}

/// A file without its tests.
pub(crate) fn product(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// The code of a file on one line.
fn code(file: &Path) -> String {
    let product = product(file);
    let lines = product.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join(" ")
}

/// The paths of a group of imports: the first segment of each, and what follows it.
fn first_segments(group: &str) -> impl Iterator<Item = (String, String)> {
    let mut depth = 0;
    let paths = group.split(move |letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        depth == 0 && letter == ','
    });
    paths.filter(|path| !path.trim().is_empty()).map(|path| {
        let (first, rest) = path.trim().split_once("::").unwrap_or((path.trim(), ""));
        (first.to_owned(), rest.to_owned())
    })
}

/// The modules of a folder, each with the modules beside it that it names.
fn siblings(folder: &Path, module: &str) -> BTreeMap<String, BTreeSet<String>> {
    let name = |file: &Path| {
        let inside = file.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        inside.split(['/', '.']).next().unwrap_or_default().to_owned()
    };
    let is_module = |file: &Path| {
        let inside = file.strip_prefix(folder).unwrap().to_string_lossy();
        !inside.contains("tests") && !["mod", "lib", "main"].contains(&name(file).as_str())
    };
    let files: Vec<PathBuf> = files(folder).into_iter().filter(|file| is_module(file)).collect();
    let modules: BTreeSet<String> = files.iter().map(|file| name(file)).collect();
    let roots = ["mod.rs", "lib.rs", "main.rs"].map(|root| folder.join(root));
    let root = roots.into_iter().find(|root| root.exists());
    let exported = exported(&code(&root.unwrap()));
    let mut siblings = BTreeMap::<_, BTreeSet<_>>::new();
    for file in files {
        let own = name(&file);
        let named = named(folder, module, &file).into_iter();
        let named = named.map(|one| exported.get(&one).cloned().unwrap_or(one));
        let others: BTreeSet<_> = named.filter(|one| modules.contains(one) && *one != own).collect();
        siblings.entry(own).or_default().extend(others);
    }
    siblings
}

/// What a module exports again of its children: the child by name.
fn exported(code: &str) -> BTreeMap<String, String> {
    let import = Regex::new(r"\buse (?:self::)?(\w+)::(?:\{([^;]*)\}|([^;{]+));").unwrap();
    let mut exported = BTreeMap::new();
    for found in import.captures_iter(code) {
        let group = found.get(2).or(found.get(3)).map_or("", |group| group.as_str());
        for (first, rest) in first_segments(group) {
            let path = if rest.is_empty() { first } else { rest };
            let name = path.rsplit([' ', ':']).next().unwrap_or_default();
            exported.insert(name.to_owned(), found[1].to_owned());
        }
    }
    exported
}

/// The files of a folder and of those in it.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

#[rstest]
#[case::load_balancer("provider-openstack/src/load_balancer/mod.rs", "crate::load_balancer", 100)]
#[case::service("controllers/src/service/mod.rs", "crate::service", 60)]
#[case::end_to_end("../e2e/src/main.rs", "crate", 100)]
#[case::flags("manager/src/args/mod.rs", "crate::args", 10)]
#[case::manager("manager/src/lib.rs", "crate", 60)]
#[case::tools("tools/src/lib.rs", "crate", 30)]
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

#[rstest]
#[case::advertise("advertise", 10)]
#[case::canary("canary", 10)]
#[case::controllers("controllers", 100)]
#[case::core("core", 10)]
#[case::openstack_api("openstack-api", 60)]
#[case::doctor("doctor", 60)]
#[case::end_to_end("../e2e", 100)]
#[case::kubernetes_simulator("kube-sim", 40)]
#[case::manager("manager", 60)]
#[case::overlay("overlay", 20)]
#[case::provider("provider-openstack", 250)]
#[case::runtime("runtime", 3)]
#[case::tools("tools", 60)]
fn no_modules_beside_each_other_name_each_other_in_a_circle(#[case] package: &str, #[case] at_least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src");
    let mut folders = vec![(root, "crate".to_owned())];
    let mut seen = 0;
    while let Some((folder, module)) = folders.pop() {
        let mut circle = siblings(&folder, &module);
        seen += circle.values().map(BTreeSet::len).sum::<usize>();
        for name in circle.keys().filter(|name| folder.join(name).is_dir()) {
            folders.push((folder.join(name), format!("{module}::{name}")));
        }
        // A module that names none of those left is on no circle.
        while let Some(last) = circle.iter().find(|(_, named)| named.is_empty()).map(|(name, _)| name.clone())
        {
            circle.remove(&last);
            for named in circle.values_mut() {
                named.remove(&last);
            }
        }
        assert!(circle.is_empty(), "{module}: {circle:?}");
    }
    assert!(seen >= at_least, "hardly any module names another: {seen}");
}
