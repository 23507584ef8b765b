//! `plan`, `adopt` and `orphans` as an operator types them.

use std::time::Duration;

use openstack_ccm_openstack_sim::Fault;
use serde_json::{Value, json};

use crate::process::Process;
use crate::stage::Stage;

/// Runs a subcommand on the stage: its exit code, and what it writes.
fn run(stage: &Stage, arguments: &[&str]) -> (i32, String) {
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let mut all = vec![arguments[0], &conf, &kubeconfig];
    all.extend(&arguments[1..]);
    let (status, output) = Process::run(stage, &all);
    (status.code().unwrap(), output)
}

/// A Service that is served, of a cluster that is called `c1`; nothing runs any more.
async fn served() -> Stage {
    let stage = Stage::new().await;
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_ready().await;
    stage.serve("web").await;
    process.stops().await;
    stage
}

/// Takes away what shows that this program was here, as if OCCM had made everything.
fn as_occm(stage: &Stage) {
    let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
    let user = stage.cloud.user();
    for one in stage.cloud.load_balancers() {
        let tags = json!({"loadbalancer": {"tags": [one["name"]]}});
        user.put("load-balancer", &format!("/v2.0/lbaas/loadbalancers/{}", id(&one)), &tags);
        stage.cloud.settle();
    }
    for one in stage.cloud.listeners() {
        let tags = json!({"listener": {"tags": [stage.cloud.load_balancers()[0]["name"]]}});
        user.put("load-balancer", &format!("/v2.0/lbaas/listeners/{}", id(&one)), &tags);
        stage.cloud.settle();
    }
    for one in stage.cloud.floating_ips() {
        user.put("network", &format!("/v2.0/floatingips/{}/tags", id(&one)), &json!({"tags": []}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_named_as_for_kubectl_and_a_plan_says_how_much_it_looked_at() {
    let stage = served().await;
    let name = "--cluster-name=c1";
    for (chosen, checked) in [
        (&[][..], "No changes: 1 Service, 2 nodes checked."),
        (&["-A"], "No changes: 1 Service, 2 nodes checked."),
        (&["--all-namespaces"], "No changes: 1 Service, 2 nodes checked."),
        (&["default/web"], "No changes: 1 Service checked."),
        (&["web"], "No changes: 1 Service checked."),
        (&["svc/web", "-n", "default"], "No changes: 1 Service checked."),
        (&["-n", "default"], "No changes: 1 Service checked."),
        (&["-n", "other"], "No changes: 0 Services checked."),
        (&["--load-balancer-class=foo/bar"], "No changes: 0 Services, 2 nodes checked."),
    ] {
        let (code, output) = run(&stage, &[&["plan", name], chosen].concat());
        assert!(code == 0 && output.trim_end().ends_with(checked), "{chosen:?}: {code}: {output}");
        assert!(output.contains(": no connections will be interrupted.\n"), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_the_proxy_protocol_says_what_the_pods_must_do() {
    let stage = served().await;
    let removed = "loadbalancer.openstack.org/proxy-protocol-";
    let (code, output) = run(&stage, &["plan", "--cluster-name=c1", "web", "--as-if", removed]);
    assert_eq!(code, 2, "{output}");
    assert!(!output.contains("no connections will be interrupted"), "{output}");
    for said in ["! 1 Service switches the PROXY protocol", "the pods must not expect this header", "80/TCP"]
    {
        assert!(output.contains(said), "{said} in {output}");
    }
}

/// A flag was forgotten: following advice to remove an annotation would give every Service another address.
#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_name_is_asked_about_before_anything_else() {
    let stage = served().await;
    for occm in [false, true] {
        if occm {
            as_occm(&stage);
        }
        let (code, output) = run(&stage, &["adopt"]);
        let first = output.lines().next().unwrap();
        assert!(
            first.starts_with(
                "! 1 load balancer is named kube_service_c1_…, but this plan is for --cluster-name=kubernetes."
            ),
            "{output}"
        );
        assert!(first.contains("--cluster-name=c1"), "{output}");
        assert_eq!(code, 3, "{output}");
        for untrue in ["no connections will be interrupted", "all are there"] {
            assert!(!output.contains(untrue) || !occm, "{untrue} in {output}");
        }
        let (_, output) = run(&stage, &["adopt", "--cluster-name=c1"]);
        assert!(output.starts_with("Planned at "), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typo_in_a_uid_or_a_name_is_no_proof_that_nothing_is_orphaned() {
    let stage = served().await;
    let orphans = |more: &[&str]| run(&stage, &[&["orphans"], more].concat());
    assert_eq!(orphans(&[]), (0, "No orphans. (Objects younger than 10m0s are not judged.)\n".to_owned()));
    assert_eq!(orphans(&["--older-than=0s"]), (0, "No orphans.\n".to_owned()));
    assert!(orphans(&["--cluster-uid=abc"]).1.contains("No object carries the uid abc."));
    let (_, output) = orphans(&["--occm-names"]);
    assert!(output.contains("No object is named kube_service_kubernetes_*"), "{output}");
    assert_eq!(orphans(&["--occm-names", "--cluster-name=c1", "--older-than=0s"]).1, "No orphans.\n");
}

/// Whoever changes nothing keeps a load balancer that works; only what is new is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_value_is_kept_where_a_load_balancer_is_and_refused_where_none_is() {
    let stage = served().await;
    let wrong =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/timeout-client-data": "soon"}}});
    stage.kube.patch("services", "default", "web", &wrong).unwrap();
    stage.create_service("new");
    stage.kube.patch("services", "default", "new", &wrong).unwrap();
    for (name, state, other) in [("web", "!   keeps ", "refused"), ("new", "!   refused ", "keeps")] {
        let (code, output) = run(&stage, &["plan", "--cluster-name=c1", name]);
        assert_eq!(code, 3, "{output}");
        assert!(output.contains(state) && !output.contains(other), "{output}");
        assert!(output.contains("timeout-client-data"), "{output}");
    }
    let (_, output) = run(&stage, &["adopt", "--cluster-name=c1"]);
    assert!(
        output.contains("\nRefused: 1 Service;") && output.contains("\nValues: 1 Service has values"),
        "{output}"
    );
}

/// A new name is a warning about a load balancer, and about no value of the Service.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_that_gets_another_name_is_no_wrong_value() {
    let stage = served().await;
    let (_, output) = run(&stage, &["adopt", "--cluster-name=c2"]);
    assert!(output.contains("kube_service_c2_default_web"), "{output}");
    assert!(output.contains("\nValues: none is invalid or means something else here."), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_waits_sees_how_far_a_plan_is() {
    let stage = served().await;
    let (_, quick) = run(&stage, &["plan", "--cluster-name=c1"]);
    assert!(!quick.contains(" planned"), "{quick}");
    stage.cloud.faults().add(Fault::new().service("load-balancer").latency(Duration::from_millis(1500)));
    let (_, output) = run(&stage, &["plan", "--cluster-name=c1"]);
    assert!(output.contains("1 of 1 Service planned\n"), "{output}");
}

/// What `orphans` prints can be pasted into a shell.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_that_orphans_prints_deletes_what_it_names() {
    let stage = served().await;
    as_occm(&stage);
    let uid = json!({"metadata": {"finalizers": null}});
    stage.kube.patch("services", "default", "web", &uid).unwrap();
    stage.kube.delete("services", "default", "web").unwrap();
    let (code, output) = run(&stage, &["orphans", "--occm-names", "--cluster-name=c1", "--older-than=0s"]);
    assert_eq!(code, 2, "{output}");
    let command = output.lines().find_map(|line| line.trim().strip_prefix("delete ")).unwrap().trim();
    let program = env!("CARGO_BIN_EXE_openstack-ccm");
    let folder = std::path::Path::new(program).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let deleted =
        std::process::Command::new("bash").args(["-c", command]).env("PATH", path).output().unwrap();
    assert!(deleted.status.success(), "{command}: {}", String::from_utf8_lossy(&deleted.stderr));
    assert!(String::from_utf8_lossy(&deleted.stdout).starts_with("deleting in the cluster c1\ndeleted "));
}

/// A tenant may write any address into an annotation. What is published, service proxies capture.
#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_publishes_no_address_that_the_cloud_does_not_have_for_the_service() {
    let stage = served().await;
    let own = stage.cloud.floating_ips()[0]["floating_ip_address"].as_str().unwrap().to_owned();
    let ingress =
        || stage.kube.get("services", "default", "web").unwrap()["status"]["loadBalancer"]["ingress"].clone();
    let hostname = json!([{"hostname": "web.example.org"}]);
    let status = json!({"status": {"loadBalancer": {"ingress": hostname}}});
    stage.kube.patch_status("services", "default", "web", &status).unwrap();
    for (written, published) in
        [("203.0.113.66", hostname), (own.as_str(), json!([{"ip": own, "ipMode": "Proxy"}]))]
    {
        let annotation = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/load-balancer-address": written}}});
        stage.kube.patch("services", "default", "web", &annotation).unwrap();
        let (_, output) = run(&stage, &["hand-back", "--apply"]);
        assert_eq!(ingress(), published, "{output}");
    }
}

/// What OCCM finds, the cloud says, and not the annotations that were written while it was so.
#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_knows_of_a_load_balancer_that_is_gone() {
    let stage = served().await;
    let gone = "the cloud has no load balancer of this Service: OCCM creates one";
    let (_, output) = run(&stage, &["hand-back"]);
    assert!(!output.contains(gone), "{output}");
    let id = stage.cloud.load_balancers()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true");
    let (status, answer) =
        stage.cloud.user().send(&http::Method::DELETE, "load-balancer", &path, &Value::Null);
    assert_eq!(status, 204, "{answer}");
    stage.cloud.settle();
    let (code, output) = run(&stage, &["hand-back"]);
    assert!(code == 2 && output.contains(gone), "{code}: {output}");
}

/// Programs get values, and can rely on their form.
#[tokio::test(flavor = "multi_thread")]
async fn json_has_the_form_that_its_schema_states() {
    let stage = served().await;
    stage.create_service("new");
    let removed = "loadbalancer.openstack.org/proxy-protocol-";
    for (schema, arguments) in [
        ("plan", &["plan", "--cluster-name=c1", "-o", "json"][..]),
        ("plan", &["plan", "--cluster-name=c1", "web", "--as-if", removed, "-o", "json"]),
        ("plan", &["adopt", "-o", "json"]),
        ("check-config", &["check-config", "--online", "--services", "-o", "json"]),
        ("orphans", &["orphans", "-o", "json"]),
    ] {
        let (_, output) = run(&stage, arguments);
        conforms(schema, &output);
    }
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let (_, output) = Process::run(&stage, &["overlay", "check", "-o", "json", &kubeconfig]);
    conforms("overlay-check", &output);
    let process = Process::start(&stage, "ccm", &[]);
    process.until_says("became leader").await;
    let (_, output) = Process::run(&stage, &["status", "-o", "json", &kubeconfig]);
    conforms("status", &output);
}

fn conforms(schema: &str, output: &str) {
    let path = format!("{}/../../docs/reference/schemas/{schema}.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    // On a busy machine there are lines before it that say how far it is.
    let start = output.find("\n{").map_or(0, |place| place + 1);
    let object = serde_json::from_str(&output[start..]).unwrap_or_else(|error| panic!("{error}: {output}"));
    if let Err(problem) = check(&schema, &schema, &object, "$") {
        panic!("{problem} in {output}");
    }
}

/// As much of JSON Schema as the schemas use. What is not named in them is not allowed.
fn check(root: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = &root["$defs"][name.rsplit('/').next().unwrap_or_default()];
        return check(root, definition, value, place);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        Value::Null => true,
        one => one == kind,
    };
    if !allowed {
        return Err(format!("{place}: {value} is not {}", schema["type"]));
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        return Err(format!("{place}: {value} is none of {values:?}"));
    }
    match value {
        Value::Array(all) => all
            .iter()
            .enumerate()
            .try_for_each(|(index, one)| check(root, &schema["items"], one, &format!("{place}[{index}]"))),
        Value::Object(all) if schema["properties"].is_object() => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for key in required {
                all.get(key).ok_or_else(|| format!("{place}: {key} is missing"))?;
            }
            all.iter().try_for_each(|(key, one)| match schema["properties"].get(key) {
                Some(schema) => check(root, schema, one, &format!("{place}.{key}")),
                None => Err(format!("{place}.{key} is not in the schema")),
            })
        }
        _ => Ok(()),
    }
}
