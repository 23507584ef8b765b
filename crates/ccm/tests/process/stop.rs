//! Ending.

use crate::process::Process;
use crate::stage::{Stage, until};

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_gives_the_lease_back_and_ends_well() {
    let stage = Stage::new().await;
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_ready().await;
    stage.serve("web").await;
    assert_ne!(stage.holder(), "");
    process.stops().await;
    assert_eq!(stage.holder(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_one_that_waits_for_openstack() {
    let stage = Stage::without_cloud().await;
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_says("OpenStack cannot be used yet").await;
    process.stops().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_loses_the_lease_ends_so_that_it_starts_afresh() {
    let stage = Stage::new().await;
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_ready().await;
    let usurper = serde_json::json!({"spec": {"holderIdentity": "somebody-else"}});
    until("somebody else holds the lease", || {
        stage.kube.patch("leases", "kube-system", "cloud-controller-manager", &usurper).is_ok()
    })
    .await;
    assert_eq!(process.end().await.code(), Some(1));
    assert!(process.output().contains("leadership"), "{}", process.output());
    assert_eq!(stage.holder(), "somebody-else");
}
