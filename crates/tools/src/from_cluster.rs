//! The configuration of the cloud: the files that are named, or with `--from-cluster` those of the leader's pod, in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Container, Pod, Secret, SecretVolumeSource, VolumeMount};
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
    files: &[PathBuf],
    from_cluster: bool,
) -> anyhow::Result<OpenStackProvider> {
    if !from_cluster {
        return Ok(OpenStackProvider::load(files)?);
    }
    let namespace = &lease.leader_elect_resource_namespace;
    let Mounted { files, secret, mounts, variables } = mounted(&status::pod(client, lease).await?)?;
    let read = Api::<Secret>::namespaced(client.clone(), namespace).get(&secret).await;
    let secret = format!("{namespace}/{secret}");
    let read = read.with_context(|| format!("--from-cluster: the Secret {secret} cannot be read"))?;
    let contents = contents(&mounts, &read.data.unwrap_or_default());
    Ok(OpenStackProvider::load_in_memory(&files, &SecretFiles { contents, variables, secret })?)
}

/// What a controller's pod says of its configuration.
struct Mounted {
    files: Vec<PathBuf>,
    secret: String,
    /// Where the Secret is mounted.
    mounts: Vec<(VolumeMount, SecretVolumeSource)>,
    variables: BTreeMap<String, String>,
}

/// Finds the Secret that holds the configuration of a pod.
fn mounted(pod: &Pod) -> anyhow::Result<Mounted> {
    let name = pod.name_any();
    let spec = pod.spec.clone().unwrap_or_default();
    let found = spec.containers.iter().find_map(|container| {
        let literal = container.env.iter().flatten();
        let variables: BTreeMap<String, String> =
            literal.filter_map(|one| Some((one.name.clone(), one.value.clone()?))).collect();
        let files = configured(container, &variables);
        (!files.is_empty()).then_some((container, files, variables))
    });
    let (container, files, variables) =
        found.with_context(|| format!("--from-cluster: the pod {name} has no --cloud-config"))?;
    let of_secret = |mount: &VolumeMount| {
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name)?;
        Some((mount.clone(), volume.secret.clone()?))
    };
    let mut mounts: Vec<_> = container.volume_mounts.iter().flatten().filter_map(of_secret).collect();
    let holds = mounts.iter().find(|(mount, _)| files[0].starts_with(&mount.mount_path));
    let secret = holds.and_then(|(_, volume)| volume.secret_name.clone()).with_context(|| {
        format!(
            "--from-cluster: the pod {name} does not have {} from a Secret: copy the file, and name it with --cloud-config",
            files[0].display()
        )
    })?;
    mounts.retain(|(_, volume)| volume.secret_name.as_ref() == Some(&secret));
    Ok(Mounted { files, secret, mounts, variables })
}

/// The files that a pod has from a Secret.
fn contents(
    mounts: &[(VolumeMount, SecretVolumeSource)],
    data: &BTreeMap<String, ByteString>,
) -> BTreeMap<PathBuf, Vec<u8>> {
    let place = |mount: &VolumeMount, volume: &SecretVolumeSource, key: &String| {
        let name = match &volume.items {
            Some(items) => &items.iter().find(|item| item.key == *key)?.path,
            None => key,
        };
        let folder = Path::new(&mount.mount_path);
        match &mount.sub_path {
            None => Some(folder.join(name)),
            Some(sub_path) => (sub_path == name).then(|| folder.to_owned()),
        }
    };
    let pairs = mounts.iter().flat_map(|mount| data.iter().map(move |entry| (mount, entry)));
    pairs
        .filter_map(|((mount, volume), (key, value))| Some((place(mount, volume, key)?, value.0.clone())))
        .collect()
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
        let file = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = BTreeMap::from([("cloud.conf".to_owned(), file("a")), ("ca.pem".to_owned(), file("b"))]);
        let of_chart = json!({"name": "config", "mountPath": "/etc/config"});
        let found =
            mounted(&pod(&json!(["--cloud-config=$(CLOUD_CONFIG)"]), &of_chart, &json!({"secretName": "s"})))
                .unwrap();
        assert_eq!(
            (found.secret.as_str(), &found.files[..]),
            ("s", &[PathBuf::from("/etc/config/cloud.conf")][..])
        );
        assert_eq!(contents(&found.mounts, &data).get(Path::new("/etc/config/ca.pem")), Some(&b"b".to_vec()));
        let one_file = json!({"name": "config", "mountPath": "/etc/config/cloud.conf", "subPath": "conf"});
        let renamed = json!({"secretName": "s", "items": [{"key": "cloud.conf", "path": "conf"}]});
        let found = mounted(&pod(&json!([]), &one_file, &renamed)).unwrap();
        let expected = BTreeMap::from([(PathBuf::from("/etc/config/cloud.conf"), b"a".to_vec())]);
        assert_eq!(contents(&found.mounts, &data), expected);
    }

    #[test]
    fn a_pod_without_such_a_secret_says_what_to_do() {
        let elsewhere = json!({"name": "config", "mountPath": "/etc/other"});
        let error =
            mounted(&pod(&json!([]), &elsewhere, &json!({"secretName": "s"}))).err().unwrap().to_string();
        assert!(error.contains("/etc/config/cloud.conf") && error.contains("--cloud-config"), "{error}");
    }
}
