//! The Lease is shared with every other cloud-controller-manager: whoever holds it is left alone, and what this one leaves
//! behind is understood. The others are a record in client-go's form that the test renews, and client-go itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::callers::metric;
use super::hand_over::lapsed;
use super::{CONTROL_PLANE, Deployment, SCENARIO};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::{Claim, LEASE};
use crate::kubernetes::kubelet::now;
use crate::kubernetes::manager::Manager;
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::soon;
use crate::scenario::steps::published_through;
use crate::stage::Stage;

/// The Service that is made while somebody else leads.
pub(super) const SERVICE: &str = "meanwhile";
/// Tries to take the Lease that show that a replica really waits.
const TRIES: u64 = 5;
/// Time between renewals.
const RETRY_PERIOD: Duration = Duration::from_secs(2);
const FOREIGN: &str = "controller-3_0f8fad5b-d9cb-469f-a165-70867728950e";

/// All cases.
pub(super) fn run(stage: &mut Stage, cluster: &mut Deployment) {
    let cases: [(&str, Case); 4] = [
        ("a foreign holder renews the lease, then gives it back", foreign),
        ("client-go takes what openstack-ccm gives back, and openstack-ccm waits for it", taken_by_client_go),
        ("client-go gives the lease back", given_back_by_client_go),
        ("client-go is killed: openstack-ccm waits until its lease has run out", client_go_killed),
    ];
    let mut peer = None;
    for (case, look) in cases {
        stage.check(SCENARIO, case, |stage| look(stage, cluster, &mut peer));
    }
}

type Case = fn(&Stage, &mut Deployment, &mut Option<Manager>) -> Result<String>;

/// Another cloud-controller-manager, as far as the Lease shows it.
struct Holder {
    api: Kubernetes,
    lease: Arc<Mutex<Value>>,
    ended: Arc<AtomicBool>,
    renewals: Option<JoinHandle<()>>,
}

fn path() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}")
}

impl Holder {
    /// Takes a Lease that is free, and renews it from now on.
    fn take(api: &Kubernetes) -> Result<Self> {
        let mut lease = api.get(&path())?;
        ensure!(lease["spec"]["holderIdentity"] == "", "the lease is not free: {}", lease["spec"]);
        let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or_default() + 1;
        lease["spec"] = json!({
            "holderIdentity": FOREIGN, "leaseDurationSeconds": 15, "acquireTime": now(), "renewTime": now(),
            "leaseTransitions": transitions,
        });
        let lease = Arc::new(Mutex::new(api.replace(&path(), &lease)?));
        let ended = Arc::new(AtomicBool::new(false));
        let (server, record, stop) = (api.clone(), Arc::clone(&lease), Arc::clone(&ended));
        let renewals = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(RETRY_PERIOD);
                let mut lease = record.lock().unwrap_or_else(PoisonError::into_inner);
                lease["spec"]["renewTime"] = json!(now());
                // A conflict shows in the record later on, which then names somebody else.
                if let Ok(stored) = server.replace(&path(), &lease) {
                    *lease = stored;
                }
            }
        });
        Ok(Self { api: api.clone(), lease, ended, renewals: Some(renewals) })
    }

    /// Gives it back in the form of client-go.
    fn give_back(mut self) -> Result<()> {
        self.end();
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (key, value) in [
            ("holderIdentity", json!("")),
            ("leaseDurationSeconds", json!(1)),
            ("acquireTime", json!(now())),
            ("renewTime", json!(now())),
        ] {
            lease["spec"][key] = value;
        }
        self.api.replace(&path(), &lease).map(drop)
    }

    fn end(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(renewals) = self.renewals.take() {
            // It has nothing to report.
            renewals.join().ok();
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.end();
    }
}

/// All replicas have tried again and again to take the Lease.
fn waited(cluster: &Deployment) -> Result<()> {
    for pod in &cluster.pods {
        soon(&format!("{} waits for the lease", pod.name), || {
            let tries = metric(cluster, pod, "leader_election_slowpath")?;
            ensure!(tries >= TRIES, "{tries} tries");
            Ok(())
        })?;
    }
    Ok(())
}

/// The first write of the Lease that has another holder than these claims.
fn next(cluster: &Deployment, before: usize) -> Result<(Claim, Claim)> {
    let claims = cluster.audit.claims()?;
    let after = claims.get(before..).unwrap_or_default();
    let taken =
        after.iter().position(|claim| claims[before - 1].holder != claim.holder && !claim.holder.is_empty());
    let taken = before + taken.context("nobody has taken the lease")?;
    Ok((claims[taken - 1].clone(), claims[taken].clone()))
}

fn is_ours(cluster: &Deployment, claim: &Claim) -> Result<()> {
    ensure!(cluster.pods.iter().any(|pod| pod.name == claim.pod), "the lease was taken by {}", claim.holder);
    Ok(())
}

fn foreign(stage: &Stage, cluster: &mut Deployment, _: &mut Option<Manager>) -> Result<String> {
    cluster.stop()?;
    let holder = Holder::take(&cluster.api)?;
    let (writes, held) = (cluster.audit.writes()?.len(), cluster.audit.claims()?.len());
    cluster.start()?;
    ServiceSketch::proxy(SERVICE, "v1", true).create(&cluster.api, &CONTROL_PLANE)?;
    waited(cluster)?;
    let written = cluster.audit.writes()?;
    ensure!(written.len() == writes, "{} was written meanwhile", written[writes].what);
    let claims = cluster.audit.claims()?;
    let renewals = &claims[held - 1..];
    ensure!(renewals.iter().all(|claim| claim.holder == FOREIGN), "the lease changed hands: {renewals:?}");
    ensure!(cluster.api.ingress(SERVICE)?.is_null(), "the Service is published");
    ensure!(stage.cloud.user.load_balancer(SERVICE).is_err(), "the Service has a load balancer");
    let renewals = renewals.len();
    holder.give_back()?;
    let address = published_through(&cluster.api, SERVICE)?;
    let (released, taken) = next(cluster, held)?;
    is_ours(cluster, &taken)?;
    ensure!(taken.transitions == released.transitions + 1, "{} transitions", taken.transitions);
    Ok(format!(
        "{renewals} renewals watched and nothing written; taken {:.2} s after it was given back, transition {}; the Service \
         made meanwhile is served at {address}",
        taken.answered.duration_since(released.answered).as_secs_f64(),
        taken.transitions,
    ))
}

/// Starts a client-go peer while a replica leads, and ends all replicas: the peer leads. Then the replicas wait.
fn peer_leads(stage: &Stage, cluster: &mut Deployment) -> Result<(Manager, Claim, Claim)> {
    let plane = &stage.cluster.as_ref().context("no cluster runs")?.plane;
    let mut peer = Manager::peer(plane, &stage.artifacts)?;
    soon("the peer waits for the lease", || {
        peer.daemon.check()?;
        let log = std::fs::read_to_string(plane.folder().join("peer.log"))?;
        let waits = log.rfind("ttempting to acquire leader lease");
        ensure!(waits.is_some_and(|at| !log[at..].contains("uccessfully acquired")), "it does not say so");
        Ok(())
    })?;
    let before = cluster.audit.claims()?;
    is_ours(cluster, before.last().context("nobody leads")?)?;
    cluster.stop()?;
    cluster.until_followed(&before[before.len() - 1].holder)?;
    let (released, taken) = next(cluster, before.len())?;
    ensure!(taken.pod.is_empty(), "{} has taken the lease", taken.pod);
    cluster.start()?;
    waited(cluster)?;
    ensure!(cluster.holder()? == taken.holder, "the lease was taken from the peer");
    Ok((peer, released, taken))
}

fn taken_by_client_go(stage: &Stage, cluster: &mut Deployment, peer: &mut Option<Manager>) -> Result<String> {
    let (leads, released, taken) = peer_leads(stage, cluster)?;
    *peer = Some(leads);
    ensure!(released.holder.is_empty(), "openstack-ccm did not give the lease back");
    ensure!(taken.transitions == released.transitions + 1, "{} transitions", taken.transitions);
    Ok(format!(
        "{} took it {:.2} s after it was given back, transition {}; each replica tried {TRIES} times and waits",
        taken.holder,
        taken.answered.duration_since(released.answered).as_secs_f64(),
        taken.transitions,
    ))
}

fn given_back_by_client_go(
    _: &Stage,
    cluster: &mut Deployment,
    peer: &mut Option<Manager>,
) -> Result<String> {
    let peer = peer.take().context("client-go does not lead")?;
    let held = cluster.audit.claims()?.len();
    peer.daemon.stop()?;
    cluster.leader()?;
    let (released, taken) = next(cluster, held)?;
    is_ours(cluster, &taken)?;
    ensure!(released.holder.is_empty(), "client-go did not give the lease back");
    ensure!(taken.transitions == released.transitions + 1, "{} transitions", taken.transitions);
    let waited = taken.answered.duration_since(released.answered).as_secs_f64();
    Ok(format!("{} took it {waited:.2} s later, transition {}", taken.pod, taken.transitions))
}

fn client_go_killed(stage: &Stage, cluster: &mut Deployment, _: &mut Option<Manager>) -> Result<String> {
    let (peer, ..) = peer_leads(stage, cluster)?;
    peer.daemon.kill()?;
    let held = cluster.audit.claims()?.len();
    cluster.leader()?;
    let (last, taken) = next(cluster, held)?;
    is_ours(cluster, &taken)?;
    ensure!(taken.transitions == last.transitions + 1, "{} transitions", taken.transitions);
    let waited = lapsed(&last, &taken)?;
    Ok(format!(
        "{} took it {waited:.2} s after its last renewal, transition {}",
        taken.pod, taken.transitions
    ))
}
