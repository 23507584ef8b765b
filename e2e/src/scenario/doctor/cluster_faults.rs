//! What breaks in Kubernetes and on nodes.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Fault;
use super::patient::{COREFILE, Ends, PLACES, Patient, SERVICE, SETTINGS};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::set_kubelet;
use crate::kubernetes::proxy::Mode;
use crate::network::NODES;
use crate::network::ask::{Outcome, from_namespace};
use crate::scenario::fallback::add_name;
use crate::scenario::steps::{at_rest, publish_as_before, set_source_ranges};
use crate::scenario::{CURRENT, GATE_OFF as OLD_SERVER};
use crate::stage::Stage;

const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
/// A name for which hairpin-proxy wrote a line.
const NAME: &str = "shop.e2e.test";

pub(super) const ALL: &[Fault] = &[
    Fault {
        name: "the address of a PROXY path without ipMode",
        codes: &["D201"],
        ends: Ends::EndInside,
        provoke: |stage, patient| publish_as_before(&stage.api()?, SERVICE, &patient.address),
        mend: |stage, patient| publish(stage, &patient.address),
    },
    Fault {
        name: "a node on 1.29",
        codes: &["D301"],
        ends: Ends::EndOnSecondNode,
        provoke: |stage, _| {
            stage.end_proxy(NODES[1])?;
            stage.join(NODES[1], OLD_SERVER, Mode::Iptables)?;
            set_kubelet(&stage.api()?, NODES[1], OLD_SERVER)
        },
        mend: |stage, _| {
            stage.end_proxy(NODES[1])?;
            stage.join(NODES[1], CURRENT, Mode::Iptables)?;
            set_kubelet(&stage.api()?, NODES[1], CURRENT)
        },
    },
    Fault {
        name: "source ranges without the cluster",
        codes: &["D402"],
        ends: Ends::EndInside,
        provoke: |stage, _| reconcile(stage, &["198.18.0.30/32"]),
        mend: |stage, _| reconcile(stage, &[]),
    },
    Fault {
        name: "no endpoint is ready",
        codes: &["D801"],
        ends: Ends::End,
        provoke: |stage, _| ready(stage, false),
        mend: |stage, _| ready(stage, true),
    },
    Fault {
        name: "a NetworkPolicy that lets pods out to pods only",
        codes: &["D401"],
        ends: Ends::NotAsked("nobody enforces policies here"),
        provoke: |stage, _| stage.api()?.create(POLICIES, &closed()).map(drop),
        mend: |stage, _| stage.api()?.delete(&format!("{POLICIES}/closed")),
    },
    Fault {
        name: "externalTrafficPolicy Local without a health monitor",
        codes: &["D802"],
        ends: Ends::ArriveHere("both nodes have a pod now"),
        provoke: |stage, _| policy(stage, "Local"),
        mend: |stage, _| policy(stage, "Cluster"),
    },
    Fault {
        name: "nginx without use-proxy-protocol",
        codes: &["D901"],
        ends: Ends::End,
        provoke: |stage, patient| expect_header(stage, patient, false),
        mend: |stage, patient| expect_header(stage, patient, true),
    },
];

/// A server that drops the mode without a word.
pub(super) const GATE_OFF: Fault = Fault {
    name: "1.29 gate off: the mode is dropped",
    codes: &["D202"],
    ends: Ends::EndInside,
    provoke: |stage, patient| {
        publish(stage, &patient.address)?;
        patient.host.clone_from(&patient.address);
        Ok(())
    },
    mend: |_, _| Ok(()),
};

fn publish(stage: &Stage, address: &str) -> Result<()> {
    stage.api()?.write_ingress(SERVICE, &json!([{"ip": address, "ipMode": "Proxy"}])).map(drop)
}

/// Has the controller do what the Service wants, and stops it again.
fn reconcile(stage: &mut Stage, ranges: &[&str]) -> Result<()> {
    let api = stage.api()?;
    set_source_ranges(&api, SERVICE, ranges)?;
    stage.start_controller()?;
    crate::machine::wait::soon("the listener has the source ranges", || {
        at_rest(&stage.cloud.user, SERVICE)?;
        let tree = crate::openstack::tree::Tree::of(&stage.cloud.user, SERVICE)?;
        let wanted = ranges.iter().map(|range| json!(range)).collect::<Vec<_>>();
        let is = tree.listeners[0]["allowed_cidrs"].as_array().cloned().unwrap_or_default();
        ensure!(is == wanted || wanted.is_empty() && is == [json!("0.0.0.0/0")], "{is:?}");
        Ok(())
    })?;
    stage.stop_controller()
}

fn closed() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"},
        "spec": {
            "podSelector": {}, "policyTypes": ["Egress"],
            "egress": [{"to": [{"podSelector": {"matchLabels": {"app": SERVICE}}}]}],
        },
    })
}

fn policy(stage: &mut Stage, policy: &str) -> Result<()> {
    let change = json!({"spec": {"externalTrafficPolicy": policy}});
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change)?;
    super::cloud_faults::reconcile(stage)
}

fn ready(stage: &Stage, ready: bool) -> Result<()> {
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name={SERVICE}"
    );
    let api = stage.api()?;
    let slices = api.get(&path)?;
    let name = slices["items"][0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut endpoints = slices["items"][0]["endpoints"].clone();
    for endpoint in endpoints.as_array_mut().into_iter().flatten() {
        endpoint["conditions"] = json!({"ready": ready, "serving": ready, "terminating": false});
    }
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{name}");
    api.patch(&path, &json!({"endpoints": endpoints})).map(drop)
}

/// Port 81 of the pods takes the header for a broken request; its ConfigMap says the same.
fn expect_header(stage: &Stage, patient: &mut Patient, expect: bool) -> Result<()> {
    let api = stage.api()?;
    patient.sketch.target = if expect { 80 } else { 81 };
    patient.sketch.update(&api, &PLACES)?;
    api.patch(SETTINGS, &json!({"data": {"use-proxy-protocol": expect.to_string()}})).map(drop)
}

/// A name leads pods to the ingress controller itself, which then misses the header.
pub(super) fn hairpin_line(stage: &mut Stage, patient: &Patient) -> Result<String> {
    let api: Kubernetes = stage.api()?;
    let with = |line: &str| {
        let text = format!(".:53 {{\n    {line}\n    kubernetes cluster.local\n}}\n");
        api.patch(COREFILE, &json!({"data": {"Corefile": text}})).map(drop)
    };
    with(&format!("rewrite name {NAME} {SERVICE}.default.svc.cluster.local # Added by hairpin-proxy"))?;
    add_name(stage, NAME, &NODES[0].ingress_address())?;
    let outcome = from_namespace(&NODES[0].client(), NAME, 80)?;
    ensure!(outcome == Outcome::Closed, "{outcome}");
    let seen = patient.examine(&[])?;
    with("errors")?;
    ensure!(seen.codes == ["D101"], "{:?}: {}", seen.codes, seen.text);
    Ok(format!("a pod that asks for {NAME}: {outcome}; doctor: {}", seen.sentence()))
}
