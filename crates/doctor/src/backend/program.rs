//! What a container is started with: words, variables and mounted files.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec, Volume};

use super::Expectation;
use crate::facts::{BackendFacts, name_of};

/// The name of a ConfigMap, and its data.
type NamedMap = (String, BTreeMap<String, String>);

/// A known program in a container of a pod.
pub(super) struct Program<'a> {
    facts: &'a BackendFacts,
    pod: &'a Pod,
    container: &'a Container,
}

/// Returns the container whose image, without its tag, ends with one of `images`, or that starts one of `programs`.
pub fn has_container<'a>(spec: &'a PodSpec, images: &[&str], programs: &[&str]) -> Option<&'a Container> {
    spec.containers.iter().find(|container| {
        let image = container.image.as_deref().unwrap_or_default().split('@').next().unwrap_or_default();
        let (path, last) = image.rsplit_once('/').unwrap_or(("", image));
        let path = format!("/{path}/{}", last.split(':').next().unwrap_or_default());
        let first = words(container).next().map(|word| word.rsplit('/').next().unwrap_or_default());
        images.iter().any(|image| path.ends_with(&format!("/{image}")))
            || first.is_some_and(|first| programs.contains(&first))
    })
}

fn words(container: &Container) -> impl Iterator<Item = &String> {
    container.command.iter().flatten().chain(container.args.iter().flatten())
}

/// Whether a text is a valid name of a Kubernetes object. The name comes from the arguments of a pod, which may hold any text, and
/// goes into a path of the API server and into a command.
pub fn is_object_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
        label.bytes().all(inner) && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// A file in a container.
#[derive(Debug, PartialEq, Eq)]
pub enum Mounted {
    /// A key of a ConfigMap.
    ConfigMap(String, String),
    /// Something that doctor does not read.
    Other,
}

/// Returns what is mounted at the path of a file.
pub fn mounted(spec: &PodSpec, container: &Container, path: &str) -> Option<Mounted> {
    let below = |place: &str| {
        let rest = path.strip_prefix(place.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_owned())
    };
    let mounts = container.volume_mounts.iter().flatten();
    let (mount, rest) = mounts
        .filter_map(|mount| Some((mount, below(&mount.mount_path)?)))
        .max_by_key(|(mount, _)| mount.mount_path.len())?;
    let is_it = |volume: &&Volume| volume.name == mount.name;
    let map = spec.volumes.iter().flatten().find(is_it).and_then(|volume| volume.config_map.as_ref());
    let Some(map) = map else { return Some(Mounted::Other) };
    let file = [mount.sub_path.clone().unwrap_or_default(), rest].into_iter().filter(|part| !part.is_empty());
    let file = file.collect::<Vec<_>>().join("/");
    let item = map.items.iter().flatten().find(|item| item.path == file);
    Some(Mounted::ConfigMap(map.name.clone(), item.map_or(file, |item| item.key.clone())))
}

impl<'a> Program<'a> {
    pub(super) fn of(
        facts: &'a BackendFacts,
        pod: &'a Pod,
        images: &[&str],
        programs: &[&str],
    ) -> Option<Self> {
        let container = has_container(pod.spec.as_ref()?, images, programs)?;
        Some(Self { facts, pod, container })
    }

    pub(super) fn title(&self) -> String {
        format!("pod {}", name_of(&self.pod.metadata))
    }

    /// Lists the addresses of the pod.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let ips = self.pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
        ips.filter_map(|one| one.ip.parse().ok())
    }

    fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Lists the words of the command, with the variables in them.
    pub(super) fn words(&self) -> Vec<String> {
        let variables = self.variables();
        let expanded = |word: &String| {
            variables.iter().fold(word.clone(), |word, (name, value)| match value {
                Some(value) => word.replace(&format!("$({name})"), value),
                None => word,
            })
        };
        words(self.container).map(expanded).collect()
    }

    /// Returns the value of a flag, given as `--flag=value`, `-flag=value` or two words.
    pub(super) fn flag(&self, name: &str) -> Option<String> {
        let words = self.words();
        words.iter().enumerate().find_map(|(place, word)| {
            let word = word.strip_prefix('-')?.trim_start_matches('-');
            match word.split_once('=') {
                Some((key, value)) if key.eq_ignore_ascii_case(name) => Some(value.to_owned()),
                None if word.eq_ignore_ascii_case(name) => {
                    let next = words.get(place + 1).filter(|next| !next.starts_with('-'));
                    Some(next.cloned().unwrap_or_else(|| "true".to_owned()))
                }
                _ => None,
            }
        })
    }

    /// Returns the variables of the container; without a value where doctor does not read it.
    pub(super) fn variables(&self) -> BTreeMap<String, Option<String>> {
        let mut variables = BTreeMap::new();
        for from in self.container.env_from.iter().flatten() {
            let prefix = from.prefix.clone().unwrap_or_default();
            match from.config_map_ref.as_ref().map(|map| self.data(&map.name)) {
                Some(Ok(data)) => {
                    variables
                        .extend(data.into_iter().map(|(key, value)| (format!("{prefix}{key}"), Some(value))));
                }
                // Any variable may be among those of a Secret.
                Some(Err(_)) | None => drop(variables.insert(String::new(), None)),
            }
        }
        variables.extend(self.container.env.iter().flatten().map(|one| (one.name.clone(), self.value(one))));
        variables
    }

    fn value(&self, variable: &EnvVar) -> Option<String> {
        let Some(from) = &variable.value_from else {
            return Some(variable.value.clone().unwrap_or_default());
        };
        if let Some(key) = &from.config_map_key_ref {
            return self.data(&key.name).ok()?.remove(&key.key);
        }
        match from.field_ref.as_ref()?.field_path.as_str() {
            "metadata.namespace" => self.pod.metadata.namespace.clone(),
            "metadata.name" => self.pod.metadata.name.clone(),
            _ => None,
        }
    }

    /// Returns the ConfigMap that a flag names: `namespace/name`.
    pub(super) fn map_of(&self, flag: &str) -> Option<String> {
        let named = self.flag(flag)?;
        Some(match named.split_once('/') {
            // The variable of the namespace, where the pod does not say where it comes from.
            Some((variable, name)) if variable.starts_with('$') => format!("{}/{name}", self.namespace()),
            Some(_) => named,
            None => format!("{}/{named}", self.namespace()),
        })
    }

    /// Returns the data of the ConfigMap that a flag names, with its name; empty where there is no such ConfigMap.
    pub(super) fn map(&self, flag: &str) -> Result<Option<NamedMap>, Expectation> {
        let Some(name) = self.map_of(flag) else { return Ok(None) };
        if !name.split('/').all(is_object_name) {
            let text = format!("the value of its flag --{flag} is not a valid name of a ConfigMap");
            return Err(Expectation::NotKnown(text));
        }
        let data = self.read(&name)?;
        Ok(Some((name, data)))
    }

    /// Returns the line of a port of TCP services in the ConfigMap that a flag names, with the ConfigMap's name.
    pub(super) fn tcp_line(&self, flag: &str, target: &str) -> Result<(String, String), Expectation> {
        let unlisted = || Expectation::NotSeen(format!("nothing shows what listens on its port {target}"));
        let (name, mut data) = self.map(flag)?.ok_or_else(unlisted)?;
        Ok((name, data.remove(target).ok_or_else(unlisted)?))
    }

    fn read(&self, name: &str) -> Result<BTreeMap<String, String>, Expectation> {
        match self.facts.config_maps.get(name) {
            Some(Ok(data)) => Ok(data.clone().unwrap_or_default()),
            Some(Err(cause)) => {
                Err(Expectation::NotKnown(format!("its ConfigMap {name} cannot be read: {cause}")))
            }
            None => Err(Expectation::NotKnown(format!("its ConfigMap {name} was not read"))),
        }
    }

    /// Returns the data of a ConfigMap in the namespace of the pod.
    pub(super) fn data(&self, name: &str) -> Result<BTreeMap<String, String>, Expectation> {
        self.read(&format!("{}/{name}", self.namespace()))
    }

    /// Returns what is mounted at the path of a file.
    pub(super) fn mounted(&self, path: &str) -> Option<Mounted> {
        mounted(self.pod.spec.as_ref()?, self.container, path)
    }

    /// Lists all ConfigMaps that the pod names: `namespace/name`.
    pub(super) fn maps(&self) -> BTreeSet<String> {
        let volumes = self.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mounted = volumes.filter_map(|volume| Some(volume.config_map.as_ref()?.name.clone()));
        let from = self.container.env_from.iter().flatten();
        let from = from.filter_map(|from| Some(from.config_map_ref.as_ref()?.name.clone()));
        let keys = self.container.env.iter().flatten();
        let keys =
            keys.filter_map(|one| Some(one.value_from.as_ref()?.config_map_key_ref.as_ref()?.name.clone()));
        mounted.chain(from).chain(keys).map(|name| format!("{}/{name}", self.namespace())).collect()
    }
}
