//! A rolling upgrade from the last release, and back: its program and this one are the two replicas of a deployment, and take the lead
//! from each other. The rights are those of the present manifests, as during an upgrade with Helm.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::CURRENT;
use super::serving::{all_reach, everybody, has_looked};
use super::steps::{self, Reach, clients_inside, green, green_on, published_through};
use super::untouched::Untouched;
use crate::artifacts::last_release::VERSION;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::{Audit, Claim};
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::openstack::writes::Writes;
use crate::programs::controller::{Controller, Launch};
use crate::stage::Stage;

const SCENARIO: &str = "40 last release";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// The Service to which ports are added.
const PUBLIC: &str = "rolling-public";
/// A Service that wishes for much of what a listener, a pool and a monitor can have.
const WISHFUL: &str = "rolling-wishful";
/// A Service of both protocols on one port. Not with PROXY protocol: that this is for TCP only is told again by each leader.
const MIXED: &str = "rolling-mixed";
/// The Service that the present program makes.
const LATER: &str = "rolling-later";
/// Tries to take the Lease that show that a replica really waits.
const TRIES: u64 = 3;
/// Longest time without a leader.
const HAND_OVER: f64 = 5.0;

/// One of the two programs.
struct Replica {
    name: &'static str,
    launch: Launch,
    running: Option<Controller>,
}

/// The whole scenario, with a cluster of its own.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let audit = stage.start_audited_cluster("last-release", CURRENT)?;
    for place in PLACES {
        stage.join(place, CURRENT, Mode::Iptables)?;
    }
    let program = stage.artifacts.last_release()?;
    let cluster = stage.cluster()?;
    let launch = cluster.launch.replica(&cluster.plane, &program)?;
    let mut last = Replica { name: VERSION, launch, running: None };
    let mut present = Replica { name: "this program", launch: cluster.launch.clone(), running: None };
    let mut sketch = ServiceSketch::proxy(PUBLIC, "v2", false);
    last.start()?;
    stage.check(
        SCENARIO,
        &format!("under {VERSION} Services with PROXY v1, v2 and without are published"),
        |stage| {
            let api = stage.api()?;
            for sketch in [&sketch, &wishful(), &mixed()] {
                sketch.create(&api, &PLACES)?;
            }
            published_through(&api, WISHFUL)?;
            soon(&format!("{MIXED} is published"), || {
                let ingress = api.ingress(MIXED)?;
                ensure!(ingress[0]["ip"].is_string(), "{ingress}");
                Ok(())
            })?;
            works(stage)
        },
    );
    hand_over(stage, &audit, "upgrade", &mut last, &mut present)?;
    port_added(stage, &present, &mut sketch, 8080);
    stage.check(SCENARIO, "under this program another Service is published", |stage| {
        let api = stage.api()?;
        ServiceSketch::proxy(LATER, "v2", true).create(&api, &PLACES)?;
        let address = published_through(&api, LATER)?;
        Ok(format!("GREEN: {address} {}", green(&address, &clients_inside(stage, Reach::Internal))?))
    });
    hand_over(stage, &audit, "downgrade", &mut present, &mut last)?;
    port_added(stage, &last, &mut sketch, 9090);
    hand_over(stage, &audit, "upgrade again", &mut last, &mut present)?;
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[PUBLIC, WISHFUL, MIXED, LATER]));
    stage.check(SCENARIO, "in the end: nobody wrote without the lease", |_| audit.one_at_a_time());
    stage.check(SCENARIO, "in the end: the rights of the manifests were enough", |_| {
        audit.nothing_forbidden()
    });
    present.end()
}

fn wishful() -> ServiceSketch {
    let mut sketch = ServiceSketch::proxy(WISHFUL, "v1", true);
    for (key, value) in [
        ("timeout-client-data", "61000"),
        ("connection-limit", "1000"),
        ("lb-method", "LEAST_CONNECTIONS"),
        ("enable-health-monitor", "true"),
        ("tags", "rolling"),
    ] {
        sketch = sketch.annotate(&format!("loadbalancer.openstack.org/{key}"), value);
    }
    (sketch.ports, sketch.policy) = (vec![80, 8080], "Local");
    sketch.source_ranges = vec!["198.18.0.0/16".to_owned()];
    sketch
}

fn mixed() -> ServiceSketch {
    let mut sketch = ServiceSketch::plain(MIXED, true);
    (sketch.ports, sketch.datagrams) = (vec![443], vec![443]);
    sketch
}

impl Replica {
    fn start(&mut self) -> Result<()> {
        self.running = Some(self.launch.start()?);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.running.take().map_or(Ok(()), Controller::stop)
    }

    fn controller(&self) -> Result<&Controller> {
        self.running.as_ref().with_context(|| format!("{} does not run", self.name))
    }

    /// The value of a metric of the election.
    fn metric(&self, name: &str) -> Result<u64> {
        let lines = self.controller()?.metrics(name)?;
        let value = lines.first().and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.with_context(|| format!("{name} of {}: {lines:?}", self.name))
    }

    fn leads(&self) -> Result<bool> {
        Ok(self.metric("leader_election_master_status")? == 1)
    }
}

/// One joins the other, which leads, and then leads in its place.
fn hand_over(
    stage: &mut Stage,
    audit: &Audit,
    label: &str,
    from: &mut Replica,
    to: &mut Replica,
) -> Result<()> {
    to.start()?;
    let case = format!("{label}: {} joins {}, waits for the lease, and writes nothing", to.name, from.name);
    stage.check(SCENARIO, &case, |stage| waits(stage, from, to));
    let case = format!("{label}: {} ends, {} leads, and nothing is written", from.name, to.name);
    let mut ended = Ok(());
    stage.check(SCENARIO, &case, |stage| follows(stage, audit, from, to, &mut ended));
    ended
}

fn waits(stage: &Stage, leader: &Replica, joined: &Replica) -> Result<String> {
    let untouched = Untouched::from_now(stage)?;
    soon("it waits for the lease", || {
        let tries = joined.metric("leader_election_slowpath")?;
        ensure!(tries >= TRIES, "{tries} tries");
        Ok(())
    })?;
    ensure!(leader.leads()? && !joined.leads()?, "{} does not lead alone", leader.name);
    untouched.until_now()?;
    Ok(format!("{} leads", leader.name))
}

fn follows(
    stage: &Stage,
    audit: &Audit,
    from: &mut Replica,
    to: &Replica,
    ended: &mut Result<()>,
) -> Result<String> {
    let untouched = Untouched::from_now(stage)?;
    let services = u64::try_from(stage.cloud.user.load_balancers()?.len())?;
    *ended = from.end();
    soon(&format!("{} leads", to.name), || {
        ensure!(to.leads()?, "it does not lead");
        Ok(())
    })?;
    has_looked(to.controller()?, services)?;
    let seen = works(stage)?;
    let gap = without_leader(&audit.claims()?)?;
    untouched.until_now()?;
    Ok(format!(
        "no write in the cloud, none in {services} Services, no Event; lead handed over in {gap:.2} s; {seen}"
    ))
}

/// Seconds between the last release of the Lease and its next claim.
fn without_leader(claims: &[Claim]) -> Result<f64> {
    let released = claims.iter().rposition(|claim| claim.holder.is_empty());
    let released = released.context("the lease was not given back")?;
    let taken = claims.get(released + 1).context("nobody has taken the lease")?;
    let gap = taken.answered.duration_since(claims[released].answered).as_secs_f64();
    ensure!(claims[released].token != taken.token, "the same program has taken the lease again");
    ensure!(gap <= HAND_OVER, "the lease was taken after {gap:.2} s");
    Ok(gap)
}

/// A user adds a port, which one of the programs serves.
fn port_added(stage: &mut Stage, by: &Replica, sketch: &mut ServiceSketch, port: u16) {
    let case = format!("under {} a port is added: each object is made once, the status stays", by.name);
    stage.check(SCENARIO, &case, |stage| {
        let api = stage.api()?;
        let (writes, status) = (Writes::from_now(&stage.cloud.folders)?, status(&api)?);
        let ensured_before = ensured(&api)?;
        sketch.ports.push(port);
        sketch.update(&api, &PLACES)?;
        soon("Octavia has the listener", || {
            let tree = Tree::of(&stage.cloud.user, PUBLIC)?;
            ensure!(tree.ports().contains(&u64::from(port)), "listeners {:?}", tree.ports());
            tree.settled()
        })?;
        // What is written after this Event is not about the port.
        soon("an Event says that the load balancer is up to date", || {
            ensure!(ensured(&api)? != ensured_before, "no EnsuredLoadBalancer so far");
            Ok(())
        })?;
        let seen = green_on(&steps::address(&api, PUBLIC)?, port, &everybody(stage))?;
        ensure!(by.leads()?, "{} does not lead", by.name);
        let done = writes.done_by_this_program()?;
        let kinds: BTreeSet<String> = done.iter().map(|write| without_ids(write)).collect();
        ensure!(!done.is_empty() && kinds.len() == done.len(), "written more than once: {done:?}");
        ensure!(self::status(&api)? == status, "the status was {status}");
        Ok(format!("{}; {seen}", kinds.into_iter().collect::<Vec<_>>().join(", ")))
    });
}

/// A request without the ids of what it is about.
fn without_ids(request: &str) -> String {
    let is_id = |part: &&str| part.len() == 36 && part.matches('-').count() == 4;
    let part = |part: &str| if is_id(&part) { "…".to_owned() } else { part.to_owned() };
    request.trim_end_matches('?').split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The Events EnsuredLoadBalancer of the public Service, by resource version.
fn ensured(api: &Kubernetes) -> Result<BTreeSet<String>> {
    let events = api.get("/apis/events.k8s.io/v1/events")?;
    let of_public =
        |event: &&Value| event["reason"] == "EnsuredLoadBalancer" && event["regarding"]["name"] == PUBLIC;
    let events = events["items"].as_array().into_iter().flatten().filter(of_public);
    Ok(events.map(|event| event["metadata"]["resourceVersion"].to_string()).collect())
}

fn status(api: &Kubernetes) -> Result<Value> {
    Ok(api.service(PUBLIC)?["status"].clone())
}

/// Everybody reaches the public Service.
fn works(stage: &Stage) -> Result<String> {
    let address = published_through(&stage.api()?, PUBLIC)?;
    Ok(format!("GREEN: {address} ipMode Proxy, {}", all_reach(stage, &address)?))
}
