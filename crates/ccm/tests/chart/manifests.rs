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
