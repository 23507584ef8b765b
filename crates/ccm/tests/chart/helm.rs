//! Helm itself, and what it renders.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The text of a file of the repository.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Helm 3, or nothing where it cannot be had: then one line says so.
pub(crate) fn helm() -> Option<&'static Path> {
    static HELM: OnceLock<Option<PathBuf>> = OnceLock::new();
    HELM.get_or_init(|| found("HELM", "helm", "helm.sh/helm/v3/cmd/helm")).as_deref()
}

/// Helm 4, in the same way.
pub(crate) fn helm_4() -> Option<&'static Path> {
    static HELM: OnceLock<Option<PathBuf>> = OnceLock::new();
    HELM.get_or_init(|| found("HELM_4", "helm-4", "helm.sh/helm/v4/cmd/helm")).as_deref()
}

fn found(variable: &str, name: &str, package: &str) -> Option<PathBuf> {
    let found = program(variable, name, package);
    if found.is_none() {
        // Straight to the terminal: what a test prints is shown only when it fails.
        let _ = writeln!(
            std::io::stderr(),
            "left out: the chart is not rendered, as neither Go is installed nor {variable} names a program"
        );
    }
    found
}

/// The program that a variable names, or the one that Go builds of the module in `charts/tools`.
pub(crate) fn program(variable: &str, name: &str, package: &str) -> Option<PathBuf> {
    if let Some(given) = std::env::var_os(variable).filter(|given| !given.is_empty()) {
        return Some(given.into());
    }
    Command::new("go").arg("version").output().ok()?;
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Go does nothing when the program is up to date.
    let output = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"])
        .arg(&program)
        .arg(package)
        .current_dir(repository("charts/tools").join(name))
        .env("CGO_ENABLED", "0")
        .output()
        .unwrap();
    assert!(output.status.success(), "{name} cannot be built: {}", text(&output.stderr));
    Some(program)
}

/// An image, as the chart wants one.
pub(crate) const IMAGE: &str = "image.repository=registry.example.org/openstack-ccm";
/// The least of a cloud.conf, for `--set-json`.
pub(crate) const CLOUD: &str = r#"cloudConfig.global={"auth-url": "https://keystone.example.org/v3"}"#;

/// What to render the chart with.
#[derive(Default)]
pub(crate) struct Release {
    chart: Option<PathBuf>,
    values: Vec<PathBuf>,
    settings: Vec<String>,
    version: Option<String>,
    /// Whether it is to have no cloud.conf.
    empty: bool,
}

/// The least that is a cloud.conf.
const CLOUD_CONF: &str = "{cloudConfig: {global: {auth-url: \"https://keystone.example.org/v3\"}}}";

impl Release {
    /// The chart's own values and an image.
    pub(crate) fn new() -> Self {
        Self::without_image().set(IMAGE)
    }

    /// The chart's own values and nothing else.
    pub(crate) fn without_image() -> Self {
        Self::default()
    }

    /// Another copy of the chart.
    pub(crate) fn chart(mut self, folder: &Path) -> Self {
        self.chart = Some(folder.to_owned());
        self
    }

    /// A file below `tests/chart/values`.
    pub(crate) fn values(self, file: &'static str) -> Self {
        self.values_file(&repository("crates/ccm/tests/chart/values").join(file))
    }

    /// Any file.
    pub(crate) fn values_file(mut self, file: &Path) -> Self {
        self.values.push(file.to_owned());
        self
    }

    /// `--set`.
    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// `--kube-version`.
    pub(crate) fn kubernetes(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Leaves out the cloud.conf that a release is given where nothing else says what is in it.
    pub(crate) fn without_cloud_conf(mut self) -> Self {
        self.empty = true;
        self
    }

    fn lacks_cloud_conf(&self) -> bool {
        let is_overlay = self.chart.as_ref().is_some_and(|chart| !chart.join("alerts.yaml").exists());
        let says = |text: &str| {
            [
                "auth-url",
                "password",
                "cloudConfig.global.",
                "cloudConfigContents=",
                "cloudConfigContents: |",
                "secret.create=false",
                "secret.enabled=false",
                "OS_",
            ]
            .iter()
            .any(|part| text.contains(part))
        };
        let read = |file: &PathBuf| std::fs::read_to_string(file).unwrap_or_default();
        !is_overlay
            && !self.empty
            && !self.settings.iter().any(|setting| says(setting))
            && !self.values.iter().any(|file| says(&read(file)))
    }

    /// The rendered text, or what Helm says against it. Nothing where there is no Helm.
    pub(crate) fn try_text(&self) -> Option<Result<String, String>> {
        Some(self.text_by(helm()?))
    }

    /// The same by a given Helm. The charts of the repository do not change, and the same question about them is asked once.
    pub(crate) fn text_by(&self, helm: &Path) -> Result<String, String> {
        type Answer = Arc<OnceLock<Result<String, String>>>;
        static ANSWERS: Mutex<BTreeMap<String, Answer>> = Mutex::new(BTreeMap::new());
        if self.chart.as_ref().is_some_and(|chart| !chart.starts_with(repository("charts"))) {
            return self.rendered(helm);
        }
        let files: Vec<_> = self.values.iter().map(std::fs::read_to_string).map(Result::unwrap).collect();
        let Self { chart, settings, version, empty, values: _ } = self;
        let question = format!("{helm:?} {chart:?} {files:?} {settings:?} {version:?} {empty}");
        let answer = Arc::clone(ANSWERS.lock().unwrap().entry(question).or_default());
        answer.get_or_init(|| self.rendered(helm)).clone()
    }

    fn rendered(&self, helm: &Path) -> Result<String, String> {
        let mut command = Command::new(helm);
        let chart = self.chart.clone().unwrap_or_else(|| repository("charts/openstack-ccm"));
        command.args(["template", "occm"]).arg(chart);
        let version = self.version.as_deref().unwrap_or("1.36.0");
        command.args(["--namespace", "kube-system", "--kube-version", version]);
        for file in &self.values {
            command.arg("--values").arg(file);
        }
        // After the others: in theirs the section may be null.
        let cloud_conf = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(cloud_conf.path(), CLOUD_CONF).unwrap();
        if self.lacks_cloud_conf() {
            command.arg("--values").arg(cloud_conf.path());
        }
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        let output = command.output().unwrap();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// The rendered text.
    pub(crate) fn text(&self) -> Option<String> {
        Some(self.try_text()?.unwrap_or_else(|error| panic!("{error}")))
    }

    /// What Helm says against it.
    pub(crate) fn error(&self) -> Option<String> {
        Some(self.try_text()?.expect_err("it was accepted"))
    }

    /// The rendered objects.
    pub(crate) fn objects(&self) -> Option<Objects> {
        Some(Objects::parse(&self.text()?))
    }
}

/// A copy of the chart that may be changed.
pub(crate) fn copy_of_chart() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = repository("charts/openstack-ccm");
    let copied = Command::new("cp").arg("-r").arg(source.join(".")).arg(folder.path()).status().unwrap();
    assert!(copied.success());
    folder
}

/// Runs Helm.
pub(crate) fn run(arguments: &[&str]) -> Option<Output> {
    Some(Command::new(helm()?).args(arguments).output().unwrap())
}

/// Output of a program.
pub(crate) fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// Rendered objects.
pub(crate) struct Objects(pub(crate) Vec<Value>);

impl Objects {
    /// The documents of a YAML text.
    pub(crate) fn parse(text: &str) -> Self {
        let documents = text.split("\n---").map(|document| document.trim_start_matches("---"));
        let objects = documents.map(|document| {
            serde_saphyr::from_str::<Value>(document).unwrap_or_else(|error| panic!("{error}\n{document}"))
        });
        Self(objects.filter(|object| !object.is_null()).collect())
    }

    /// Those of a kind.
    pub(crate) fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    /// The only one of a kind.
    pub(crate) fn one(&self, kind: &str) -> &Value {
        let all: Vec<&Value> = self.all(kind).collect();
        assert_eq!(all.len(), 1, "objects of kind {kind}");
        all[0]
    }

    /// One of a kind by name.
    pub(crate) fn named(&self, kind: &str, name: &str) -> &Value {
        self.all(kind)
            .find(|object| object["metadata"]["name"] == name)
            .unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// The template of the pods.
    pub(crate) fn pod(&self) -> &Value {
        let workload = self.all("DaemonSet").chain(self.all("Deployment")).next().unwrap();
        &workload["spec"]["template"]
    }

    /// The container.
    pub(crate) fn container(&self) -> &Value {
        &self.pod()["spec"]["containers"][0]
    }

    /// The arguments of the container.
    pub(crate) fn arguments(&self) -> Vec<String> {
        strings(&self.container()["args"])
    }
}

/// A list of texts.
pub(crate) fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|entry| entry.as_str().unwrap().to_owned()).collect()
}
