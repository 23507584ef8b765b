//! Finds and reads the YAML files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::entry::CloudEntry;
use super::{Failure, unusable};
use crate::config::environment::Environment;

/// A file that was found.
#[derive(Debug)]
pub(super) struct CloudsFile {
    pub(super) path: PathBuf,
    /// Entries under `clouds`.
    pub(super) entries: BTreeMap<String, CloudEntry>,
    /// Entries under `public-clouds`.
    pub(super) public_entries: BTreeMap<String, CloudEntry>,
}

#[derive(Default, Deserialize)]
struct CloudsYaml {
    #[serde(default)]
    clouds: Option<BTreeMap<String, Option<CloudEntry>>>,
    #[serde(default, rename = "public-clouds")]
    public_clouds: Option<BTreeMap<String, Option<CloudEntry>>>,
}

/// Returns the directories in which files are searched, in order.
pub(super) fn directories(environment: &dyn Environment) -> Vec<PathBuf> {
    let home = environment.variable("HOME").filter(|home| !home.is_empty());
    let in_home = home.map(|home| Path::new(&home).join(".config/openstack"));
    [Some(environment.working_directory()), in_home, Some(PathBuf::from("/etc/openstack"))]
        .into_iter()
        .flatten()
        .collect()
}

/// Reads the first existing file. Each name is searched in all directories before the next name.
pub(super) fn find(environment: &dyn Environment, names: &[&str]) -> Result<Option<CloudsFile>, Failure> {
    for name in names {
        for directory in directories(environment) {
            if let Some(file) = read(environment, &directory.join(name))? {
                return Ok(Some(file));
            }
        }
    }
    Ok(None)
}

/// Reads a file; `None` if it does not exist.
pub(super) fn read(environment: &dyn Environment, path: &Path) -> Result<Option<CloudsFile>, Failure> {
    match environment.read(path) {
        Ok(bytes) => parse(path, &bytes).map(Some),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => {
            let problem = format!("{} cannot be read: {error}", path.display());
            Err(unusable(problem, "make the file readable for this program"))
        }
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<CloudsFile, Failure> {
    let invalid = |place: String| {
        let problem = format!("{}{place} is not a valid clouds.yaml", path.display());
        unusable(problem, "correct the YAML: text values under `clouds: <name>:`, no tabs, no key twice")
    };
    let text = std::str::from_utf8(bytes).map_err(|_| invalid(String::new()))?;
    let content = if text.trim().is_empty() {
        CloudsYaml::default()
    } else {
        // The parser's message is omitted: it shows lines of the file, which may contain secrets.
        serde_saphyr::from_str(text).map_err(|error| {
            let place = error.location().map(|place| format!(":{}:{}", place.line(), place.column()));
            invalid(place.unwrap_or_default())
        })?
    };
    let entries = |map: Option<BTreeMap<String, Option<CloudEntry>>>| {
        map.unwrap_or_default().into_iter().map(|(name, entry)| (name, entry.unwrap_or_default())).collect()
    };
    let (entries, public_entries) = (entries(content.clouds), entries(content.public_clouds));
    Ok(CloudsFile { path: path.to_owned(), entries, public_entries })
}
