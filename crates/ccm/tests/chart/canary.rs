//! The canary of the chart: what its pods are, who reads them, and that they hold nobody up.

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::objects::Canary;
use openstack_ccm_canary::{CONTROL, NAMESPACE, SUBJECT};
use rstest::rstest;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::helm::{CLOUD, IMAGE, Objects, Release, read, repository, strings, text};
use crate::manifests::of_helm_removed;
use crate::upgrade::succeeds;

fn release() -> Release {
    Release::new().set("canary.enabled=true")
}

fn of_program() -> Canary {
    Canary {
        namespace: NAMESPACE.into(),
        image: concat!("registry.example.org/openstack-ccm:", env!("CARGO_PKG_VERSION")).into(),
        addresses: Addresses::permanent(),
    }
}

#[test]
fn the_objects_are_those_that_the_program_makes_itself() {
    let Some(objects) = release().objects() else { return };
    let ours = of_program();
    let template = &objects.named("DaemonSet", "openstack-ccm-canary")["spec"]["template"];
    assert_eq!(*template, ours.template());
    for (service, name) in ours.services().iter().zip([CONTROL, SUBJECT]) {
        assert_eq!(objects.named("Service", name)["spec"], service["spec"]);
    }
    assert_eq!(objects.one("NetworkPolicy")["spec"], ours.network_policy()["spec"]);
    let namespace = &objects.one("Namespace")["metadata"];
    for (label, value) in ours.namespace()["metadata"]["labels"].as_object().unwrap() {
        assert_eq!(namespace["labels"][label], *value, "{label}");
    }
}

#[rstest]
#[case::alone("canary.enabled=true", &["cloud-controller-manager"])]
#[case::accounts("canary.enabled=true,extraArgs={--use-service-account-credentials}", &["cloud-controller-manager", "service-controller"])]
fn the_controller_is_configured_and_may_read_the_pods(#[case] settings: &str, #[case] accounts: &[&str]) {
    let Some(objects) = Release::new().set(settings).objects() else { return };
    let workload = objects.named("DaemonSet", "openstack-cloud-controller-manager");
    let arguments = strings(&workload["spec"]["template"]["spec"]["containers"][0]["args"]);
    assert!(arguments.contains(&format!("--canary-namespace={NAMESPACE}")), "{arguments:?}");
    assert!(arguments.contains(&format!("--canary-addresses={}", Addresses::permanent())), "{arguments:?}");
    let of_canary = |kind: &str| -> Value {
        objects.all(kind).find(|object| object["metadata"]["namespace"] == NAMESPACE).unwrap().clone()
    };
    assert_eq!(
        of_canary("Role")["rules"],
        json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list", "watch"]},
        ])
    );
    let subjects = of_canary("RoleBinding")["subjects"].clone();
    let names: Vec<&str> =
        subjects.as_array().unwrap().iter().map(|subject| subject["name"].as_str().unwrap()).collect();
    assert_eq!(names, accounts);
}

/// On a real API server: the restricted level of pod security lets the pods in, and an unfit node fails no upgrade.
#[tokio::test]
async fn the_pods_are_let_in_and_unfit_nodes_hold_no_upgrade_up() {
    let Some(cluster) = Cluster::start() else { return };
    let chart = repository("charts/openstack-ccm").display().to_string();
    let settings = format!("{IMAGE},canary.enabled=true,kind=Deployment,replicas=0");
    succeeds(&cluster.helm(&["install", "occm", &chart, "--set", &settings, "--set-json", CLOUD]));
    let client = cluster.client().await;

    // No controller makes it here, and without it no pod is let in.
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), NAMESPACE);
    let account = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let pod: Pod = serde_json::from_value(of_program().pod("node1", "token")).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let mut privileged = pod;
    privileged.spec.as_mut().unwrap().host_network = Some(true);
    assert!(pods.create(&PostParams::default(), &privileged).await.is_err(), "the level is enforced");

    let sets = Api::<k8s_openapi::api::apps::v1::DaemonSet>::namespaced(client.clone(), NAMESPACE);
    let seen = json!({"status": {
        "observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 3,
        "numberReady": 0, "numberUnavailable": 3, "numberMisscheduled": 0,
    }});
    sets.patch_status("openstack-ccm-canary", &PatchParams::default(), &Patch::Merge(&seen)).await.unwrap();
    let workloads = Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(client, "kube-system");
    let seen = json!({"status": {"observedGeneration": 1, "replicas": 0}});
    let name = "openstack-cloud-controller-manager";
    workloads.patch_status(name, &PatchParams::default(), &Patch::Merge(&seen)).await.unwrap();
    let upgrade = ["upgrade", "occm", &chart, "--set", &settings, "--wait", "--timeout", "20s"];
    let waited = cluster.helm(&upgrade);
    assert!(!text(&waited.stderr).contains("openstack-ccm-canary"), "{}", text(&waited.stderr));
}

/// What a kustomization adds as a component.
#[test]
fn the_plain_manifests_of_the_canary_are_up_to_date() {
    let settings = "image.repository=registry.invalid/openstack-ccm,secret.create=false,canary.enabled=true";
    let Some(rendered) = Release::without_image().set(settings).text() else { return };
    let documents: Vec<String> = rendered.split("---\n").map(of_helm_removed).collect();
    let namespace = format!("namespace: {NAMESPACE}");
    let of_canary =
        |document: &&String| document.contains(&namespace) || document.contains("\nkind: Namespace\n");
    let documents: Vec<&str> = documents.iter().filter(of_canary).map(String::as_str).collect();
    let page =
        format!("# Generated from charts/openstack-ccm by `make manifests`.\n{}", documents.join("---\n"));
    let path = "manifests/canary/canary.yaml";
    if std::env::var_os("UPDATE_MANIFESTS").is_some() {
        std::fs::write(repository(path), &page).unwrap();
    }
    assert!(read(path) == page, "{path} is out of date; regenerate it with `make manifests`");
    assert!(Objects::parse(&page).0.len() >= 7);
    let component = read("manifests/canary/kustomization.yaml");
    for argument in
        [format!("--canary-namespace={NAMESPACE}"), format!("--canary-addresses={}", Addresses::permanent())]
    {
        assert!(component.contains(&argument), "manifests/canary/kustomization.yaml lacks {argument}");
    }
}
