//! Volumes of a pod, filled from the API as a kubelet does it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::authorization::token;
use crate::machine::wait::soon;

/// Fills all volumes, and returns the folder and the place of each mount.
pub(super) fn fill(api: &Kubernetes, pod: &Value, folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let spec = &pod["spec"];
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let target = folder.join("volumes").join(text(volume, "name")?);
        std::fs::create_dir_all(&target)?;
        if volume["secret"].is_object() {
            secret(api, text(&volume["secret"], "secretName")?, &target)?;
        } else {
            let sources = volume["projected"]["sources"].as_array();
            for source in sources.with_context(|| format!("an unknown kind of volume: {volume}"))? {
                project(api, pod, source, &target)?;
            }
        }
    }
    let mounts = spec["containers"][0]["volumeMounts"].as_array().into_iter().flatten();
    mounts
        .map(|mount| {
            let outside = folder.join("volumes").join(text(mount, "name")?);
            Ok((outside, text(mount, "mountPath")?.to_owned()))
        })
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("no {key} in {value}"))
}

fn secret(api: &Kubernetes, name: &str, target: &Path) -> Result<()> {
    let secret = api.get(&format!("/api/v1/namespaces/kube-system/secrets/{name}"))?;
    for (key, value) in secret["data"].as_object().context("a Secret without data")? {
        let content = STANDARD.decode(value.as_str().unwrap_or_default())?;
        std::fs::write(target.join(key), content)?;
    }
    Ok(())
}

/// The three parts of the volume that admission adds for the ServiceAccount.
fn project(api: &Kubernetes, pod: &Value, source: &Value, target: &Path) -> Result<()> {
    let metadata = &pod["metadata"];
    if let Some(wanted) = source.get("serviceAccountToken") {
        let bound =
            json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]});
        let spec = json!({"expirationSeconds": wanted["expirationSeconds"], "boundObjectRef": bound});
        let account = text(&pod["spec"], "serviceAccountName")?;
        let token = token(api, "kube-system", account, &spec)?;
        return Ok(std::fs::write(target.join(text(wanted, "path")?), token)?);
    }
    if let Some(wanted) = source.get("configMap") {
        let path = format!("/api/v1/namespaces/kube-system/configmaps/{}", text(wanted, "name")?);
        let map = soon(&format!("{path} is there"), || api.get(&path))?;
        for item in wanted["items"].as_array().into_iter().flatten() {
            std::fs::write(target.join(text(item, "path")?), text(&map["data"], text(item, "key")?)?)?;
        }
        return Ok(());
    }
    for item in source["downwardAPI"]["items"].as_array().into_iter().flatten() {
        let field = text(&item["fieldRef"], "fieldPath")?;
        if field != "metadata.namespace" {
            bail!("the field {field} is not known");
        }
        std::fs::write(target.join(text(item, "path")?), text(metadata, "namespace")?)?;
    }
    Ok(())
}
