//! The configuration: cloud.conf, clouds.yaml and related environment variables.
//!
//! ```text
//! bytes --gcfg--> entries --assembly--> sections --clouds--> filled sections --check, login--> Loaded
//! ```
//!
//! | module | does |
//! | --- | --- |
//! | [`gcfg`] | scans the file format, with positions; all errors at once |
//! | [`section`] | the typed sections, and the table of all keys |
//! | `assembly` | applies the entries of several files to the sections |
//! | `clouds` | fills `[Global]` from clouds.yaml |
//! | `check` | checks of the whole configuration |
//! | `login` | the kind of login, as [`AuthOptions`] |
//! | [`reference`](reference_markdown) | generates the reference page from the table of keys |
//!
//! [`load`] does all of this. Secrets are [`secrecy::SecretString`]s as soon as their key is known; neither `Debug` output nor an
//! error or a warning shows one.

mod assembly;
mod check;
mod clouds;
mod environment;
pub mod error;
pub mod gcfg;
mod login;
mod reference;
pub mod section;
pub(crate) mod suggestion;
pub mod value;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use openstack_ccm_openstack_api::identity::AuthOptions;

use assembly::Assembly;
pub use check::KNOWN_METHODS;
pub use environment::{Environment, ProcessEnvironment};
use error::ConfigOrigin;
pub use error::{ConfigErrors, Finding};
pub use reference::reference_markdown;
use section::SectionName;
pub use section::{
    ANY_NAMESPACE, CreateMonitor, DEFAULT_INGRESS_HOSTNAME_SUFFIX, ErrorRecovery, Global, LoadBalancer,
    LoadBalancerClass, LoadBalancerNamespace, Metadata, Networking, Route,
};

/// The sections of all files.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `[Global]`, with what clouds.yaml adds.
    pub global: Global,
    /// `[LoadBalancer]`.
    pub load_balancer: LoadBalancer,
    /// `[LoadBalancerClass "name"]` by name. Names are never empty.
    pub classes: BTreeMap<String, LoadBalancerClass>,
    /// `[LoadBalancerNamespace "name"]` by name of the namespace; [`ANY_NAMESPACE`] covers all others.
    pub namespaces: BTreeMap<String, LoadBalancerNamespace>,
    /// `[Networking]`.
    pub networking: Networking,
    /// `[Route]`.
    pub route: Route,
    /// `[Metadata]`.
    pub metadata: Metadata,
}

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The sections.
    pub config: Config,
    /// How to log in. The caller adds the user agent.
    pub auth_options: AuthOptions,
    /// Warnings for the log.
    pub warnings: Vec<Finding>,
}

/// Reads the files of `--cloud-config` in their order: for each key a later file wins, lists grow.
///
/// # Errors
/// All errors in all files.
pub fn load(paths: &[PathBuf], environment: &dyn Environment) -> Result<Loaded, ConfigErrors> {
    let mut assembly = Assembly::default();
    if paths.is_empty() {
        assembly.file_error(
            ConfigOrigin::file("command line"),
            "no cloud configuration is specified".to_owned(),
            "specify a file with --cloud-config",
        );
    }
    for path in paths {
        let file = path.display().to_string();
        match environment.read(path) {
            Ok(bytes) if is_clouds_yaml(path, &bytes) => assembly.add_clouds_yaml(&file),
            Ok(bytes) => assembly.add(&file, &gcfg::scan(&bytes)),
            Err(error) => assembly.file_error(
                ConfigOrigin::file(file),
                format!("the file cannot be read: {error}"),
                "correct the path, or make the file readable for this program",
            ),
        }
    }
    clouds::apply(&mut assembly, environment);
    check::check(&mut assembly, environment);
    finish(assembly)
}

/// Returns whether a file is a clouds.yaml: by its name, unless it starts with a section of cloud.conf, or by its first meaningful
/// line.
fn is_clouds_yaml(path: &Path, bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().map(str::trim_end);
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']) && *line != "---";
    let Some(first) = lines.find(is_said) else { return false };
    let named = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    first == "clouds:" || (named && !first.trim_start().starts_with('['))
}

fn finish(mut assembly: Assembly) -> Result<Loaded, ConfigErrors> {
    assembly.report_without_effect();
    let auth_options = login::auth_options(&assembly.config);
    let missing = auth_options.as_ref().err().into_iter().flatten();
    // Credentials do not count as missing if their key or file already has an error.
    if assembly.may_miss_keys() {
        for (key, fault) in missing.cloned().collect::<Vec<_>>() {
            if !assembly.has_failed(SectionName::Global, key) {
                assembly.fault(SectionName::Global, key, None, &fault);
            }
        }
    }
    assembly.sort();
    let Assembly { config, errors, warnings, .. } = assembly;
    match auth_options {
        Ok(auth_options) if errors.is_empty() => Ok(Loaded { config, auth_options, warnings }),
        Ok(_) | Err(_) => Err(ConfigErrors { errors, warnings, config: Box::new(config) }),
    }
}
