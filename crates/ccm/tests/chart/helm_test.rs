//! `helm test`: `check-config --online` where and as whom the pods of the release run.

use clap::Parser as _;
use openstack_ccm::command_line::{Action, CommandLine};
use rstest::rstest;
use serde_json::{Value, json};

use crate::helm::{Objects, Release, strings};

fn tested(objects: &Objects) -> &Value {
    let pod = objects.one("Pod");
    assert_eq!(pod["metadata"]["annotations"]["helm.sh/hook"], "test");
    &pod["spec"]
}

#[rstest]
#[case::default(Release::new())]
#[case::trial(Release::new().set("trial.loadBalancerClass=example.org/trial"))]
#[case::everything(Release::new().values("everything.yaml"))]
#[case::occm_documented(Release::new().values("occm-documented.yaml"))]
#[case::workload_cluster(
    Release::new().set("workloadCluster.kubeconfigSecret=shop").set("kind=Deployment").set("hostNetwork=false")
)]
fn the_test_runs_as_the_pods_do(#[case] release: Release) {
    let Some(objects) = release.objects() else { return };
    let (pods, tested) = (&objects.pod()["spec"], tested(&objects));
    for field in [
        "serviceAccountName",
        "automountServiceAccountToken",
        "hostNetwork",
        "dnsPolicy",
        "dnsConfig",
        "hostAliases",
        "tolerations",
        "nodeSelector",
        "imagePullSecrets",
        "initContainers",
        "securityContext",
        "volumes",
    ] {
        assert_eq!(tested[field], pods[field], "{field}");
    }
    let (container, test) = (objects.container(), &tested["containers"][0]);
    for field in ["image", "env", "volumeMounts", "resources", "securityContext"] {
        assert_eq!(test[field], container[field], "{field}");
    }
    assert_eq!(tested["restartPolicy"], "Never", "one look");
}

#[rstest]
#[case::default(Release::new(), &["cloud-node", "cloud-node-lifecycle", "route", "service"])]
#[case::trial(Release::new().set("trial.loadBalancerClass=example.org/trial"), &["service"])]
fn the_test_asks_the_cloud_for_what_these_controllers_need(
    #[case] release: Release,
    #[case] expected: &[&str],
) {
    let Some(objects) = release.objects() else { return };
    let mut arguments = strings(&tested(&objects)["containers"][0]["args"]);
    for argument in &mut arguments {
        *argument = argument.replace("$(CLOUD_CONFIG)", "/etc/config/cloud.conf");
    }
    let Some(Action::CheckConfig(check)) = CommandLine::parse_from(&arguments).command else {
        panic!("{arguments:?}")
    };
    assert!(check.online && !check.services);
    assert_eq!(json!(check.config.cloud_config), json!(["/etc/config/cloud.conf"]));
    assert_eq!(check.controllers, expected);
}
