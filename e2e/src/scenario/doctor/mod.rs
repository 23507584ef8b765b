//! `doctor` against the truth: for each fault requests show what happens to a packet, and `doctor` names the fault by its code
//! and no other error. On a healthy Service it names none.

mod cloud_faults;
mod cluster_faults;
mod live_faults;
mod object_faults;
mod patient;
mod role;
pub(in crate::scenario) mod rules;
mod served_faults;
mod status_faults;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use self::patient::{Ends, Patient};
use super::{CURRENT, GATE_OFF, OLD};
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::server::ServerKind;
use crate::kubernetes::short_pod::ShortPods;
use crate::scenario::steps;
use crate::stage::Stage;

const SCENARIO: &str = "29 doctor";
/// With pods that dial, whose image nobody pulls here.
const LIVE: [&str; 4] =
    ["--live", "--yes", "--image=registry.example.org/openstack-ccm:e2e", "--live-timeout=1m"];
/// Where those pods are.
const PODS: &str = "openstack-ccm-doctor";

/// Something that is broken on purpose.
struct Fault {
    /// In words.
    name: &'static str,
    /// What `doctor` has to name: all errors, and warnings where there is no error.
    codes: &'static [&'static str],
    /// Who gets through, as requests show it and as `doctor` says it: a pod, a node, a client outside.
    ends: Ends,
    /// Breaks it.
    provoke: fn(&mut Stage, &mut Patient) -> Result<()>,
    mend: fn(&mut Stage, &mut Patient) -> Result<()>,
}

/// On 1.36 with iptables, then with nftables, and by name on 1.29 with the gate off and on 1.28.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("doctor", CURRENT, Mode::Iptables)?;
    let mut patient = Patient::prepare(stage)?;
    stage.check(SCENARIO, "1.36 iptables: a healthy Service shows nothing", |stage| {
        patient.is_well(stage, &[])
    });
    let faults = [cluster_faults::ALL, status_faults::ALL, cloud_faults::ALL, served_faults::ALL];
    for fault in faults.into_iter().flatten() {
        look_at(stage, &mut patient, fault, &[])?;
    }
    let pods = ShortPods::follow(&stage.api()?, PODS, stage.program());
    stage.check(SCENARIO, "pods that dial see a healthy Service", |stage| patient.is_seen_well(stage, &LIVE));
    look_at(stage, &mut patient, &live_faults::DROPPED, &LIVE)?;
    drop(pods);
    stage.check(SCENARIO, "hairpin-proxy's line in the Corefile", |stage| {
        cluster_faults::hairpin_line(stage, &patient)
    });
    stage.check(SCENARIO, "mermaid reads the diagram", |stage| diagram(stage, &patient));
    rules::of_nodes(stage, &patient.address)?;
    stage.replace_proxies(CURRENT, Mode::Nftables)?;
    stage.check(SCENARIO, "1.36 nftables: a healthy Service shows nothing", |stage| {
        patient.is_well(stage, &[])
    });
    stage.start_controller()?;
    let services = [patient::SERVICE, served_faults::WITNESS];
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &services));

    by_name(stage, "1.29 gate off", GATE_OFF, &[cluster_faults::GATE_OFF])?;
    by_name(stage, "1.28", OLD, &[])
}

/// Each object on the way, at a VIP and at a floating IP, for somebody with the role of `--print-rbac`.
pub(crate) fn objects(stage: &mut Stage) -> Result<()> {
    stage.start_cluster("doctor-objects", CURRENT, Mode::Iptables)?;
    let patient = Patient::prepare(stage)?;
    let mut patient = patient.seen_from(role::reader(stage)?);
    stage.check(SCENARIO, "the role of --print-rbac is enough for a healthy Service", |stage| {
        patient.is_well(stage, &[])
    });
    for fault in object_faults::ALL.iter().chain([&status_faults::NOBODY]) {
        look_at(stage, &mut patient, fault, &[])?;
    }
    object_faults::make_public(stage, &mut patient)?;
    stage.check(SCENARIO, "at a floating IP a healthy Service shows nothing", |stage| {
        patient.is_well(stage, &[])
    });
    for fault in object_faults::FLOATING {
        look_at(stage, &mut patient, fault, &[])?;
    }
    stage.start_controller()?;
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[patient::SERVICE]));
    Ok(())
}

/// On a cluster that cannot honour `ipMode`.
fn by_name(stage: &mut Stage, text: &str, kind: ServerKind, faults: &[Fault]) -> Result<()> {
    stage.start_cluster("doctor-by-name", kind, Mode::Iptables)?;
    let mut patient = Patient::prepare_by_name(stage)?;
    stage.check(SCENARIO, &format!("{text}, by name: a healthy Service shows nothing"), |stage| {
        patient.is_well(stage, &[])
    });
    let pods = ShortPods::follow(&stage.api()?, PODS, stage.program());
    look_at(stage, &mut patient, &live_faults::WITHOUT_NAME, &LIVE)?;
    drop(pods);
    for fault in faults {
        look_at(stage, &mut patient, fault, &[])?;
    }
    stage.start_controller()?;
    stage.check(SCENARIO, &format!("{text}, clean-up"), |stage| steps::release(stage, &[patient::SERVICE]));
    Ok(())
}

/// Breaks, looks twice (by requests and by `doctor`), mends.
fn look_at(stage: &mut Stage, patient: &mut Patient, fault: &Fault, more: &[&str]) -> Result<()> {
    stage.check(SCENARIO, fault.name, |stage| {
        (fault.provoke)(stage, patient).context("it cannot be broken")?;
        let truth = patient.requests(stage, fault.ends)?;
        let seen = patient.examine(more)?;
        ensure!(seen.codes == fault.codes, "doctor names {:?}: {}", seen.codes, seen.text);
        fault.ends.agree_with(&seen.report)?;
        Ok(format!("{truth}; doctor: {}", seen.sentence()))
    });
    (fault.mend)(stage, patient).with_context(|| format!("{}: it cannot be mended", fault.name))
}

/// What `-o mermaid` writes, of a healthy Service and of one that is short-circuited.
fn diagram(stage: &mut Stage, patient: &Patient) -> Result<String> {
    let Some(mermaid) = stage.artifacts.mermaid()? else {
        return Ok("left out: this machine has no npm".into());
    };
    let api = stage.api()?;
    api.write_ingress(patient::SERVICE, &json!([{"ip": patient.address}]))?;
    let broken = kind_of(stage, &mermaid, patient);
    api.write_ingress(patient::SERVICE, &json!([{"ip": patient.address, "ipMode": "Proxy"}]))?;
    Ok(format!("broken: {}, healthy: {}", broken?, kind_of(stage, &mermaid, patient)?))
}

/// What mermaid takes the diagram for.
fn kind_of(stage: &Stage, mermaid: &Path, patient: &Patient) -> Result<String> {
    let file = stage.folder().join("diagram.mmd");
    std::fs::write(&file, patient.diagram()?)?;
    let mut node = Command::new("node");
    let read = node.arg(mermaid.join("parse.mjs")).stdin(std::fs::File::open(&file)?).output()?;
    ensure!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    Ok(String::from_utf8_lossy(&read.stdout).trim().to_owned())
}
