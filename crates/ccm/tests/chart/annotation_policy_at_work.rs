//! The policy for annotations on a real API server: beside OCCM, as a trial has it, and after the switch.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use openstack_ccm_provider_openstack::load_balancer::annotations::{ALL, Form};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::helm::{CLOUD, IMAGE, repository};
use crate::upgrade::succeeds;

/// Longest time until the API server follows a policy; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);
const TRIAL: &str = "openstack-ccm.io/trial";
const PROXY_PROTOCOL: &str = "loadbalancer.openstack.org/proxy-protocol";
const TIMEOUT: &str = "loadbalancer.openstack.org/timeout-client-data";
const UNKNOWN: &str = "loadbalancer.openstack.org/proxy-protocoll";

/// A Service of a class, which may be that of OCCM, none.
fn service(name: &str, class: Option<&str>, annotations: &Value) -> Service {
    let object = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": class, "ports": [{"port": 80}]},
    });
    serde_json::from_value(object).unwrap()
}

fn services(client: &Client) -> Api<Service> {
    Api::namespaced(client.clone(), "default")
}

/// What the API server says against a Service that it is asked to take, and does not store.
async fn refusal(client: &Client, service: &Service) -> Option<String> {
    let asking = PostParams { dry_run: true, ..PostParams::default() };
    services(client).create(&asking, service).await.err().map(|error| error.to_string())
}

/// What the API server answers to a Service that it is asked to take, and does not store: the status, and the warnings.
async fn answer(client: &Client, service: &Service) -> (http::StatusCode, Vec<String>) {
    let request = http::Request::post("/api/v1/namespaces/default/services?dryRun=All")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(service).unwrap().into())
        .unwrap();
    let answer = client.send(request).await.unwrap();
    let said = answer.headers().get_all("warning").into_iter();
    let warnings = said.map(|value| value.to_str().unwrap().replace("\\\"", "\"")).collect();
    (answer.status(), warnings)
}

/// The warnings that come with a Service, which is taken.
async fn warnings(client: &Client, service: &Service) -> Vec<String> {
    let (status, warnings) = answer(client, service).await;
    assert!(status.is_success(), "{status}");
    warnings
}

/// Waits until the API server follows the policy.
async fn until_followed(client: &Client, class: Option<&str>) {
    let wrong = service("probe", class, &json!({UNKNOWN: "true"}));
    let began = Instant::now();
    loop {
        // One question: the policy may come into force between two.
        let (status, warnings) = answer(client, &wrong).await;
        if !status.is_success() || !warnings.is_empty() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "the policy is not followed");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Annotations with a value that the program reads, and the two ends of what it reads.
fn right_values() -> impl Iterator<Item = (&'static str, String)> {
    ALL.iter().flat_map(|one| {
        let values: Vec<String> = match one.form {
            Form::Bool => vec!["true".into(), "false".into(), String::new()],
            Form::Integer { min, max, .. } => vec![min.to_string(), max.to_string(), format!("+{max}")],
            Form::Word(words) => words.iter().map(|&word| word.to_owned()).collect(),
            Form::Uuid(_) => vec!["5ac83ea8-7b26-4a4c-9a0d-0f5b2a1c7d3e".into()],
            // Kubernetes itself reads source ranges.
            Form::Text(_) | Form::Output(_) => vec!["192.0.2.0/24".into()],
        };
        values.into_iter().map(move |value| (one.key, value))
    })
}

/// The API servers that have the kind of policy.
fn clusters() -> impl Iterator<Item = Cluster> {
    Cluster::start_each(|minor| minor >= 30)
}

#[tokio::test]
async fn a_trial_refuses_wrong_annotations_of_its_class_and_leaves_those_of_occm_alone() {
    for cluster in clusters() {
        println!("on Kubernetes 1.{}", cluster.minor);
        a_trial_refuses_wrong_annotations(&cluster).await;
    }
}

async fn a_trial_refuses_wrong_annotations(cluster: &Cluster) {
    cluster.has_occm();
    let client = cluster.client().await;
    // From before the policy.
    let old = service("old", Some(TRIAL), &json!({PROXY_PROTOCOL: "yes", UNKNOWN: "1"}));
    services(&client).create(&PostParams::default(), &old).await.unwrap();
    let going = service("going", Some(TRIAL), &json!({PROXY_PROTOCOL: "yes"}));
    services(&client).create(&PostParams::default(), &going).await.unwrap();

    let chart = repository("charts/openstack-ccm").display().to_string();
    let policy = "annotationPolicy.enabled=true,annotationPolicy.action=Deny";
    let class = format!("trial.loadBalancerClass={TRIAL}");
    let release = ["install", "trial", &chart, "--set", IMAGE, "--set-json", CLOUD, "--set", &class];
    succeeds(&cluster.helm(&[&release[..], &["--set", policy]].concat()));
    until_followed(&client, Some(TRIAL)).await;

    for (key, value, said) in [
        (UNKNOWN, "true", "does not know the annotation loadbalancer.openstack.org/proxy-protocoll"),
        ("loadbalancer.openstack.org/x-forwarded-for", "yes", "reads true or false"),
        (TIMEOUT, "soon", "reads a whole number"),
        (TIMEOUT, "99999999999", "reads a whole number"),
        ("loadbalancer.openstack.org/node-address-type", "internal", "use InternalIP, ExternalIP"),
        ("loadbalancer.openstack.org/load-balancer-id", "mine", "write a UUID"),
    ] {
        let wrong = service("web", Some(TRIAL), &json!({key: value}));
        let refused = refusal(&client, &wrong).await.unwrap_or_default();
        assert!(refused.contains(said) && refused.contains(key), "{key}={value}: {refused}");
        for other in [None, Some("example.org/other")] {
            assert_eq!(refusal(&client, &service("web", other, &json!({key: value}))).await, None);
        }
    }
    for (key, value) in right_values() {
        let right = service("web", Some(TRIAL), &json!({key: value}));
        assert_eq!(refusal(&client, &right).await, None, "{key}={value}");
    }
    what_is_there_stays(&client).await;
}

/// Changes of Services whose annotations were wrong before.
async fn what_is_there_stays(client: &Client) {
    let patch = async |name: &str, change: Value| {
        let patched = services(client).patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
        patched.err().map(|error| error.to_string())
    };
    assert_eq!(patch("old", json!({"spec": {"ports": [{"port": 81}]}})).await, None);
    assert_eq!(patch("old", json!({"metadata": {"annotations": {TIMEOUT: "60000"}}})).await, None);
    assert_eq!(patch("old", json!({"metadata": {"finalizers": ["example.org/a"]}})).await, None);
    let wrong = patch("old", json!({"metadata": {"annotations": {TIMEOUT: "1m"}}})).await.unwrap_or_default();
    assert!(wrong.contains(TIMEOUT) && !wrong.contains(UNKNOWN), "{wrong}");
    // A controller writes the status whatever stands in the annotations.
    let status = Patch::Merge(json!({
        "metadata": {"annotations": {UNKNOWN: "2"}},
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}},
    }));
    services(client).patch_status("old", &PatchParams::default(), &status).await.unwrap();

    assert_eq!(patch("going", json!({"metadata": {"finalizers": ["example.org/a"]}})).await, None);
    services(client).delete("going", &DeleteParams::default()).await.unwrap();
    assert_eq!(patch("going", json!({"metadata": {"annotations": {UNKNOWN: "3"}}})).await, None);
    assert_eq!(patch("going", json!({"metadata": {"finalizers": null}})).await, None);
    assert!(services(client).get_opt("going").await.unwrap().is_none());
}

#[tokio::test]
async fn after_the_switch_a_wrong_annotation_is_a_warning() {
    for cluster in clusters() {
        println!("on Kubernetes 1.{}", cluster.minor);
        a_wrong_annotation_is_a_warning(&cluster).await;
    }
}

async fn a_wrong_annotation_is_a_warning(cluster: &Cluster) {
    cluster.has_occm();
    let client = cluster.client().await;
    let chart = repository("charts/openstack-ccm").display().to_string();
    let settings = format!("{IMAGE},image.tag=,annotationPolicy.enabled=auto");
    succeeds(&cluster.helm(&["upgrade", "occm", &chart, "--reset-then-reuse-values", "--set", &settings]));
    until_followed(&client, None).await;
    let wrong = service("web", None, &json!({PROXY_PROTOCOL: "true", TIMEOUT: "1m"}));
    let said = warnings(&client, &wrong).await;
    assert!(said.len() == 1 && said[0].contains(TIMEOUT) && said[0].contains("\"1m\""), "{said:?}");
    assert_eq!(warnings(&client, &service("web", Some(TRIAL), &json!({TIMEOUT: "1m"}))).await, [""; 0]);
    let right = service("web", None, &json!({PROXY_PROTOCOL: "true", TIMEOUT: "60000"}));
    assert_eq!(warnings(&client, &right).await, [""; 0]);
}
