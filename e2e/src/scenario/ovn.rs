//! Octavia's provider ovn, the real one, over real databases of OVN: what it refuses, and a Service from its creation to its end. There is
//! no chassis, so nobody forwards packets: what OVN would do with them stands in its northbound database.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::CURRENT;
use super::steps::{self, at_rest, warned};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::ServiceSketch;
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::{soon, until};
use crate::network::{NODES, NodePlace};
use crate::openstack::access::AccessLog;
use crate::openstack::ovn::{self, Ovn};
use crate::openstack::tree::Tree;
use crate::openstack::writes::Writes;
use crate::stage::Stage;
use crate::truth;

const SCENARIO: &str = "34 ovn";
const SERVICE: &str = "forwarded";
const UNNAMED: &str = "unnamed";
/// So many looks after a report of a check that Octavia does not show, it is made again.
const LOOKS_FOR_A_REPORT: u32 = 40;
const BETWEEN_REPORTS: Duration = Duration::from_secs(3);
/// A member that stays ONLINE for so many seconds is not being changed any more.
const STAYS: u64 = 8;
/// Longest time until the driver has done all that was asked of it.
const SETTLED: Duration = Duration::from_secs(120);
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];
/// What is asked of ovn for nothing: annotation, value, reason of the Event, part of its note.
const WISHES: [(&str, &str, &str); 5] = [
    ("proxy-protocol", "v2", "if externalTrafficPolicy is Local and there is a health monitor"),
    ("x-forwarded-for", "true", "requires a listener of protocol HTTP"),
    ("lb-method", "LEAST_CONNECTIONS", "use SOURCE_IP_PORT"),
    ("health-monitor-type", "HTTP", "health-monitor-type: \"HTTP\" is not supported by provider ovn"),
    ("metrics-enable", "true", "provider ovn does not support"),
];

/// On a cluster of 1.36.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let provider = stage.artifacts.ovn_provider()?;
    let folders = stage.cloud.folders.clone();
    let started = Ovn::start(&mut stage.cloud.services, &folders, &provider)?;
    let looked = look(stage);
    stage.end_cluster()?;
    started.stop(&mut stage.cloud.services, &folders)?;
    looked
}

fn look(stage: &mut Stage) -> Result<()> {
    truth::ovn(stage)?;
    stage.check(SCENARIO, "what it refuses leaves its port", abandoned);
    stage.start_cluster("ovn", CURRENT, Mode::Iptables)?;
    settings(stage, "lb-provider = ovn")?;
    stage.check(SCENARIO, "created", created);
    stage.check(SCENARIO, "a node joins", |stage| {
        stage.join(NODES[2], CURRENT, Mode::Iptables)?;
        has(stage, &NODES)
    });
    stage.check(SCENARIO, "a check of a member fails", check_fails);
    for (annotation, value, part) in WISHES {
        stage.check(SCENARIO, &format!("asked for {annotation}"), |stage| {
            asked(stage, annotation, value, part)
        });
    }
    stage.check(SCENARIO, "tags and session affinity", pool_changes);
    stage.check(SCENARIO, "a node leaves", |stage| {
        stage.end_proxy(NODES[2])?;
        stage.api()?.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
        has(stage, &PLACES)
    });
    stage.check(SCENARIO, "a port is added and removed", ports);
    stage.check(SCENARIO, "a restart of the controller", restart);
    stage.check(SCENARIO, "deleted", deleted);
    stage.check(SCENARIO, "nobody names the provider", nobody_names_it);
    Ok(())
}

fn settings(stage: &mut Stage, lines: &str) -> Result<()> {
    let networks = stage.cloud.networks.clone();
    stage.cluster()?.launch.load_balancer_settings(&networks, lines)
}

/// Each refusal of a load balancer that comes with its children leaves a port. They are removed, as an administrator would.
fn abandoned(stage: &mut Stage) -> Result<String> {
    let ports = ovn::vip_ports(&stage.cloud.user)?;
    for id in &ports {
        stage.cloud.user.delete("network", &format!("/v2.0/ports/{id}"))?.success()?;
    }
    Ok(format!("{} ports ovn-lb-vip-… were left by the refused requests", ports.len()))
}

fn created(stage: &mut Stage) -> Result<String> {
    let mut sketch = ServiceSketch::plain(SERVICE, false)
        .annotate("loadbalancer.openstack.org/enable-health-monitor", "true")
        .annotate("loadbalancer.openstack.org/connection-limit", "100");
    sketch.policy = "Local";
    sketch.create(&stage.api()?, &PLACES)?;
    stage.start_controller()?;
    let seen = has(stage, &PLACES)?;
    let api = stage.api()?;
    let ingress = soon("it is published", || {
        let ingress = api.ingress(SERVICE)?;
        ensure!(ingress[0]["ip"].is_string(), "{ingress}");
        Ok(ingress)
    })?;
    let balancer = stage.cloud.user.load_balancer(SERVICE)?;
    ensure!(balancer["provider"] == "ovn", "{balancer}");
    let note = warned(&api, SERVICE, "LoadBalancerSettingNotSupported", &["connection-limit"])?;
    let address = ingress[0]["ip"].as_str().unwrap_or_default().to_owned();
    soon("OVN forwards what comes to the floating IP", || {
        let forwarded = forwarded(stage)?;
        ensure!(forwarded.contains(&format!("{address}:80=")), "{forwarded}");
        Ok(())
    })?;
    Ok(format!("{seen}; published {ingress}; Event: {note}"))
}

fn forwarded(stage: &Stage) -> Result<String> {
    let balancer = stage.cloud.user.load_balancer(SERVICE)?;
    ovn::forwarded(balancer["id"].as_str().unwrap_or_default())
}

/// Octavia and OVN have these nodes as members, and nothing is at work.
fn has(stage: &Stage, places: &[NodePlace]) -> Result<String> {
    let addresses: Vec<String> = places.iter().map(|place| place.address()).collect();
    soon("Octavia and OVN have the nodes", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.addresses() == addresses, "members {:?}", tree.addresses());
        tree.settled()?;
        let forwarded = forwarded(stage)?;
        let entry = forwarded.split_whitespace().next().context("OVN forwards nothing")?;
        let members = entry.split('=').nth(1).unwrap_or_default();
        let mut found: Vec<&str> = members.split(',').filter_map(|member| member.split(':').next()).collect();
        found.sort_unstable();
        ensure!(found == addresses, "{forwarded}");
        Ok(forwarded)
    })
}

/// As a chassis would report it. It is no reason to write anything.
fn check_fails(stage: &mut Stage) -> Result<String> {
    at_rest(&stage.cloud.user, SERVICE)?;
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let place = NODES[1].address();
    let shows = |wanted: &str| -> Result<()> {
        let members = Tree::of(&stage.cloud.user, SERVICE)?.members;
        let of_node = |member: &&Value| member["address"] == place.as_str();
        let status = &members.iter().find(of_node).context("there is no member")?["operating_status"];
        ensure!(status == wanted, "it should be {wanted}, and is {status}");
        Ok(())
    };
    // The driver may lose what it is told while it reads its own copy of the database: tell it again.
    let status = |wanted: &str, report: &str| {
        let other = if report == "offline" { "online" } else { "offline" };
        let mut looks = 0;
        soon(&format!("Octavia shows the check of {place}"), || {
            if looks % LOOKS_FOR_A_REPORT == 0 {
                if looks > 0 {
                    ovn::report_check(&place, other)?;
                    // Of two reports at once the driver may pass on the first one last.
                    std::thread::sleep(BETWEEN_REPORTS);
                }
                ovn::report_check(&place, report)?;
            }
            looks += 1;
            shows(wanted)
        })
    };
    // The driver may still be at the changes before, which leave the member in ERROR until somebody reports anew.
    let settles = || {
        until("the member stays ONLINE", SETTLED, || {
            status("ONLINE", "online")?;
            for _ in 0..STAYS {
                std::thread::sleep(Duration::from_secs(1));
                shows("ONLINE")?;
            }
            Ok(())
        })
    };
    soon("the check is known", || ovn::report_check(&place, "online"))?;
    settles()?;
    status("ERROR", "offline")?;
    status("ONLINE", "online")?;
    let written = writes.by_this_program()?;
    ensure!(written.is_empty(), "{written:?}");
    Ok(format!("{place} ERROR and ONLINE again, nothing written"))
}

fn annotate(stage: &Stage, annotation: &str, value: Option<&str>) -> Result<()> {
    steps::annotate(&stage.api()?, SERVICE, &[(annotation, json!(value))])
}

/// The Event says what to do, ovn is not asked for it, and the load balancer serves on.
fn asked(stage: &mut Stage, annotation: &str, value: &str, part: &str) -> Result<String> {
    let log = AccessLog::from_now(&stage.cloud.folders, "octavia")?;
    let before = forwarded(stage)?;
    if annotation == "metrics-enable" {
        annotate(stage, "metrics-port", Some("9100"))?;
        annotate(stage, "metrics-allow-cidrs", Some("10.0.0.0/8"))?;
    }
    annotate(stage, annotation, Some(value))?;
    let api = stage.api()?;
    let note = soon(&format!("an Event has {part:?}"), || {
        let events = api.warnings(SERVICE)?;
        let found = events.iter().find(|(_, note)| note.contains(part));
        Ok(found.with_context(|| format!("{events:?}"))?.clone())
    })?;
    annotate(stage, annotation, None)?;
    at_rest(&stage.cloud.user, SERVICE)?;
    ensure!(forwarded(stage)? == before, "OVN forwards {}", forwarded(stage)?);
    let refused: Vec<String> = log
        .so_far()?
        .into_iter()
        .filter(|request| request.status >= 500)
        .map(|request| request.what)
        .collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    Ok(format!("{}: {}", note.0, note.1))
}

/// The driver leaves the listener PENDING after most changes of a pool. They end, and a node that leaves afterwards is followed.
fn pool_changes(stage: &mut Stage) -> Result<String> {
    let api = stage.api()?;
    let pool = |stage: &Stage| -> Result<Value> {
        let id = Tree::of(&stage.cloud.user, SERVICE)?.id;
        let pools = stage.cloud.user.list(
            "load-balancer",
            &format!("/v2/lbaas/pools?loadbalancer_id={id}"),
            "pools",
        )?;
        pools.first().cloned().context("there is no pool")
    };
    annotate(stage, "tags", Some("tier=front"))?;
    soon("the pool has the tag", || {
        let tags = pool(stage)?["tags"].to_string();
        ensure!(tags.contains("tier=front"), "{tags}");
        at_rest(&stage.cloud.user, SERVICE)
    })?;
    api.patch(&Kubernetes::service_path(SERVICE), &json!({"spec": {"sessionAffinity": "ClientIP"}}))?;
    soon("clients stay with their member", || {
        let pool = pool(stage)?;
        ensure!(
            pool["session_persistence"]["type"] == "SOURCE_IP" && pool["provisioning_status"] == "ACTIVE",
            "{pool}"
        );
        at_rest(&stage.cloud.user, SERVICE)
    })?;
    has(stage, &NODES)
}

fn ports(stage: &mut Stage) -> Result<String> {
    let mut sketch = ServiceSketch::plain(SERVICE, false);
    for ports in [vec![80, 8080], vec![80]] {
        sketch.ports.clone_from(&ports);
        sketch.update(&stage.api()?, &PLACES)?;
        let wanted: Vec<u64> = ports.iter().map(|port| u64::from(*port)).collect();
        soon("Octavia has the ports", || {
            let tree = Tree::of(&stage.cloud.user, SERVICE)?;
            ensure!(tree.ports() == wanted, "{:?}", tree.ports());
            // The pool of a port goes after its listener.
            ensure!(tree.protocols.len() == ports.len(), "{} pools", tree.protocols.len());
            tree.settled()?;
            let forwarded = forwarded(stage)?;
            ensure!(ports.iter().all(|port| forwarded.contains(&format!(":{port}="))), "{forwarded}");
            Ok(())
        })?;
    }
    has(stage, &PLACES)
}

fn restart(stage: &mut Stage) -> Result<String> {
    stage.stop_controller()?;
    let writes = Writes::from_now(&stage.cloud.folders)?;
    let log = AccessLog::from_now(&stage.cloud.folders, "octavia")?;
    stage.start_controller()?;
    soon("it has looked at the load balancer", || {
        let looks = log.so_far()?.into_iter().filter(|request| request.what.starts_with("GET")).count();
        ensure!(looks >= 3, "{looks} looks");
        Ok(())
    })?;
    let written = writes.by_this_program()?;
    ensure!(written.is_empty(), "{written:?}");
    Ok("nothing written".to_owned())
}

fn deleted(stage: &mut Stage) -> Result<String> {
    let id = stage.cloud.user.load_balancer(SERVICE)?["id"].as_str().unwrap_or_default().to_owned();
    let left = steps::release(stage, &[SERVICE])?;
    let forwarded = ovn::forwarded(&id)?;
    ensure!(forwarded.is_empty(), "OVN still forwards {forwarded}");
    Ok(left)
}

/// Octavia's own choice is ovn, which does not have the usual algorithm: its refusal says who it is.
fn nobody_names_it(stage: &mut Stage) -> Result<String> {
    stage.stop_controller()?;
    settings(stage, "lb-provider =")?;
    ServiceSketch::plain(UNNAMED, true).create(&stage.api()?, &PLACES)?;
    stage.start_controller()?;
    let balancer = soon("there is a load balancer", || {
        at_rest(&stage.cloud.user, UNNAMED)?;
        let balancer = stage.cloud.user.load_balancer(UNNAMED)?;
        ensure!(stage.api()?.ingress(UNNAMED)?[0]["ip"].is_string(), "it is not published");
        Ok(balancer)
    })?;
    ensure!(balancer["provider"] == "ovn", "{}", balancer["provider"]);
    let own = balancer["vip_port_id"].as_str().unwrap_or_default();
    let mut others = ovn::vip_ports(&stage.cloud.user)?;
    others.retain(|id| id != own);
    let abandoned = abandoned_of(stage, &others)?;
    steps::release(stage, &[UNNAMED])?;
    Ok(format!("made by ovn; {abandoned} ports were left by refusals"))
}

fn abandoned_of(stage: &Stage, ports: &[String]) -> Result<usize> {
    for id in ports {
        stage.cloud.user.delete("network", &format!("/v2.0/ports/{id}"))?.success()?;
    }
    Ok(ports.len())
}
