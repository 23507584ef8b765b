//! What becomes of the leader when its kubelet ends, and when its whole node does.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::proxy::{SERVICE, works};
use super::rotation::processes;
use super::site::Site;
use super::{PLACES, SCENARIO};
use crate::machine::wait::soon;
use crate::network::{NodePlace, plug_again};
use crate::openstack::compute;
use crate::openstack::tree::Tree;
use crate::openstack::writes::Writes;
use crate::scenario::machines::node_path;
use crate::scenario::steps;
use crate::stage::Stage;

/// The node that is lost: the operator does not sit there.
const LOST: NodePlace = PLACES[1];
/// For how long a node without a kubelet is watched after it is not ready any more.
const LOOK: Duration = Duration::from_secs(60);
/// Longest time from the last renewal of a leader that is gone to the next leader.
const FOLLOWED: f64 = 20.0;

/// Only the kubelet of the leader ends.
pub(super) fn kubelet(stage: &mut Stage, site: &mut Site) {
    stage.check(
        SCENARIO,
        "the kubelet of the leader is killed: the same process leads on, and nothing is written",
        |stage| {
            let (leader, place) = site.leader()?;
            let before = processes(site);
            let writes = Writes::from_now(&stage.cloud.folders)?;
            site.node(place)?.kill_kubelet()?;
            let looked = left_alone(site, &leader, place, &writes).and_then(|()| {
                ensure!(processes(site) == before, "a process has ended");
                Ok(())
            });
            site.node(place)?.start_kubelet()?;
            soon("the node is ready again", || is_ready(site, place, "True"))?;
            looked?;
            super::quickstart::all_ready(site)?;
            Ok(format!(
                "{} was not ready for {} s and stayed; {}",
                place.name(),
                LOOK.as_secs(),
                works(stage, site)?
            ))
        },
    );
}

/// The node gets not ready; it stays, the leader leads on, and nobody writes in the cloud.
fn left_alone(site: &Site, leader: &str, place: NodePlace, writes: &Writes) -> Result<()> {
    soon("the node is not ready", || is_ready(site, place, "Unknown"))?;
    let known = site.audit.claims()?.len();
    let end = Instant::now() + LOOK;
    while Instant::now() < end {
        is_ready(site, place, "Unknown").context("the node has changed")?;
        std::thread::sleep(Duration::from_secs(2));
    }
    let claims = site.audit.claims()?;
    let since = &claims[known..];
    ensure!(
        !since.is_empty() && since.iter().all(|claim| claim.pod == leader),
        "another one has claimed the lease"
    );
    writes.none()
}

fn is_ready(site: &Site, place: NodePlace, wanted: &str) -> Result<()> {
    let node = site.api.get(&node_path(place))?;
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"] == "Ready").context("no condition Ready")?;
    ensure!(ready["status"] == wanted, "Ready is {}", ready["status"]);
    Ok(())
}

/// The node of the leader is gone for good.
pub(super) fn node(stage: &mut Stage, site: &mut Site) -> Result<()> {
    stage.check(SCENARIO, "the Service is served again after the chart was installed again", |stage| {
        site.operator.types(
            "kubectl apply --filename ingress.yaml && kubectl rollout status daemonset/ingress --timeout=4m",
        )?;
        works(stage, site)
    });
    stage.check(SCENARIO, "the leader's node loses its power: the other replica leads", |stage| {
        let leader = lead_on_lost(site)?;
        stage.kill_proxy(LOST)?;
        site.node(LOST)?.lose_power()?;
        follow(site, &leader)
    });
    stage.check(
        SCENARIO,
        "its server is deleted: the Node goes, its member too, and pods get through",
        |stage| {
            let at = site.servers.iter().position(|(place, _)| *place == LOST).context("it has no server")?;
            let (_, server) = site.servers.remove(at);
            compute::remove_server(&stage.cloud.user, &server)?;
            soon("the Node is gone", || site.api.gone(&node_path(LOST)))?;
            soon("one member is left", || {
                let addresses = Tree::of(&stage.cloud.user, SERVICE)?.addresses();
                ensure!(addresses == [PLACES[0].address()], "members {addresses:?}");
                Ok(())
            })?;
            soon("its pod is gone", || {
                let pods = site.api.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dingress")?;
                ensure!(pods["items"].as_array().is_some_and(|all| all.len() == 1), "there are others");
                Ok(())
            })?;
            works(stage, site)
        },
    );
    plug_again(LOST)?;
    crate::scenario::machines::give_back(&stage.cloud.user, LOST)?;
    stage.check(SCENARIO, "clean-up", |stage| {
        site.operator.types("kubectl delete --filename ingress.yaml")?;
        steps::nothing_left(stage)
    });
    Ok(())
}

/// Waits for a leader on the node that will be lost; one elsewhere is deleted, so that the other follows.
fn lead_on_lost(site: &Site) -> Result<String> {
    for _ in 0..3 {
        let (leader, place) = site.leader()?;
        if place == LOST {
            return Ok(leader);
        }
        site.operator.types(&format!("kubectl --namespace kube-system delete pod {leader}"))?;
        super::quickstart::all_ready(site)?;
    }
    bail!("nobody leads on {}", LOST.name())
}

fn follow(site: &Site, leader: &str) -> Result<String> {
    soon("another pod leads", || {
        let claims = site.audit.claims()?;
        let last = claims.iter().rposition(|claim| claim.pod == leader).context("it never led")?;
        let next = claims.get(last + 1).context("nobody has followed")?;
        let seconds = next.received.duration_since(claims[last].received).as_secs_f64();
        Ok((next.pod.clone(), seconds))
    })
    .and_then(|(pod, seconds)| {
        ensure!(seconds <= FOLLOWED, "{pod} leads {seconds:.2} s after the last renewal");
        Ok(format!("{pod} leads {seconds:.2} s after the last renewal"))
    })
}
