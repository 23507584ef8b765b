//! clouds.yaml: an entry fills what `[Global]` leaves empty.
//!
//! Only with `use-clouds`. The files are found and merged as OpenStack's own tools do:
//!
//! 1. `clouds-file`, else `OS_CLIENT_CONFIG_FILE`, if that file exists; else `clouds.yaml`, then `clouds.yml`, each in
//!    the working directory, `~/.config/openstack` and `/etc/openstack`.
//! 2. The entry is `cloud`, else `OS_CLOUD`, else the only one there is.
//! 3. `secure.yaml` (or `secure.yml`) from the same directories lies over the entry; where the entry names a
//!    `profile` (or `cloud`), that entry of `clouds-public.yaml` (or `.yml`) lies under it.

mod entry;
mod files;
mod fill;

use super::assembly::Assembly;
use super::environment::Environment;
use super::error::{ConfigOrigin, ValueFault};
use super::section::SectionName;
use entry::CloudEntry;
use files::CloudsFile;

/// Fills the empty keys of `[Global]` from clouds.yaml where `use-clouds` asks for it.
pub(super) fn apply(assembly: &mut Assembly, environment: &dyn Environment) {
    if !assembly.config.global.use_clouds {
        warn_of_unused_keys(assembly);
        return;
    }
    match selected_entry(assembly, environment) {
        Ok((entry, origin)) => fill::fill(assembly, entry, &origin),
        Err((key, fault)) => {
            let value = match key {
                "cloud" => assembly.config.global.cloud.clone(),
                "clouds-file" => assembly.config.global.clouds_file.clone(),
                _ => None,
            };
            assembly.fault(SectionName::Global, key, value.as_deref(), &fault);
        }
    }
}

fn warn_of_unused_keys(assembly: &mut Assembly) {
    for key in ["cloud", "clouds-file"] {
        if assembly.is_written(SectionName::Global, key) {
            assembly.warn(SectionName::Global, key, "has no effect without `use-clouds = true`");
        }
    }
}

/// The key to blame, and its fault.
type Failure = (&'static str, ValueFault);

/// A fault of `use-clouds`.
fn unusable(problem: String, fix: impl Into<String>) -> Failure {
    ("use-clouds", ValueFault::new(problem, fix))
}

fn selected_entry(
    assembly: &mut Assembly,
    environment: &dyn Environment,
) -> Result<(CloudEntry, ConfigOrigin), Failure> {
    let clouds = clouds_file(assembly, environment)?;
    let secure = files::find(environment, &["secure.yaml", "secure.yml"])?;
    let name = entry_name(assembly, environment, &clouds, secure.as_ref())?;
    let public = clouds.entries.get(&name).and_then(CloudEntry::public_profile).map(str::to_owned);
    let mut merged = CloudEntry::default();
    if let Some(entry) = secure.as_ref().and_then(|file| file.entries.get(&name)) {
        merged.put_under(entry);
    }
    if let Some(entry) = clouds.entries.get(&name) {
        merged.put_under(entry);
    }
    if let Some(profile) = public {
        merged.put_under(&public_entry(environment, &clouds, &profile)?);
    }
    Ok((merged, ConfigOrigin::file(format!("{} (entry `{name}`)", clouds.path.display()))))
}

fn clouds_file(assembly: &mut Assembly, environment: &dyn Environment) -> Result<CloudsFile, Failure> {
    let configured = assembly.config.global.clouds_file.clone();
    let from_key = configured.is_some();
    if let Some(path) =
        configured.or_else(|| environment.variable("OS_CLIENT_CONFIG_FILE")).filter(|path| !path.is_empty())
    {
        match files::read(environment, path.as_ref())? {
            Some(file) => return Ok(file),
            None if from_key => {
                let text = "this file does not exist; looking for clouds.yaml in the default locations";
                assembly.warn(SectionName::Global, "clouds-file", text);
            }
            None => {
                let text = format!(
                    "OS_CLIENT_CONFIG_FILE points to {path}, which does not exist; looking for clouds.yaml in the default locations"
                );
                assembly.warn(SectionName::Global, "use-clouds", text);
            }
        }
    }
    files::find(environment, &["clouds.yaml", "clouds.yml"])?.ok_or_else(|| {
        let searched: Vec<_> =
            files::directories(environment).iter().map(|path| path.display().to_string()).collect();
        let problem = format!("no clouds.yaml was found in {}", searched.join(", "));
        unusable(problem, "set `clouds-file` to its path, or set `use-clouds = false`")
    })
}

/// Returns the name of the entry to use, which exists in one of the files.
fn entry_name(
    assembly: &Assembly,
    environment: &dyn Environment,
    clouds: &CloudsFile,
    secure: Option<&CloudsFile>,
) -> Result<String, Failure> {
    let known = |name: &str| {
        clouds.entries.contains_key(name) || secure.is_some_and(|file| file.entries.contains_key(name))
    };
    let offered = || {
        let names: Vec<_> = clouds.entries.keys().map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "has no entry".to_owned() } else { format!("has {}", names.join(", ")) }
    };
    if let Some(name) = &assembly.config.global.cloud {
        if known(name) {
            return Ok(name.clone());
        }
        let problem = format!("{} has no such entry", clouds.path.display());
        let fix = format!("use an existing entry: the file {}", offered());
        return Err(("cloud", ValueFault::new(problem, fix)));
    }
    if let Some(name) = environment.variable("OS_CLOUD").filter(|name| !name.is_empty()) {
        if known(&name) {
            return Ok(name);
        }
        let problem =
            format!("OS_CLOUD selects the entry `{name}`, which is not in {}", clouds.path.display());
        return Err(unusable(problem, format!("set `cloud`, or correct OS_CLOUD: the file {}", offered())));
    }
    let only = |file: &CloudsFile| file.entries.keys().next().filter(|_| file.entries.len() == 1).cloned();
    only(clouds).or_else(|| secure.filter(|_| clouds.entries.is_empty()).and_then(only)).ok_or_else(|| {
        let problem = format!("no entry of {} is selected: the file {}", clouds.path.display(), offered());
        unusable(problem, "set `cloud`, or the environment variable OS_CLOUD, to the name of an entry")
    })
}

fn public_entry(
    environment: &dyn Environment,
    clouds: &CloudsFile,
    profile: &str,
) -> Result<CloudEntry, Failure> {
    let public = files::find(environment, &["clouds-public.yaml", "clouds-public.yml"])?;
    public.and_then(|file| file.public_entries.get(profile).cloned()).ok_or_else(|| {
        let problem = format!(
            "{} refers to the profile `{profile}`, which is not in any clouds-public.yaml",
            clouds.path.display()
        );
        unusable(problem, "remove the profile, or add a clouds-public.yaml that contains it")
    })
}
