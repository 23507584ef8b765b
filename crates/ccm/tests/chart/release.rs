//! The chart of a release: pushed to a registry, pulled from there and installed on a real API server.

use std::path::Path;
use std::process::Command;

use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;

use crate::cluster::Cluster;
use crate::helm::{helm, repository, text};

#[tokio::test]
async fn a_released_chart_is_installed_from_its_registry_with_the_image_that_was_released_with_it() {
    let Some(cluster) = Cluster::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut release = Command::new("python3");
    release.arg(repository("release/release.py")).args(["dry-run", "--unsigned", "--kubeconfig"]);
    release.arg(cluster.kubeconfig()).env("HELM", helm().unwrap());
    release.env("RELEASE_IMAGE", image(folder.path())).env("RELEASE_FOLDER", folder.path().join("publish"));
    succeeds(release);

    let workloads: Api<DaemonSet> = Api::namespaced(cluster.client().await, "kube-system");
    let workload = workloads.get("openstack-cloud-controller-manager").await.unwrap();
    let image = workload.spec.template.spec.unwrap().containers[0].image.clone().unwrap();
    let expected = format!("/openstack-ccm/openstack-ccm:{}", env!("CARGO_PKG_VERSION"));
    assert!(image.starts_with("127.0.0.1:") && image.ends_with(&expected), "{image}");
}

/// An image with stand-ins for the binary and its bill of materials.
fn image(folder: &Path) -> std::path::PathBuf {
    let program =
        format!("#!/bin/sh\n[ \"$1\" = check-config ] || echo openstack-ccm {}\n", env!("CARGO_PKG_VERSION"));
    std::fs::write(folder.join("binary"), program).unwrap();
    std::fs::write(folder.join("bill.json"), "{}").unwrap();
    let mut build = Command::new("python3");
    build.arg(repository("image/build.py")).args(["--architecture", "amd64", "--output"]);
    build.arg(folder.join("image.tar")).arg("--bill").arg(folder.join("bill.json"));
    build.arg("--binary").arg(format!("amd64={}", folder.join("binary").display()));
    succeeds(build);
    folder.join("image.tar")
}

fn succeeds(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
