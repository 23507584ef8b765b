//! The canary's DaemonSet by the chart, and pods of `doctor --live`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::proxy::{SERVICE, works};
use super::site::Site;
use super::{PLACES, SCENARIO};
use crate::kubernetes::canary::{NAMESPACE, SERVICES};
use crate::machine::wait::{soon, until};
use crate::programs::guide;
use crate::scenario::steps;
use crate::stage::Stage;

/// How long a pod that belongs to nobody is looked at; a verdict changes after much less.
const LOOK: Duration = Duration::from_secs(40);
/// Services of `doctor -A --live`: with ten ports each, their results are longer than one message.
const MANY: usize = 6;

/// All cases.
pub(super) fn run(stage: &mut Stage, site: &Site) {
    stage.check(SCENARIO, "the canary of the chart finds both nodes fit", |_| {
        let commands = guide::commands("guides/canary.md")?;
        let upgrade = commands.iter().find(|command| command.contains("canary.enabled=true"));
        site.operator.types(upgrade.context("the page has no command for the canary")?)?;
        super::quickstart::all_ready(site)?;
        fit(site)
    });
    stage.check(SCENARIO, "surplus and forged pods in the canary's namespace change no verdict", |stage| {
        forge(site)?;
        let deadline = std::time::Instant::now() + LOOK;
        while std::time::Instant::now() < deadline {
            let ingress = site.api.ingress(SERVICE)?;
            ensure!(ingress[0]["ipMode"] == "Proxy", "{ingress}");
            std::thread::sleep(Duration::from_secs(1));
        }
        let seen = works(stage, site)?;
        let kind = format!(
            "kubectl --namespace {NAMESPACE} delete pod surplus forged --ignore-not-found --wait=false"
        );
        site.operator.types(&kind)?;
        Ok(seen)
    });
    stage.check(SCENARIO, "doctor -A --live: its pods dial from both nodes, and all is well", |stage| {
        steps::at_rest(&stage.cloud.user, SERVICE)?;
        let report = live(site)?;
        dials(&report, &[SERVICE])
    });
    stage.check(SCENARIO, "doctor -A --live: results longer than a kubelet reads are all read", |_| {
        let names: Vec<String> = (0..MANY).map(|number| format!("many-{number}")).collect();
        for name in &names {
            site.api.create("/api/v1/namespaces/default/services", &without_controller(name))?;
            // A machine that refuses all of their ports.
            site.api.write_ingress(name, &json!([{"ip": PLACES[0].address(), "ipMode": "Proxy"}]))?;
        }
        let report = live(site);
        for name in &names {
            site.api.delete(&format!("/api/v1/namespaces/default/services/{name}"))?;
        }
        dials(&report?, &names.iter().map(String::as_str).collect::<Vec<_>>())
    });
}

/// Two of two containers are ready, and the Services of the canary are published.
fn fit(site: &Site) -> Result<String> {
    until("both nodes are fit", Duration::from_secs(300), || {
        let pods = site.api.get(&format!("/api/v1/namespaces/{NAMESPACE}/pods"))?;
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let ready = |pod: &Value| {
            let states = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
            states.iter().filter(|state| state["ready"] == true).count()
        };
        let counts: Vec<usize> = pods.iter().map(ready).collect();
        ensure!(counts == [2; PLACES.len()], "containers ready: {counts:?}");
        Ok(())
    })?;
    let mut modes = Vec::new();
    for (name, mode) in SERVICES.iter().zip(["VIP", "Proxy"]) {
        let service = site.api.get(&format!("/api/v1/namespaces/{NAMESPACE}/services/{name}"))?;
        let entries = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
        ensure!(
            !entries.is_empty() && entries.iter().all(|entry| entry["ipMode"] == mode),
            "{name}: {entries:?}"
        );
        modes.push(format!("{name} {mode}"));
    }
    Ok(format!("2/2 on {} nodes; {}", PLACES.len(), modes.join(", ")))
}

/// A pod with the canary's labels that nobody owns, and one that names the DaemonSet as its owner. Neither ever gets ready.
fn forge(site: &Site) -> Result<()> {
    let set = format!("/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{NAMESPACE}");
    let set = site.api.get(&set)?;
    let template = &set["spec"]["template"];
    for (name, owner) in [("surplus", false), ("forged", true)] {
        let mut spec = template["spec"].clone();
        spec["nodeName"] = json!(PLACES[0].name());
        for container in spec["containers"].as_array_mut().context("the canary has no containers")? {
            container["args"] = json!(["/bin/openstack-ccm", "canary", "idle"]);
            container["readinessProbe"] = json!({"tcpSocket": {"port": 9}, "periodSeconds": 1});
        }
        let uid = &set["metadata"]["uid"];
        let set = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": NAMESPACE, "controller": true, "uid": uid,
        });
        let owners = if owner { json!([set]) } else { json!([]) };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "labels": template["metadata"]["labels"], "ownerReferences": owners},
        });
        site.api.create(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), &pod)?;
    }
    Ok(())
}

/// A Service that only has a status: its class belongs to nobody.
fn without_controller(name: &str) -> Value {
    let ports: Vec<Value> =
        (0..10).map(|number| json!({"name": format!("p{number}"), "port": 20_000 + number})).collect();
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {
            "type": "LoadBalancer", "loadBalancerClass": "example.org/nobody", "allocateLoadBalancerNodePorts": false,
            "ports": ports,
        },
    })
}

/// The report of a look at all Services.
fn live(site: &Site) -> Result<Value> {
    let command = "openstack-ccm doctor --all-namespaces --live --yes --cloud-config=cloud.conf \
         --cluster-name=my-cluster -o json || [ $? -ge 2 ]";
    let text = site.operator.types(command)?;
    let report = serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))?;
    soon("the pods of doctor are gone", || site.api.gone("/api/v1/namespaces/openstack-ccm-doctor"))?;
    Ok(report)
}

/// Each of these Services was dialled from each node.
fn dials(report: &Value, names: &[&str]) -> Result<String> {
    let services = report["services"].as_array().context("no Services in the report")?;
    let mut count = 0;
    for name in names {
        let found =
            services.iter().find(|one| one["service"].as_str().is_some_and(|text| text.ends_with(name)));
        let service = found.with_context(|| format!("nothing of {name}"))?;
        let text = service.to_string();
        ensure!(!text.contains("reported nothing"), "{name}: {text}");
        for place in PLACES {
            ensure!(text.contains(&place.name()), "nothing of {}: {text}", place.name());
        }
        count += 1;
    }
    Ok(format!("{count} Services dialled from {} nodes", PLACES.len()))
}
