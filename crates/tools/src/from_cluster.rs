//! The configuration of the cloud: the files that are named, or with `--from-cluster` those of the leader's pod, in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Container, Pod, Secret};
use kube::{Api, Client, ResourceExt as _};
use openstack_ccm_manager::args::LeaseArgs;
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::Environment;

use crate::status;

/// Reads the configuration: the files that were named, or with `--from-cluster` those of the leader's pod.
///
/// # Errors
/// They cannot be read, or are not valid.
pub(crate) async fn provider(
    client: &Client,
    lease: &LeaseArgs,
    source: &ConfigSource<'_>,
) -> anyhow::Result<OpenStackProvider> {
    if !source.from_cluster {
        return Ok(OpenStackProvider::load(source.files)?);
    }
    let namespace = &lease.leader_elect_resource_namespace;
    let pod = status::pod(client, lease).await?;
    let Mounted { files, secret, mounts, variables } = mounted(&pod)?;
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let read = secrets.get(&secret).await;
    let read =
        read.with_context(|| format!("--from-cluster: the Secret {namespace}/{secret} cannot be read"))?;
    let data: BTreeMap<String, Vec<u8>> =
        read.data.into_iter().flatten().map(|(key, value)| (key, value.0)).collect();
    let contents = mounts.into_iter().flat_map(|mount| mount.files(&data)).collect();
    let environment = SecretFiles { contents, variables, secret: format!("{namespace}/{secret}") };
    Ok(OpenStackProvider::load_in_memory(&files, &environment)?)
}

/// Where cloud.conf is.
pub(crate) struct ConfigSource<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) from_cluster: bool,
}

/// What a controller's pod says of its configuration.
#[derive(Debug, PartialEq, Eq)]
struct Mounted {
    files: Vec<PathBuf>,
    secret: String,
    mounts: Vec<Mount>,
    variables: BTreeMap<String, String>,
}

/// A place at which the Secret is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    path: PathBuf,
    sub_path: Option<String>,
    /// Keys with the names of their files; all keys, under their own names, where it is empty.
    items: Vec<(String, String)>,
}

impl Mount {
    fn files(&self, data: &BTreeMap<String, Vec<u8>>) -> Vec<(PathBuf, Vec<u8>)> {
        let items = match self.items.as_slice() {
            [] => data.keys().map(|key| (key.clone(), key.clone())).collect(),
            items => items.to_vec(),
        };
        let place = |name: String| match &self.sub_path {
            None => Some(self.path.join(name)),
            Some(sub_path) => (*sub_path == name).then(|| self.path.clone()),
        };
        items.into_iter().filter_map(|(key, name)| Some((place(name)?, data.get(&key)?.clone()))).collect()
    }
}

/// Finds the Secret that holds the configuration of a pod.
fn mounted(pod: &Pod) -> anyhow::Result<Mounted> {
    let name = pod.name_any();
    let spec = pod.spec.clone().unwrap_or_default();
    let found = spec.containers.iter().find_map(|container| {
        let variables: BTreeMap<String, String> = container
            .env
            .iter()
            .flatten()
            .filter_map(|variable| Some((variable.name.clone(), variable.value.clone()?)))
            .collect();
        let files = configured(container, &variables);
        (!files.is_empty()).then_some((container, files, variables))
    });
    let (container, files, variables) =
        found.with_context(|| format!("--from-cluster: the pod {name} has no --cloud-config"))?;
    let of_secret = |volume: &str| {
        let volumes = spec.volumes.iter().flatten();
        volumes.into_iter().find(|one| one.name == volume).and_then(|one| one.secret.clone())
    };
    let mounts = || {
        container.volume_mounts.iter().flatten().filter_map(|mount| Some((mount, of_secret(&mount.name)?)))
    };
    let holds = mounts().find(|(mount, _)| files[0].starts_with(&mount.mount_path));
    let secret = holds.and_then(|(_, secret)| secret.secret_name).with_context(|| {
        format!(
            "--from-cluster: the pod {name} does not have {} from a Secret: copy the file, and name it with --cloud-config",
            files[0].display()
        )
    })?;
    let mounts = mounts()
        .filter(|(_, of)| of.secret_name.as_deref() == Some(&secret))
        .map(|(mount, of)| Mount {
            path: mount.mount_path.clone().into(),
            sub_path: mount.sub_path.clone(),
            items: of.items.into_iter().flatten().map(|item| (item.key, item.path)).collect(),
        })
        .collect();
    Ok(Mounted { files, secret, mounts, variables })
}

/// The files of `--cloud-config`, as the kubelet expands it.
fn configured(container: &Container, variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let words: Vec<&String> = container.command.iter().chain(&container.args).flatten().collect();
    let given =
        words.iter().enumerate().filter_map(|(place, word)| match word.strip_prefix("--cloud-config") {
            Some("") => words.get(place + 1).map(|next| next.as_str()),
            Some(value) => value.strip_prefix('='),
            None => None,
        });
    let expanded = given.map(|text| {
        variables
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
    });
    let mut lists: Vec<String> = expanded.collect();
    if lists.is_empty() {
        lists.extend(variables.get("CLOUD_CONFIG").cloned());
    }
    lists.iter().flat_map(|list| list.split(',')).filter(|file| !file.is_empty()).map(PathBuf::from).collect()
}

/// The files of a Secret, where a pod has them, and the variables of its environment.
struct SecretFiles {
    contents: BTreeMap<PathBuf, Vec<u8>>,
    variables: BTreeMap<String, String>,
    secret: String,
}

impl Environment for SecretFiles {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let missing = || format!("the pod does not have it from the Secret {}", self.secret);
        self.contents.get(path).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, missing()))
    }

    fn working_directory(&self) -> PathBuf {
        PathBuf::from("/")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(arguments: &Value, mount: &Value, secret: &Value) -> Pod {
        let container = json!({"name": "c", "args": arguments, "volumeMounts": [mount],
            "env": [{"name": "CLOUD_CONFIG", "value": "/etc/config/cloud.conf"}]});
        let volumes = json!([{"name": "config", "secret": secret}]);
        serde_json::from_value(
            json!({"metadata": {"name": "p"}, "spec": {"containers": [container], "volumes": volumes}}),
        )
        .unwrap()
    }

    #[test]
    fn the_files_of_a_pod_are_those_of_the_secret_that_it_mounts() {
        let data = BTreeMap::from([("cloud.conf".to_owned(), vec![1]), ("ca.pem".to_owned(), vec![2])]);
        let of_chart = json!({"name": "config", "mountPath": "/etc/config"});
        let found =
            mounted(&pod(&json!(["--cloud-config=$(CLOUD_CONFIG)"]), &of_chart, &json!({"secretName": "s"})))
                .unwrap();
        assert_eq!(
            (found.secret.as_str(), &found.files[..]),
            ("s", &[PathBuf::from("/etc/config/cloud.conf")][..])
        );
        let files: BTreeMap<PathBuf, Vec<u8>> = found.mounts[0].files(&data).into_iter().collect();
        assert_eq!(files.get(Path::new("/etc/config/ca.pem")), Some(&vec![2]));
        let one_file = json!({"name": "config", "mountPath": "/etc/config/cloud.conf", "subPath": "conf"});
        let renamed = json!({"secretName": "s", "items": [{"key": "cloud.conf", "path": "conf"}]});
        let found = mounted(&pod(&json!([]), &one_file, &renamed)).unwrap();
        assert_eq!(found.mounts[0].files(&data), [(PathBuf::from("/etc/config/cloud.conf"), vec![1])]);
    }

    #[test]
    fn a_pod_without_such_a_secret_says_what_to_do() {
        let elsewhere = json!({"name": "config", "mountPath": "/etc/other"});
        let error =
            mounted(&pod(&json!([]), &elsewhere, &json!({"secretName": "s"}))).unwrap_err().to_string();
        assert!(error.contains("/etc/config/cloud.conf") && error.contains("--cloud-config"), "{error}");
    }
}
