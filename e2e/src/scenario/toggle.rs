//! PROXY protocol is switched on and off on a live Service, under a steady stream of connections.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::steps;
use crate::backends::stream::{Stream, TOLERANT_PORT, Tally, start_tolerant_backend};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::process::{Daemon, run_line};
use crate::machine::wait::soon;
use crate::network::ask::from_namespace;
use crate::network::{NEIGHBOUR, NODES};
use crate::openstack::tree::Tree;
use crate::stage::Stage;

const SERVICE: &str = "toggled";
/// Its pods insist on the header.
const STRICT: &str = "strict";
const SCENARIO: &str = "6 toggle";

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let folder = stage.cluster()?.plane.folder().to_owned();
    let mut backends: Vec<Daemon> = Vec::new();
    for place in [NODES[0], NODES[1]] {
        backends.push(start_tolerant_backend(&place.ingress(), &folder)?);
    }
    let api = stage.api()?;
    let mut sketch = ServiceSketch::plain(SERVICE, true);
    sketch.target = TOLERANT_PORT;
    sketch.create(&api, &[NODES[0], NODES[1]])?;
    stage.start_controller()?;
    stage.check(SCENARIO, "published, no PROXY", |stage| {
        header(stage, "none").map(|()| "no header arrives".into())
    });
    let mut reload = Tally::default();
    stage.check(SCENARIO, "measure: HAProxy is reloaded, nothing else", |stage| {
        reload = reload_alone(stage)?;
        Ok(format!("{} answered, {} failed", reload.answered, reload.failed))
    });
    for (from, to) in [("none", "v1"), ("v1", "v2"), ("v2", "none")] {
        stage.check(SCENARIO, &format!("{from} to {to} under load"), |stage| toggle(stage, to, reload));
    }
    stage.check(SCENARIO, "v1 to v2 under load, pods that insist on a header", |stage| strict(stage, reload));
    stage.check(SCENARIO, "v1 to none and back under load, pods that insist on a header", strict_off_and_on);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE, STRICT]));
    Ok(())
}

fn host(stage: &Stage, service: &str) -> Result<String> {
    soon("the Service has an address", || steps::address(&stage.api()?, service))
}

/// New connections arrive with this header.
fn header(stage: &Stage, wanted: &str) -> Result<()> {
    let host = host(stage, SERVICE)?;
    soon(&format!("header {wanted} arrives"), || {
        let outcome = from_namespace(NEIGHBOUR, &host, 80)?;
        ensure!(outcome.to_string().ends_with(&format!("header={wanted}")), "{outcome}");
        Ok(())
    })
}

pub(super) fn streamed(
    stage: &mut Stage,
    service: &str,
    work: impl FnOnce(&mut Stage) -> Result<()>,
) -> Result<Tally> {
    let folder = stage.cluster()?.plane.folder().to_owned();
    let stream = Stream::start(NEIGHBOUR, &host(stage, service)?, &folder)?;
    let worked = work(stage);
    let tally = stream.end()?;
    worked?;
    Ok(tally)
}

/// What a reload costs that changes nothing: three of them.
fn reload_alone(stage: &mut Stage) -> Result<Tally> {
    let amphorae = stage.cloud.folders.state.join("state/octavia/amphorae");
    let id = soon("Octavia is at rest", || Tree::of(&stage.cloud.user, SERVICE))?.id;
    streamed(stage, SERVICE, |_| {
        for _ in 0..3 {
            for entry in std::fs::read_dir(&amphorae)? {
                let folder = entry?.path();
                let about = std::fs::read_to_string(folder.join("amphora.json")).unwrap_or_default();
                if about.contains(&id) {
                    let pid = std::fs::read_to_string(folder.join("haproxy.pid"))?;
                    let pid = pid.split_whitespace().next().context("no pid of HAProxy")?.to_owned();
                    run_line(&format!("kill -USR2 {pid}"))?;
                }
            }
            // The old process ends its connections meanwhile; the length of the measure, not a wait for readiness.
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        Ok(())
    })
}

fn toggle(stage: &mut Stage, to: &str, reload: Tally) -> Result<String> {
    let api = stage.api()?;
    let value = if to == "none" { Value::from("false") } else { Value::from(to) };
    let tally = streamed(stage, SERVICE, |stage| {
        let change =
            json!({"metadata": {"annotations": {"loadbalancer.openstack.org/proxy-protocol": value}}});
        api.patch(&Kubernetes::service_path(SERVICE), &change)?;
        header(stage, to)?;
        soon("Octavia has settled", || {
            let tree = Tree::of(&stage.cloud.user, SERVICE)?;
            ensure!(
                tree.members.len() == 2,
                "{} members: the former pool is still there",
                tree.members.len()
            );
            tree.settled()
        })
    })?;
    verdict(tally, reload)
}

fn verdict(tally: Tally, reload: Tally) -> Result<String> {
    let (answered, failed) = (tally.answered, tally.failed);
    ensure!(
        failed <= reload.failed,
        "{answered} answered, {failed} failed; reloads alone: {} failed",
        reload.failed
    );
    Ok(format!("{answered} answered, {failed} failed; reloads alone: {} failed", reload.failed))
}

/// nginx takes both versions of the header, but no connection without one.
fn strict(stage: &mut Stage, reload: Tally) -> Result<String> {
    let api = stage.api()?;
    ServiceSketch::proxy(STRICT, "v1", true).create(&api, &[NODES[0], NODES[1]])?;
    let address = steps::published_through(&api, STRICT)?;
    steps::green(&address, &[steps::client_outside(steps::Reach::Internal)])?;
    let tally = streamed(stage, STRICT, |stage| {
        let change =
            json!({"metadata": {"annotations": {"loadbalancer.openstack.org/proxy-protocol": "v2"}}});
        api.patch(&Kubernetes::service_path(STRICT), &change)?;
        soon("Octavia sends version 2 only", || {
            let tree = Tree::of(&stage.cloud.user, STRICT)?;
            ensure!(tree.protocols == ["PROXYV2"], "pools {:?}", tree.protocols);
            tree.settled()
        })
    })?;
    verdict(tally, reload)
}

/// Pods that insist on the header answer nothing while there is none: what is counted is not held against the controller.
/// When the header is back, everybody is answered again.
fn strict_off_and_on(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let mut counts = Vec::new();
    for (value, protocol) in [("false", "TCP"), ("v1", "PROXY")] {
        let tally = streamed(stage, STRICT, |stage| {
            let change =
                json!({"metadata": {"annotations": {"loadbalancer.openstack.org/proxy-protocol": value}}});
            api.patch(&Kubernetes::service_path(STRICT), &change)?;
            soon(&format!("Octavia has a pool of protocol {protocol} only"), || {
                let tree = Tree::of(&stage.cloud.user, STRICT)?;
                ensure!(tree.protocols == [protocol], "pools {:?}", tree.protocols);
                tree.settled()
            })
        })?;
        counts.push(format!("to {protocol}: {} answered, {} failed", tally.answered, tally.failed));
    }
    let address = steps::published_through(&api, STRICT)?;
    let seen = steps::green(&address, &[steps::client_outside(steps::Reach::Internal)])?;
    Ok(format!("{}; with the header again {seen}", counts.join("; ")))
}
