//! A trial beside another cloud-controller-manager: nothing of it is the other's, and only the service controller runs.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use rstest::rstest;

use crate::cluster::Cluster;
use crate::helm::{CLOUD, IMAGE, Objects, Release, repository, text};
use crate::upgrade::succeeds;

const CLASS: &str = "trial.loadBalancerClass=openstack-ccm.io/trial";

/// Kind, namespace and name of every object.
fn identities(objects: &Objects) -> BTreeSet<[String; 3]> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let identity = |object: &serde_json::Value| {
        [text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"])]
    };
    objects.0.iter().map(identity).collect()
}

/// The values are those of the release that is there, as somebody would give them: `--values` of both with one file.
#[rstest]
#[case::defaults_of_occm("occm-defaults.yaml")]
#[case::own_names("occm-documented.yaml")]
#[case::everything("everything.yaml")]
fn nothing_of_a_trial_is_what_the_release_beside_it_has(#[case] values: &'static str) {
    let beside = Release::new().values(values);
    // A list of controllers and a --controllers among the arguments would be another matter.
    let Some(there) = beside.objects() else { return };
    let trial = Release::new().values(values).set(CLASS).objects().unwrap();
    let (there_names, trial_names) = (identities(&there), identities(&trial));
    let both: Vec<_> = there_names.intersection(&trial_names).collect();
    assert!(both.is_empty(), "{both:?}");
    assert_eq!(there_names.len(), trial_names.len(), "it has all its parts");
    let port = |objects: &Objects| objects.container()["ports"][0]["containerPort"].clone();
    assert_ne!(port(&there), port(&trial));
    let labels = &trial.pod()["metadata"]["labels"];
    for (label, value) in
        labels.as_object().unwrap().iter().filter(|(label, _)| ["app", "component"].contains(&label.as_str()))
    {
        assert_ne!(
            there.pod()["metadata"]["labels"][label],
            *value,
            "one Service would choose the pods of both"
        );
    }
}

#[test]
fn only_the_service_controller_runs_on_a_lease_and_a_class_of_its_own() {
    let Some(objects) = Release::new().values("occm-documented.yaml").set(CLASS).objects() else { return };
    let arguments = objects.arguments();
    let with = |start: &str| {
        arguments.iter().filter(|argument| argument.starts_with(start)).cloned().collect::<Vec<_>>()
    };
    assert_eq!(with("--controllers"), ["--controllers=service"]);
    assert_eq!(with("--load-balancer-class"), ["--load-balancer-class=openstack-ccm.io/trial"]);
    assert_eq!(with("--secure-port"), ["--secure-port=10358"]);
    let leases = with("--leader-elect-resource-name");
    assert_eq!(leases.last().unwrap(), "--leader-elect-resource-name=occm-lease-trial", "the last one holds");
    assert_eq!(objects.one("Role")["rules"][1]["resourceNames"], serde_json::json!(["occm-lease-trial"]));
    let role = objects.named("ClusterRole", "occm-trial")["rules"].to_string();
    assert!(!role.contains("nodes/status") && !role.contains("delete"), "{role}");
    for probe in ["livenessProbe", "readinessProbe"] {
        let given = &objects.container()[probe]["httpGet"]["path"];
        assert_eq!(given, "/healthz", "a given probe stays as it is");
    }
}

#[rstest]
#[case::controllers("extraArgs={--controllers=*}", "--controllers")]
#[case::class("controllerExtraArgs=- --load-balancer-class=other", "--load-balancer-class")]
#[case::port("extraArgs={--secure-port=10258}", "--secure-port")]
fn an_argument_that_would_undo_the_trial_is_refused(#[case] setting: &str, #[case] flag: &str) {
    let Some(error) = Release::new().set(CLASS).set(setting).error() else { return };
    let is_explained = error.contains("trial.loadBalancerClass") || error.contains("set securePort");
    assert!(error.contains(flag) && is_explained, "{error}");
}

/// On a real API server: the release that is there stays as it is, and removing the trial leaves nothing of it.
#[tokio::test]
async fn a_trial_is_installed_beside_the_release_of_occm_and_removed() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.has_occm();
    let values = repository("crates/ccm/tests/chart/values/occm-defaults.yaml").display().to_string();
    let chart = repository("charts/openstack-ccm").display().to_string();
    let workloads: Api<DaemonSet> = Api::namespaced(cluster.client().await, "kube-system");
    let before = workloads.get("openstack-cloud-controller-manager").await.unwrap();

    // Without the value the two would share names: Helm refuses it, and nothing is changed.
    let alone = ["install", "trial", &chart, "--values", &values, "--set", IMAGE, "--set-json", CLOUD];
    let clash = cluster.helm(&alone);
    assert!(
        text(&clash.stderr).contains("cannot be imported into the current release"),
        "{}",
        text(&clash.stderr)
    );

    let settings = format!("{IMAGE},{CLASS},secret.create=false,secret.name=cloud-config");
    let output = cluster.helm(&["install", "trial", &chart, "--values", &values, "--set", &settings]);
    succeeds(&output);
    let notes = text(&output.stdout);
    assert!(notes.contains("loadBalancerClass: openstack-ccm.io/trial"), "{notes}");
    let trial = workloads.get("openstack-ccm-trial").await.unwrap();
    assert_eq!(
        trial.spec.template.spec.unwrap().service_account_name.unwrap(),
        "cloud-controller-manager-trial"
    );
    let after = workloads.get("openstack-cloud-controller-manager").await.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);

    succeeds(&cluster.helm(&["uninstall", "trial"]));
    assert!(workloads.get_opt("openstack-ccm-trial").await.unwrap().is_none());
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client().await, "kube-system");
    accounts.get("cloud-controller-manager").await.unwrap();
    assert!(accounts.get_opt("cloud-controller-manager-trial").await.unwrap().is_none());
}
