//! A plan beside a controller at work, by somebody whose credentials cannot write, and by somebody whose could.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::{Audit, ONLOOKER};
use crate::kubernetes::authorization::token;
use crate::kubernetes::manifests;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::{KEYSTONE, OpenStack};
use crate::openstack::writes::Writes;
use crate::programs::guide;
use crate::programs::terminal::Terminal;
use crate::scenario::steps::{self, at_rest, create_both, published_through};
use crate::stage::Stage;

const SCENARIO: &str = "21 plan beside a controller";
const PUBLIC: &str = "planned-public";
const INTERNAL: &str = "planned-internal";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// Where the credential and the rights are shown.
const PAGE: &str = "guides/plan-changes.md";
/// What a plan would change that is asked for with `--as-if`.
const AS_IF: &str = "--as-if=loadbalancer.openstack.org/timeout-client-data=61000";
/// Whoever may not patch a status has to say what the cluster can do.
const GATE: &str = "--feature-gates=LoadBalancerIPMode=true";
const FLAGS: [&str; 3] = ["--cluster-name=e2e", "--controllers=service", GATE];

/// All of it on the present cluster. Returns the terminal of somebody who can only read.
pub(super) fn run(stage: &mut Stage, audit: &Audit) -> Result<Terminal> {
    let api = stage.api()?;
    create_both(&api, PUBLIC, INTERNAL, &PLACES)?;
    stage.start_controller()?;
    for service in [PUBLIC, INTERNAL] {
        published_through(&api, service)?;
        at_rest(&stage.cloud.user, service)?;
    }
    let mut credential = Value::Null;
    stage.check(SCENARIO, "the credential of the guide cannot write", |stage| {
        credential = make_credential(&stage.cloud.user)?;
        refused(&credential)
    });
    let reader = reader(stage, &credential)?;
    let operator = super::operator(stage)?;
    stage.check(SCENARIO, "plan -A with it: nothing is to be done", |_| {
        let said = plan(&reader, &[])?.with_code(&[0])?;
        Ok(last_line(&said))
    });
    stage.check(SCENARIO, "it plans the same as who may write", |_| {
        let changes = [AS_IF, "-o", "calls"];
        let (one, other) =
            (plan(&reader, &changes)?.with_code(&[2])?, plan(&operator, &changes)?.with_code(&[2])?);
        ensure!(one == other && one.lines().count() >= 3, "{one}\nand\n{other}");
        Ok(format!("{} calls for 61 s in place of 50", one.lines().count()))
    });
    stage.check(SCENARIO, "no write, no Event, no lease", |stage| untouched(stage, audit));
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[PUBLIC, INTERNAL]));
    Ok(reader)
}

fn plan(terminal: &Terminal, arguments: &[&str]) -> Result<crate::programs::terminal::Said> {
    // For changes of one annotation the Services are named: they are what it is about.
    let which: &[&str] =
        if arguments.is_empty() { &["-A"] } else { &["default/planned-public", "default/planned-internal"] };
    terminal.types(&[&["plan"], which, &FLAGS, arguments].concat())
}

/// The credential, as the command of the guide makes it: with all roles of the user, and with rules that let only reads through.
fn make_credential(user: &OpenStack) -> Result<Value> {
    let rules: Value = serde_json::from_str(&guide::file(PAGE, "access-rules.json")?)?;
    let users = OpenStack::log_in("admin")?.list("identity", "/users?name=demo", "users")?;
    let id = users.first().and_then(|user| user["id"].as_str()).context("there is no user demo")?;
    let body = json!({"application_credential": {"name": "plan", "access_rules": rules}});
    let path = format!("/users/{id}/application_credentials");
    let made = user.post("identity", &path, &body)?.success()?;
    Ok(made["application_credential"].clone())
}

/// The real services let reads through and no write.
fn refused(credential: &Value) -> Result<String> {
    let user = OpenStack::log_in_with(credential)?;
    user.load_balancers()?;
    let mut seen = Vec::new();
    for (service, method, path, body) in [
        ("load-balancer", Method::POST, "/v2.0/lbaas/loadbalancers", json!({"loadbalancer": {"name": "no"}})),
        ("load-balancer", Method::DELETE, "/v2.0/lbaas/loadbalancers/no", Value::Null),
        ("network", Method::POST, "/v2.0/floatingips", json!({"floatingip": {}})),
        ("network", Method::PUT, "/v2.0/ports/no", json!({"port": {"name": "no"}})),
        ("key-manager", Method::POST, "/v1/secrets", json!({"name": "no"})),
    ] {
        let answer = user.call(service, method, path, Some(&body))?;
        ensure!(answer.status == 401, "{}: {} {}", answer.request, answer.status, answer.body);
        seen.push(format!("{} {}", answer.request, answer.status));
    }
    Ok(seen.join(", "))
}

/// A ServiceAccount with the rights of the guide, and the credential.
fn reader(stage: &mut Stage, credential: &Value) -> Result<Terminal> {
    let api = stage.api()?;
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ONLOOKER}});
    api.ensure(accounts, &account)?;
    let role: Value = serde_saphyr::from_str(&guide::file(PAGE, "plan-role.yaml")?)?;
    manifests::apply(&api, &role)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ONLOOKER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": ONLOOKER, "namespace": "kube-system"}],
    });
    manifests::apply(&api, &binding)?;
    let token = token(&api, "kube-system", ONLOOKER, &json!({"expirationSeconds": 86400}))?;
    let program = stage.program().to_owned();
    let plane = &stage.cluster()?.plane;
    let cloud_config = plane.folder().join("read-only.conf");
    let text = |key: &str| credential[key].as_str().unwrap_or_default();
    let global = format!(
        "[Global]\nauth-url = {KEYSTONE}\nregion = RegionOne\napplication-credential-id = {}\n\
         application-credential-secret = {}\n",
        text("id"),
        text("secret")
    );
    let known = std::fs::read_to_string(stage.cluster()?.launch.cloud_config())?;
    let (_, rest) = known.split_once("[LoadBalancer]").context("cloud.conf has no [LoadBalancer]")?;
    std::fs::write(&cloud_config, format!("{global}[LoadBalancer]{rest}"))?;
    let kubeconfig = stage.cluster()?.plane.pki.kubeconfig(ONLOOKER, &format!("token: {token}"))?;
    Ok(Terminal { program, kubeconfig, cloud_config })
}

/// A plan with all rights there are, under the eyes of all that could show a write.
fn untouched(stage: &mut Stage, audit: &Audit) -> Result<String> {
    let api = stage.api()?;
    let all = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "onlooker-may-do-everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ONLOOKER, "namespace": "kube-system"}],
    });
    manifests::apply(&api, &all)?;
    let mut almighty = super::operator(stage)?;
    almighty.kubeconfig = stage.cluster()?.plane.pki.file(&format!("{ONLOOKER}.kubeconfig"));
    let (writes, before) = (Writes::from_now(&stage.cloud.folders)?, versions(&api)?);
    // Without the flag, so that the API server is asked what it keeps.
    let flags = ["plan", "-A", "--cluster-name=e2e", "--controllers=service"];
    let everything = almighty.types(&flags)?.with_code(&[0])?;
    almighty.types(&[&flags[..], &[AS_IF]].concat())?.with_code(&[2])?;
    writes.none()?;
    let after = versions(&api)?;
    ensure!(before == after, "before {before:?}, after {after:?}");
    api.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/onlooker-may-do-everything")?;
    Ok(format!(
        "{}; {}; no call in the cloud changed anything",
        last_line(&everything),
        audit.onlooker_only_looked()?
    ))
}

/// The version of every Service, node and Event, and the holder of the lease, which its holder renews meanwhile.
fn versions(api: &Kubernetes) -> Result<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    for (path, what) in [
        ("/api/v1/services", "/metadata/resourceVersion"),
        ("/api/v1/nodes", "/metadata/resourceVersion"),
        ("/apis/events.k8s.io/v1/events", "/metadata/resourceVersion"),
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "/spec/holderIdentity"),
    ] {
        let list = api.get(path)?;
        for object in list["items"].as_array().into_iter().flatten() {
            let name = format!("{path} {}", object["metadata"]["name"]);
            versions.insert(name, object.pointer(what).unwrap_or(&Value::Null).to_string());
        }
    }
    Ok(versions)
}

fn last_line(text: &str) -> String {
    text.trim_end().rsplit('\n').next().unwrap_or_default().to_owned()
}
