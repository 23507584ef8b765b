//! The plain manifests are what the chart renders, without what only Helm needs.

use crate::helm::{Objects, Release, read, repository};

/// File, and the kinds that are in it.
const FILES: [(&str, &[&str]); 3] = [
    ("serviceaccount.yaml", &["ServiceAccount"]),
    ("rbac.yaml", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("daemonset.yaml", &["DaemonSet"]),
];

/// What stands for the image until a kustomization names it: a registry that cannot exist.
const NO_IMAGE: &str = "image.repository=registry.invalid/openstack-ccm";

/// Lines that mean something to Helm only.
const OF_HELM: [&str; 5] =
    ["app.kubernetes.io/managed-by:", "helm.sh/chart:", "chart:", "heritage:", "# Source:"];

fn manifests() -> Option<Vec<(&'static str, String)>> {
    let rendered = Release::without_image().set(NO_IMAGE).set("secret.create=false").text()?;
    let documents: Vec<String> = rendered.split("---\n").map(of_helm_removed).collect();
    let file = |(name, kinds): (&'static str, &[&str])| {
        let kind_of =
            |document: &&String| kinds.iter().any(|kind| document.contains(&format!("\nkind: {kind}\n")));
        let documents: Vec<&str> = documents.iter().filter(kind_of).map(String::as_str).collect();
        let head = "# Generated from charts/openstack-ccm by `make manifests`.\n";
        (name, format!("{head}{}", documents.join("---\n")))
    };
    Some(FILES.into_iter().map(file).collect())
}

pub(crate) fn of_helm_removed(document: &str) -> String {
    let keep = |line: &&str| {
        let line = line.trim();
        !OF_HELM.iter().any(|start| line.starts_with(start)) && !line.starts_with("checksum/config:")
    };
    let lines: Vec<&str> = document.lines().filter(keep).collect();
    // The checksum was the only annotation of the pods.
    let text = lines.join("\n").replace(
        "      annotations:\n        # Other pods for another configuration, wherever its text comes from.\n",
        "",
    );
    text.replace("release: occm", "release: openstack-ccm")
        .replace("instance: occm", "instance: openstack-ccm")
        + "\n"
}

#[test]
fn the_plain_manifests_are_up_to_date() {
    let Some(manifests) = manifests() else { return };
    for (name, text) in manifests {
        let path = format!("manifests/{name}");
        if std::env::var_os("UPDATE_MANIFESTS").is_some() {
            std::fs::write(repository(&path), &text).unwrap();
        }
        assert!(read(&path) == text, "{path} is out of date; regenerate it with `make manifests`");
    }
}

fn documents(text: &str) -> impl Iterator<Item = &str> {
    text.split("---\n").filter(|document| !document.trim().is_empty())
}

/// Those of the overlay: without a Job that only Helm starts.
fn manifests_of_overlay() -> Option<[(&'static str, String); 3]> {
    let release = || {
        let release = Release::without_image().chart(&repository("charts/ip-mode-overlay"));
        release.set("image.repository=registry.invalid/ip-mode-overlay").set("cleanup.enabled=false")
    };
    let (alone, whole) = (release().text()?, release().set("canary.enabled=true").text()?);
    let policy = release().set("controller.enabled=false").set("policy.enabled=true").text()?;
    let of_canary = |document: &&str| {
        document.contains("namespace: ip-mode-overlay-canary") || document.contains("\nkind: Namespace\n")
    };
    let text = |documents: Vec<&str>| {
        let plain: Vec<String> = documents.into_iter().map(of_helm_removed).collect();
        let head = "# Generated from charts/ip-mode-overlay by `make manifests`.\n";
        head.to_owned() + &plain.join("---\n").replace("instance: openstack-ccm", "instance: ip-mode-overlay")
    };
    Some([
        ("manifests/ip-mode-overlay/policy.yaml", text(documents(&policy).collect())),
        ("manifests/ip-mode-overlay/controller.yaml", text(documents(&alone).collect())),
        ("manifests/ip-mode-overlay/canary/canary.yaml", text(documents(&whole).filter(of_canary).collect())),
    ])
}

#[test]
fn the_plain_manifests_of_the_overlay_are_up_to_date() {
    let Some(manifests) = manifests_of_overlay() else { return };
    for (path, text) in manifests {
        if std::env::var_os("UPDATE_MANIFESTS").is_some() {
            std::fs::write(repository(path), &text).unwrap();
        }
        assert!(read(path) == text, "{path} is out of date; write it anew with `make manifests`");
        assert!(!text.to_lowercase().contains("openstack"), "{text}");
    }
}

#[test]
fn kustomize_finds_every_manifest() {
    let page: serde_json::Value = serde_saphyr::from_str(&read("manifests/kustomization.yaml")).unwrap();
    let resources = crate::helm::strings(&page["resources"]);
    assert_eq!(resources, FILES.map(|(name, _)| name));
    for file in resources {
        assert!(!Objects::parse(&read(&format!("manifests/{file}"))).0.is_empty(), "{file}");
    }
}

#[test]
fn the_plain_manifests_hold_nothing_of_helm() {
    for (name, _) in FILES {
        let text = read(&format!("manifests/{name}"));
        for object in Objects::parse(&text).0 {
            assert!(object["metadata"]["labels"]["helm.sh/chart"].is_null(), "{name}");
        }
        assert!(!text.contains("heritage"), "{name}");
    }
}
