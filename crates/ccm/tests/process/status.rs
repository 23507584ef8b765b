//! `status`: who leads and what is published, for somebody with a kubeconfig.

use serde_json::json;

use crate::process::Process;
use crate::stage::{Stage, until};

fn status(stage: &Stage) -> (bool, String) {
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let (status, output) = Process::run(stage, &["status", &kubeconfig]);
    (status.success(), output)
}

fn line<'a>(output: &'a str, what: &str) -> &'a str {
    output.lines().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("no {what} in {output}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_names_the_leader_its_version_its_controllers_and_the_state_of_services() {
    let stage = Stage::new().await;
    let process = Process::start(&stage, "ccm", &["--controllers=service,cloud-node"]);
    process.until_ready().await;
    stage.serve("web").await;
    let (success, output) = status(&stage);
    assert!(success, "{output}");
    assert!(line(&output, "Leader").contains(&stage.holder()), "{output}");
    assert!(
        line(&output, "Version").contains(concat!("openstack-ccm ", env!("CARGO_PKG_VERSION"))),
        "{output}"
    );
    assert!(
        line(&output, "Controllers").ends_with("cloud-node-controller, service-lb-controller"),
        "{output}"
    );
    assert!(line(&output, "Cluster name").ends_with(" c1"), "{output}");
    assert!(line(&output, "Region").ends_with(" RegionOne"), "{output}");
    assert!(line(&output, "Nodes").ends_with("2: 2 v1.36.0"), "{output}");
    assert!(line(&output, "ipMode Proxy").ends_with("honoured by 2 of 2 nodes: 2 by version"), "{output}");
    assert!(line(&output, "API server").contains("v1.36."), "{output}");
    assert!(line(&output, "Services").ends_with("1 of type LoadBalancer: 1 ipMode Proxy"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_fails_where_nobody_leads_and_does_not_believe_the_word_of_an_earlier_leader() {
    let stage = Stage::new().await;
    let (success, output) = status(&stage);
    assert!(!success && line(&output, "Leader").contains("none: the Lease"), "{output}");
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_says("became leader").await;
    process.stops().await;
    let (success, output) = status(&stage);
    assert!(!success && output.contains("the Lease was released"), "{output}");
    let others = json!({"spec": {"holderIdentity": "occm-0_5f0c", "leaseDurationSeconds": 3600}});
    stage.kube.patch("leases", "kube-system", "cloud-controller-manager", &others).unwrap();
    let (success, output) = status(&stage);
    assert!(success && line(&output, "Version").contains("not known"), "{output}");
}

/// What the rights of whoever asks do not allow is said and left out.
#[tokio::test(flavor = "multi_thread")]
async fn it_shows_what_may_be_read() {
    let stage = Stage::new().await;
    let process = Process::start(&stage, "ccm", &[]);
    process.until_says("became leader").await;
    until("the lease is held", || !stage.holder().is_empty()).await;
    stage.kube.inject(openstack_ccm_kube_sim::Fault::on("GET", "nodes").fail(
        403,
        "Forbidden",
        "nodes is forbidden",
    ));
    let (success, output) = status(&stage);
    assert!(success, "{output}");
    assert!(
        line(&output, "Nodes").contains("cannot be read: ") && line(&output, "Nodes").contains("forbidden"),
        "{output}"
    );
}
