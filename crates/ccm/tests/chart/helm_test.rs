//! `helm test`: `check-config --online` and `status` where and as whom the pods of the release run.

use clap::Parser as _;
use openstack_ccm::command_line::{Action, CommandLine};
use rstest::rstest;
use serde_json::{Value, json};

use crate::helm::{Objects, Release, strings};

/// The specs of the pods. Each has one container, or `helm test --logs` fails.
fn tested(objects: &Objects) -> Vec<&Value> {
    let is_hook = |pod: &&Value| pod["metadata"]["annotations"]["helm.sh/hook"] == "test";
    let pods: Vec<&Value> = objects.all("Pod").filter(is_hook).map(|pod| &pod["spec"]).collect();
    assert!(pods.iter().all(|pod| pod["containers"].as_array().is_some_and(|all| all.len() == 1)));
    pods
}

/// The arguments of the container of this name.
fn arguments(objects: &Objects, name: &str) -> Vec<String> {
    let pods = tested(objects);
    let container = pods.iter().map(|pod| &pod["containers"][0]).find(|container| container["name"] == name);
    strings(&container.unwrap()["args"])
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
    let (pods, container) = (&objects.pod()["spec"], objects.container());
    let fields = [
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
    ];
    for tested in tested(&objects) {
        for field in fields {
            assert_eq!(tested[field], pods[field], "{field}");
        }
        for field in ["image", "env", "volumeMounts", "resources", "securityContext"] {
            assert_eq!(tested["containers"][0][field], container[field], "{field}");
        }
        assert_eq!(tested["restartPolicy"], "Never", "one look");
    }
}

#[rstest]
#[case::default(Release::new(), &["cloud-node", "cloud-node-lifecycle", "route", "service"])]
#[case::trial(Release::new().set("trial.loadBalancerClass=example.org/trial"), &["service"])]
fn the_test_asks_the_cloud_for_what_these_controllers_need(
    #[case] release: Release,
    #[case] expected: &[&str],
) {
    let Some(objects) = release.objects() else { return };
    let mut arguments = arguments(&objects, "check-config");
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

#[rstest]
#[case::default(Release::new(), None)]
#[case::trial(Release::new().set("trial.loadBalancerClass=example.org/trial"), None)]
#[case::workload_cluster(
    Release::new().set("workloadCluster.kubeconfigSecret=shop").set("kind=Deployment").set("hostNetwork=false"),
    Some("/etc/workload-cluster/kubeconfig")
)]
fn the_test_asks_who_leads(#[case] release: Release, #[case] kubeconfig: Option<&str>) {
    let Some(objects) = release.objects() else { return };
    let arguments = arguments(&objects, "status");
    let Some(Action::Status(status)) = CommandLine::parse_from(&arguments).command else {
        panic!("{arguments:?}")
    };
    let of_pods = strings(&objects.container()["args"]);
    let name = of_pods.iter().rev().find_map(|one| one.strip_prefix("--leader-elect-resource-name="));
    assert_eq!(status.lease.leader_elect_resource_name, name.unwrap_or("cloud-controller-manager"));
    assert_eq!(status.lease.leader_elect_resource_namespace, "kube-system");
    assert_eq!(json!(status.person.kubeconfig), json!(kubeconfig));
}

/// An account that may read, and nothing else.
#[rstest]
#[case::default(Release::new(), None)]
#[case::trial(Release::new().set("trial.loadBalancerClass=example.org/trial"), Some("example.org/trial"))]
fn doctor_looks_with_a_role_of_its_own(#[case] release: Release, #[case] class: Option<&str>) {
    let Some(objects) = release.set("helmTest.doctor=true").objects() else { return };
    let is_hook = |object: &&Value| object["metadata"]["annotations"]["helm.sh/hook"] == "test";
    let of_kind = |kind: &str| objects.all(kind).filter(is_hook).collect::<Vec<_>>();
    let pods = of_kind("Pod");
    let pod = pods.iter().find(|pod| pod["spec"]["containers"][0]["name"] == "doctor").unwrap();
    let (accounts, roles, bindings) =
        (of_kind("ServiceAccount"), of_kind("ClusterRole"), of_kind("ClusterRoleBinding"));
    assert_eq!((accounts.len(), roles.len(), bindings.len()), (1, 1, 1));
    let name = &accounts[0]["metadata"]["name"];
    assert_eq!(&pod["spec"]["serviceAccountName"], name);
    assert_eq!(&bindings[0]["subjects"][0]["name"], name);
    assert_eq!(bindings[0]["roleRef"]["name"], roles[0]["metadata"]["name"]);
    let printed: Value = serde_saphyr::from_str(openstack_ccm_tools::doctor::rbac::ROLE).unwrap();
    assert_eq!(roles[0]["rules"], printed["rules"]);
    let has_maps = |rule: &&Value| strings(&rule["resources"]).iter().any(|one| one == "configmaps");
    let of_maps = printed["rules"].as_array().unwrap().iter().find(has_maps).unwrap();
    assert_eq!(of_maps["verbs"], json!(["get"]), "it reads each by its name");
    let mut arguments = strings(&pod["spec"]["containers"][0]["args"]);
    for argument in &mut arguments {
        *argument =
            argument.replace("$(CLOUD_CONFIG)", "/etc/config/cloud.conf").replace("$(CLUSTER_NAME)", "c1");
    }
    let parsed = CommandLine::parse_from(&arguments).command;
    assert!(matches!(parsed, Some(Action::Doctor(_))), "{arguments:?}");
    let given = arguments.iter().find_map(|one| one.strip_prefix("--load-balancer-class="));
    assert_eq!(given, class);
}
