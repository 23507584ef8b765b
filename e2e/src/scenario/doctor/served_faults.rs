//! What the Service asks for and does not have: a listener, a setting, a load balancer, members that are up.

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::Fault;
use super::cloud_faults::{pool, reconcile};
use super::patient::{Ends, PLACES, Patient, SERVICE};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::process::run;
use crate::machine::wait::soon;
use crate::machine::world::in_namespace;
use crate::network::NODES;
use crate::scenario::steps::{self, at_rest, published_through};
use crate::stage::Stage;

/// Another Service.
pub(super) const WITNESS: &str = "witness";
const MONITOR: &str = "enable-health-monitor";

pub(super) const ALL: &[Fault] = &[
    Fault {
        name: "a port that nobody has made a listener for",
        codes: &["D503"],
        ends: Ends::ArriveHere("only the new port has no listener"),
        provoke: |stage, patient| ports(stage, patient, &[80, 8080]),
        mend: |stage, patient| ports(stage, patient, &[80]),
    },
    Fault {
        name: "metrics for networks of another family",
        codes: &["D504"],
        ends: Ends::Arrive,
        provoke: |stage, _| {
            annotate(
                stage,
                &[("metrics-enable", json!("true")), ("metrics-allow-cidrs", json!("2001:db8::/32"))],
            )
        },
        mend: |stage, _| {
            annotate(stage, &[("metrics-enable", Value::Null), ("metrics-allow-cidrs", Value::Null)])
        },
    },
    Fault {
        name: "an annotation that the controller refuses",
        codes: &["D512"],
        ends: Ends::ArriveHere("what is refused changes nothing"),
        provoke: |stage, _| annotate(stage, &[("proxy-protocol", json!("V2"))]),
        mend: |stage, _| annotate(stage, &[("proxy-protocol", json!("v2"))]),
    },
    Fault {
        name: "no pod listens, and the monitor finds all members down",
        codes: &["D703"],
        ends: Ends::End,
        provoke: |stage, patient| {
            annotate(stage, &[(MONITOR, json!("true"))])?;
            reconcile(stage)?;
            listen_at(stage, patient, 82)?;
            members_are(stage, &["ERROR", "ERROR"])
        },
        mend: |stage, patient| {
            listen_at(stage, patient, 80)?;
            members_are(stage, &["ONLINE", "ONLINE"])
        },
    },
    Fault {
        name: "a firewall on one node closes the node port",
        codes: &["D704"],
        ends: Ends::Arrive,
        provoke: |stage, _| {
            firewall(stage, "-I")?;
            members_are(stage, &["ERROR", "ONLINE"])
        },
        mend: |stage, _| {
            firewall(stage, "-D")?;
            members_are(stage, &["ONLINE", "ONLINE"])?;
            annotate(stage, &[(MONITOR, Value::Null)])?;
            reconcile(stage)
        },
    },
    Fault {
        name: "a port without a node port",
        codes: &["D803"],
        ends: Ends::End,
        provoke: |stage, patient| {
            node_ports(stage, patient, &json!({"allocateLoadBalancerNodePorts": false}), Some(0))
        },
        mend: |stage, patient| {
            node_ports(stage, patient, &json!({"allocateLoadBalancerNodePorts": true}), None)?;
            reconcile(stage)
        },
    },
    Fault {
        name: "somebody deletes the load balancer",
        codes: &["D506"],
        ends: Ends::End,
        provoke: |stage, _| {
            serve_witness(stage)?;
            delete_the_load_balancer(stage)
        },
        mend: |stage, patient| {
            reconcile(stage)?;
            patient.follow(stage)
        },
    },
];

fn annotate(stage: &Stage, values: &[(&str, Value)]) -> Result<()> {
    steps::annotate(&stage.api()?, SERVICE, values)
}

fn ports(stage: &Stage, patient: &mut Patient, ports: &[u16]) -> Result<()> {
    patient.sketch.ports = ports.to_vec();
    patient.sketch.update(&stage.api()?, &PLACES)
}

fn listen_at(stage: &Stage, patient: &mut Patient, target: u16) -> Result<()> {
    patient.sketch.target = target;
    patient.sketch.update(&stage.api()?, &PLACES)
}

/// What the health monitor has found, as Octavia shows it.
fn members_are(stage: &Stage, wanted: &[&str]) -> Result<()> {
    let pool = pool(stage)?["id"].as_str().context("no id")?.to_owned();
    soon(&format!("members are {wanted:?}"), || {
        let path = format!("/v2/lbaas/pools/{pool}/members");
        let members = stage.cloud.user.list("load-balancer", &path, "members")?;
        let mut seen: Vec<&str> =
            members.iter().filter_map(|member| member["operating_status"].as_str()).collect();
        seen.sort_unstable();
        ensure!(seen == wanted, "{seen:?}");
        Ok(())
    })
}

/// Before service proxies see the packet.
fn firewall(stage: &Stage, verb: &str) -> Result<()> {
    let service = stage.api()?.get(&Kubernetes::service_path(SERVICE))?;
    let port = service["spec"]["ports"][0]["nodePort"].to_string();
    let mut iptables = in_namespace(&NODES[1].name(), "iptables");
    iptables.args(["-w", "-t", "raw", verb, "PREROUTING", "-p", "tcp", "--dport", &port, "-j", "DROP"]);
    run(&mut iptables).map(drop)
}

fn node_ports(stage: &Stage, patient: &Patient, spec: &Value, number: Option<u16>) -> Result<()> {
    let mut spec = spec.clone();
    let port = json!({"name": "p80", "port": 80, "protocol": "TCP", "targetPort": patient.sketch.target});
    spec["ports"] = json!([port]);
    if let Some(number) = number {
        spec["ports"][0]["nodePort"] = json!(number);
    }
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &json!({"spec": spec})).map(drop)
}

/// Its load balancer shows that the cloud is the right one; without it the controller would hold the other Service.
fn serve_witness(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    ServiceSketch::proxy(WITNESS, "v2", true).create(&api, &PLACES)?;
    stage.start_controller()?;
    published_through(&api, WITNESS)?;
    at_rest(&stage.cloud.user, WITNESS)?;
    stage.stop_controller()
}

fn delete_the_load_balancer(stage: &Stage) -> Result<()> {
    let id = stage.cloud.user.load_balancer(SERVICE)?["id"].as_str().context("no id")?.to_owned();
    let path = format!("/v2/lbaas/loadbalancers/{id}?cascade=true");
    stage.cloud.user.call("load-balancer", Method::DELETE, &path, None)?.success()?;
    soon("the load balancer is gone", || {
        let left = stage.cloud.user.load_balancers()?;
        ensure!(left.iter().all(|one| one["id"] != id.as_str()), "it is there");
        Ok(())
    })
}
