//! The way back and forth: what `hand-back` says that OCCM will do, and what OCCM then does, started in place of this program; what
//! `adopt` says of the cluster that OCCM serves, and what this program then does.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::plan::calls::{Calls, Known};
use super::plan::{cluster, operator};
use super::steps::{self, at_rest, published_through};
use crate::artifacts::OccmRelease;
use crate::kubernetes::audit::Audit;
use crate::kubernetes::objects::ServiceSketch;
use crate::machine::wait::{soon, until};
use crate::network::{NODES, NodePlace};
use crate::openstack::tree::Tree;
use crate::openstack::writes::Writes;
use crate::programs::occm;
use crate::programs::terminal::Terminal;
use crate::stage::Stage;

const SCENARIO: &str = "26 the way back";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
const PREFIX: &str = "loadbalancer.openstack.org/";
/// Services for which OCCM does the same.
const SAME: [&str; 2] = ["back-plain", "back-proxy"];
/// One that is published as this program alone does it.
const FORCED: &str = "back-forced";
/// One whose load balancer is to outlive it, which OCCM does not know.
const RETAINED: &str = "back-retained";
/// One that OCCM cannot serve.
const REFUSED: &str = "back-refused";
const ALL: [&str; 5] = [SAME[0], SAME[1], FORCED, RETAINED, REFUSED];
/// One that OCCM makes.
const MADE: &str = "made-by-occm";
/// OCCM has looked at all Services by then, again and again.
const PATIENCE: Duration = Duration::from_secs(120);

/// The whole scenario, with a cluster of its own.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let audit = cluster(stage, "back")?;
    serve(stage)?;
    stage.stop_controller()?;
    let operator = operator(stage)?;
    let mut said = Value::Null;
    stage.check(SCENARIO, "hand-back says what OCCM will do", |_| {
        said = operator.types(&["hand-back", "-o", "json"])?.json(&[3])?;
        ensure!(named(&said) == [FORCED, REFUSED, RETAINED], "{said:#}");
        let text = operator.types(&["hand-back"])?.with_code(&[3])?;
        Ok(text.trim_end().rsplit('\n').next().unwrap_or_default().to_owned())
    });
    let before = Seen::of(stage)?;
    // What is said from here on is OCCM's.
    stage.api()?.delete("/api/v1/namespaces/default/events")?;
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let folder = stage.cluster()?.plane.folder().to_owned();
    // With the configuration of this program, and with all rights.
    let mut occm = occm::start(
        &stage.artifacts.occm(OccmRelease::V1_36)?,
        &folder,
        &operator.kubeconfig,
        &operator.cloud_config,
    )?;
    stage.check(SCENARIO, "OCCM publishes what was said, and the rest as it was", |stage| {
        has_looked(stage)?;
        as_said(stage, &said, &before)
    });
    stage.check(SCENARIO, "OCCM breaks what it was said to break", |stage| fails(stage, &said));
    stage.check(
        SCENARIO,
        "OCCM makes no load balancer anew, and changes in Octavia what was said",
        |stage| {
            let after = Seen::of(stage)?;
            ensure!(
                after.balancers == before.balancers,
                "before {:?}, after {:?}",
                before.balancers,
                after.balancers
            );
            let mut written = writes.so_far()?;
            // Octavia itself writes its ports.
            written.retain(|request| request.contains("/lbaas/"));
            // It tries again and again to make the pool that Octavia refuses.
            let fits = |request: &String| {
                request.starts_with("DELETE /v2.0/lbaas/pools/")
                    || request.starts_with("POST /v2.0/lbaas/pools?")
            };
            ensure!(written.iter().all(fits) && !written.is_empty(), "{written:?}");
            Ok(format!(
                "{} load balancers, the same; written in Octavia: {}",
                after.balancers.len(),
                list(&written)
            ))
        },
    );
    stage.check(SCENARIO, "OCCM deletes what was to be retained", |stage| {
        steps::remove(stage, &[RETAINED])?;
        soon("the load balancer is gone", || {
            let left = stage.cloud.user.load_balancers()?;
            let name = |one: &Value| one["name"].as_str().unwrap_or_default().contains(RETAINED);
            ensure!(!left.iter().any(name), "it is still there");
            Ok(())
        })?;
        Ok("the load balancer went with its Service, as was said".into())
    });
    stage.check(SCENARIO, "OCCM makes a load balancer", made_by_occm);
    stage.check(SCENARIO, "adopt beside OCCM writes nothing", |stage| adopt_beside(stage, &operator));
    occm.check()?;
    occm.stop()?;
    stage
        .check(SCENARIO, "adopt, the switch, and plan says nothing", |stage| forth(stage, &audit, &operator));
    let mut left: Vec<&str> = ALL.into_iter().filter(|service| *service != RETAINED).collect();
    left.push(MADE);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &left));
    stage.end_cluster()
}

/// All Services, served by this program.
fn serve(stage: &mut Stage) -> Result<()> {
    let api = stage.api()?;
    ServiceSketch::plain(SAME[0], true).create(&api, &PLACES)?;
    ServiceSketch::proxy(SAME[1], "v2", true).create(&api, &PLACES)?;
    ServiceSketch::plain(FORCED, true)
        .annotate(&format!("{PREFIX}ip-mode"), "proxy")
        .create(&api, &PLACES)?;
    ServiceSketch::proxy(RETAINED, "v1", true)
        .annotate(&format!("{PREFIX}reclaim-policy"), "retain")
        .create(&api, &PLACES)?;
    let mut refused = ServiceSketch::proxy(REFUSED, "v1", true);
    refused.datagrams = vec![80];
    refused.create(&api, &PLACES)?;
    stage.start_controller()?;
    for service in ALL {
        if service == SAME[0] {
            soon("it is published", || {
                let ingress = api.ingress(service)?;
                ensure!(ingress[0]["ip"].is_string(), "{ingress}");
                Ok(())
            })?;
        } else {
            published_through(&api, service)?;
        }
        at_rest(&stage.cloud.user, service)?;
    }
    Ok(())
}

/// What is published, and which load balancers there are.
struct Seen {
    statuses: Vec<(&'static str, Value)>,
    balancers: Vec<(String, String)>,
}

impl Seen {
    fn of(stage: &Stage) -> Result<Self> {
        let api = stage.api()?;
        let statuses = ALL.into_iter().map(|service| Ok((service, api.ingress(service)?)));
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let balancers = stage.cloud.user.load_balancers()?;
        let mut balancers: Vec<_> =
            balancers.iter().map(|one| (text(one, "id"), text(one, "vip_address"))).collect();
        balancers.sort();
        Ok(Self { statuses: statuses.collect::<Result<_>>()?, balancers })
    }
}

/// Names of the Services that something was said of, sorted.
fn named(said: &Value) -> Vec<&str> {
    let services = said["services"].as_array().into_iter().flatten();
    let mut names: Vec<&str> =
        services.filter_map(|one| one["service"].as_str()?.strip_prefix("default/")).collect();
    names.sort_unstable();
    names
}

fn of<'a>(said: &'a Value, service: &str) -> Option<&'a Value> {
    let services = said["services"].as_array()?;
    services.iter().find(|one| one["service"] == format!("default/{service}"))
}

/// OCCM has had its say about each Service.
fn has_looked(stage: &Stage) -> Result<()> {
    let api = stage.api()?;
    until("OCCM has looked at all Services", PATIENCE, || {
        for service in ALL {
            let list = api.get("/api/v1/namespaces/default/events")?;
            let by_occm = list["items"].as_array().into_iter().flatten().any(|event| {
                event["involvedObject"]["name"] == service
                    && event["source"]["component"] == "service-controller"
                    && ["EnsuredLoadBalancer", "SyncLoadBalancerFailed"]
                        .contains(&event["reason"].as_str().unwrap_or_default())
            });
            ensure!(by_occm, "nothing is said of {service}");
        }
        Ok(())
    })
}

fn as_said(stage: &Stage, said: &Value, before: &Seen) -> Result<String> {
    let api = stage.api()?;
    let mut seen = Vec::new();
    for (service, status) in &before.statuses {
        // One that fails keeps its status.
        let fails = of(said, service).is_some_and(|one| one.to_string().contains("\"fails\""));
        let entry =
            of(said, service).map(|one| one["entry"].clone()).filter(|entry| !entry.is_null() && !fails);
        let expected = entry.as_ref().map_or_else(|| status.clone(), |entry| json!([entry]));
        until(&format!("{service} is published with {expected}"), PATIENCE, || {
            let now = api.ingress(service)?;
            ensure!(now == expected, "{now}");
            Ok(())
        })?;
        seen.push(format!("{service} {}", if entry.is_some() { "changed as said" } else { "as before" }));
    }
    Ok(seen.join(", "))
}

/// The pool for datagrams is gone, and OCCM complains that it cannot have another one.
fn fails(stage: &Stage, said: &Value) -> Result<String> {
    let text = of(said, REFUSED).context("nothing was said of it")?.to_string();
    ensure!(text.contains("deletes the pool of port 80/UDP"), "{text}");
    let message = until("OCCM complains", PATIENCE, || {
        let list = stage.api()?.get("/api/v1/namespaces/default/events")?;
        let failed = list["items"].as_array().into_iter().flatten().find(|event| {
            event["involvedObject"]["name"] == REFUSED && event["reason"] == "SyncLoadBalancerFailed"
        });
        Ok(failed.context("it does not")?["message"].as_str().unwrap_or_default().to_owned())
    })?;
    let tree = Tree::of(&stage.cloud.user, REFUSED)?;
    ensure!(tree.protocols == ["PROXY"], "pools {:?}", tree.protocols);
    Ok(format!("the pool for datagrams is gone; {message}"))
}

fn made_by_occm(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    ServiceSketch::proxy(MADE, "v2", false).create(&api, &PLACES)?;
    let address = published_through(&api, MADE)?;
    at_rest(&stage.cloud.user, MADE)?;
    Ok(format!("published at {address}"))
}

/// `adopt` while OCCM serves: it only looks.
fn adopt_beside(stage: &Stage, operator: &Terminal) -> Result<String> {
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let said = operator.types(&["adopt", "-A", "--cluster-name=e2e", "--controllers=service"])?;
    let said = said.with_code(&[2, 3])?;
    ensure!(said.contains(" 0 to destroy"), "{said}");
    let written = writes.by_this_program()?;
    ensure!(written.is_empty(), "{written:?}");
    Ok(said.trim_end().rsplit('\n').next().unwrap_or_default().to_owned())
}

/// `adopt` says what this program does when it takes over, and nothing is left to be said afterwards. Both are kept: the guide
/// shows them.
fn forth(stage: &mut Stage, audit: &Audit, operator: &Terminal) -> Result<String> {
    let flags = ["-A", "--cluster-name=e2e", "--controllers=service"];
    let known = Known::of(&stage.cloud.user, None)?;
    let adopt = operator.types(&[&["adopt"], &flags[..]].concat())?.with_code(&[2, 3])?;
    std::fs::write(stage.folder().join("adopt.txt"), &adopt)?;
    ensure!(
        adopt.contains(" 0 to destroy") && adopt.contains("no connections will be interrupted"),
        "{adopt}"
    );
    let calls = operator.types(&[&["adopt", "-o", "calls"], &flags[..]].concat())?.with_code(&[2, 3])?;
    let planned = Calls::planned(&calls, &known)?.sorted();
    let (writes, before) = (Writes::from_now(&stage.cloud.folders)?, audit.writes()?.len());
    stage.start_controller()?;
    let made = || -> Result<Calls> {
        let cluster = audit.writes()?.split_off(before);
        Ok(Calls::made(&cluster, &writes.done_by_this_program()?, &known).sorted())
    };
    // Tags that say whose everything is come a minute later.
    until("what was planned was done", Duration::from_secs(40), || {
        let made = made()?;
        ensure!(made == planned, "planned {planned:#?}, made {made:#?}");
        Ok(())
    })?;
    let plan = until("nothing is left to be done", PATIENCE, || {
        operator.types(&[&["plan"], &flags[..]].concat())?.with_code(&[0])
    })?;
    std::fs::write(stage.folder().join("plan.txt"), &plan)?;
    let last = |text: &str| text.trim_end().rsplit('\n').next().unwrap_or_default().to_owned();
    Ok(format!("adopt: {} {} calls, all as said; plan: {}", last(&adopt), planned.len(), last(&plan)))
}

fn list(requests: &[String]) -> String {
    let mut kinds: Vec<String> = requests
        .iter()
        .map(|request| {
            let path = request.split('?').next().unwrap_or_default();
            let parts = path.split('/').map(|part| if part.len() == 36 { "ID" } else { part });
            parts.collect::<Vec<_>>().join("/")
        })
        .collect();
    kinds.sort();
    kinds.dedup();
    if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") }
}
