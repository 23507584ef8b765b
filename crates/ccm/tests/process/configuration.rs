//! Files and flags that cannot work: everything that is wrong at once, each with its place.

use crate::process::Process;
use crate::stage::Stage;

const BROKEN: &str = "[Global]\n\
    auth-url = not-a-url\n\
    username = demo\n\
    password = hunter2-is-secret\n\
    tenant-name = demo\n\
    domain-name = Default\n\
    [LoadBalancer]\n\
    monitor-delay = soon\n\
    max-shared-lb = many\n\
    flaoting-network-id = x\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_cloud_conf_ends_the_program_with_every_error_and_its_line() {
    let stage = Stage::new().await;
    stage.set_cloud_conf(BROKEN);
    let mut process = Process::start(&stage, "ccm", &[]);
    let status = process.end().await;
    assert_eq!(status.code(), Some(1));
    let output = process.output();
    for place in ["cloud.conf:2", "cloud.conf:8", "cloud.conf:9"] {
        assert!(output.contains(place), "{place} in {output}");
    }
    for part in ["auth-url", "\"soon\"", "\"many\"", "floating-network-id"] {
        assert!(output.contains(part), "{part} in {output}");
    }
    assert!(!output.contains("hunter2-is-secret"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_can_be_checked_without_running() {
    let stage = Stage::new().await;
    let argument = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let (status, output) = Process::run(&stage, &["check-config", &argument]);
    assert!(status.success(), "{output}");
    assert!(output.contains("valid"), "{output}");
    stage.set_cloud_conf(BROKEN);
    let (status, output) = Process::run(&stage, &["check-config", &argument]);
    assert_eq!(status.code(), Some(1));
    assert!(output.contains("cloud.conf:8") && output.contains("cloud.conf:9"), "{output}");
    assert!(stage.kube.requests().is_empty() && stage.cloud.log().calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_missing_or_cannot_be_read_is_named() {
    let stage = Stage::new().await;
    let (status, output) = Process::run(&stage, &["--cloud-config=/nowhere/cloud.conf"]);
    assert_eq!(status.code(), Some(1));
    assert!(output.contains("/nowhere/cloud.conf"), "{output}");
    // A folder, as a mount without its file is one.
    let folder = stage.directory().display().to_string();
    let (status, output) = Process::run(&stage, &[&format!("--cloud-config={folder}")]);
    assert_eq!(status.code(), Some(1));
    assert!(output.contains(&folder), "{output}");
    let (status, output) = Process::run(&stage, &["--cloud-provider=aws", "--controllers=nonsense"]);
    assert_eq!(status.code(), Some(1));
    for part in ["--cloud-provider=aws", "--cloud-config is missing", "nonsense"] {
        assert!(output.contains(part), "{part} in {output}");
    }
}
