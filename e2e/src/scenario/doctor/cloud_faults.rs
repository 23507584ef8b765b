//! What somebody breaks in the cloud by hand.

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::Fault;
use super::patient::{Ends, PLACES, SERVICE};
use crate::openstack::api::OpenStack;
use crate::openstack::database;
use crate::openstack::tree::Tree;
use crate::scenario::steps::{annotate, at_rest};
use crate::stage::Stage;

pub(super) const ALL: &[Fault] = &[
    Fault {
        name: "a pool without the PROXY protocol",
        codes: &["D601"],
        ends: Ends::End,
        provoke: |stage, _| lead_to_a_pool_of_tcp(stage),
        mend: |stage, _| {
            reconcile(stage)?;
            remove_what_was_made_by_hand(stage)
        },
    },
    Fault {
        name: "a load balancer that has been PENDING for long",
        codes: &["D502"],
        ends: Ends::ArriveHere("HAProxy goes on with what it has"),
        provoke: |stage, _| since_long_ago(stage, "PENDING_UPDATE"),
        mend: |stage, _| since_long_ago(stage, "ACTIVE"),
    },
    Fault {
        name: "a backend that expects a header that nobody sends",
        codes: &["D902"],
        ends: Ends::End,
        provoke: |stage, _| ask_for_header(stage, "false"),
        mend: |stage, _| ask_for_header(stage, "v2"),
    },
    Fault {
        // Ports without any group let nothing out either.
        name: "a security group closes the node ports",
        codes: &["D405", "D702"],
        ends: Ends::End,
        provoke: |stage, _| guard(stage, false),
        mend: |stage, _| guard(stage, true),
    },
    Fault {
        name: "a member that somebody removed and one at another port",
        codes: &["D701"],
        ends: Ends::NotAsked("the load balancer chooses the member"),
        provoke: |stage, _| misdirect_a_member(stage),
        mend: |stage, _| reconcile(stage),
    },
    Fault {
        name: "a listener in ERROR below an ACTIVE load balancer",
        codes: &["D501"],
        ends: Ends::ArriveHere("HAProxy goes on with what it has"),
        provoke: |stage, _| status_of_listener(stage, "ERROR"),
        mend: |stage, _| status_of_listener(stage, "ACTIVE"),
    },
    Fault {
        name: "a health monitor that the Service wants and somebody removed",
        codes: &["D507"],
        ends: Ends::Arrive,
        provoke: |stage, _| remove_the_monitor(stage),
        mend: |stage, _| reconcile(stage),
    },
];

/// Has the controller mend it, and stops it again.
pub(super) fn reconcile(stage: &mut Stage) -> Result<()> {
    stage.start_controller()?;
    let terminal = crate::scenario::plan::operator(stage)?;
    crate::machine::wait::soon("nothing is left to do", || {
        let name = format!("default/{SERVICE}");
        terminal
            .types(&["plan", &name, "--cluster-name=e2e", "--controllers=service"])?
            .with_code(&[0])
            .map(drop)
    })?;
    at_rest(&stage.cloud.user, SERVICE)?;
    stage.stop_controller()
}

/// The controller that was stopped may have begun a change, so Octavia's rest is waited for before and after.
pub(super) fn write(stage: &Stage, method: Method, path: &str, body: &Value) -> Result<Value> {
    let body = (!body.is_null()).then_some(body);
    at_rest(&stage.cloud.user, SERVICE)?;
    let answer =
        stage.cloud.user.call("load-balancer", method, &format!("/v2/lbaas/{path}"), body)?.success()?;
    at_rest(&stage.cloud.user, SERVICE)?;
    Ok(answer)
}

/// The pool that the listener leads to. That which somebody made by hand stays, since it is not the controller's.
pub(super) fn pool(stage: &Stage) -> Result<Value> {
    let tree = Tree::of(&stage.cloud.user, SERVICE)?;
    let id = tree.listeners[0]["default_pool_id"].as_str().context("no pool")?.to_owned();
    Ok(stage.cloud.user.get("load-balancer", &format!("/v2/lbaas/pools/{id}"))?["pool"].clone())
}

fn lead_to_a_pool_of_tcp(stage: &Stage) -> Result<()> {
    let tree = Tree::of(&stage.cloud.user, SERVICE)?;
    let pool = json!({"pool": {"name": "by-hand", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "loadbalancer_id": tree.id}});
    let made = write(stage, Method::POST, "pools", &pool)?;
    let made = made["pool"]["id"].as_str().context("no id")?.to_owned();
    for member in &tree.members {
        let same = ["name", "address", "protocol_port", "subnet_id"]
            .map(|key| (key.to_owned(), member[key].clone()));
        let body = json!({"member": Map::from_iter(same)});
        write(stage, Method::POST, &format!("pools/{made}/members"), &body)?;
    }
    let listener = tree.listeners[0]["id"].as_str().context("no id")?;
    let lead = json!({"listener": {"default_pool_id": made}});
    write(stage, Method::PUT, &format!("listeners/{listener}"), &lead).map(drop)
}

/// The controller may leave it, and then leaves the load balancer for its sake; or it was stopped while it removed it.
fn remove_what_was_made_by_hand(stage: &Stage) -> Result<()> {
    at_rest(&stage.cloud.user, SERVICE)?;
    let pools = stage.cloud.user.list("load-balancer", "/v2/lbaas/pools?name=by-hand", "pools")?;
    for id in pools.iter().filter_map(|pool| pool["id"].as_str()) {
        write(stage, Method::DELETE, &format!("pools/{id}"), &Value::Null)?;
    }
    Ok(())
}

/// The security groups of the nodes: that which lets everybody in, or none.
fn guard(stage: &Stage, is_open: bool) -> Result<()> {
    let groups = if is_open { vec![open(stage)?] } else { Vec::new() };
    guard_with(stage, &groups)
}

/// The security group that lets everybody in.
pub(super) fn open(stage: &Stage) -> Result<Value> {
    let path = "/v2.0/security-groups?name=default";
    Ok(stage.cloud.user.list("network", path, "security_groups")?[0]["id"].clone())
}

/// Gives the nodes these security groups.
pub(super) fn guard_with(stage: &Stage, groups: &[Value]) -> Result<()> {
    let cloud = &stage.cloud.user;
    let administrator = OpenStack::log_in("admin")?;
    for place in PLACES {
        let path = format!("/v2.0/ports?device_id={}", place.server());
        let port = cloud.list("network", &path, "ports")?[0]["id"].as_str().context("no port")?.to_owned();
        let body = json!({"port": {"security_groups": groups}});
        administrator.put("network", &format!("/v2.0/ports/{port}"), &body)?.success()?;
    }
    Ok(())
}

fn misdirect_a_member(stage: &Stage) -> Result<()> {
    let pool = pool(stage)?["id"].as_str().context("no id")?.to_owned();
    let members =
        stage.cloud.user.list("load-balancer", &format!("/v2/lbaas/pools/{pool}/members"), "members")?;
    let id = members[0]["id"].as_str().context("no id")?;
    write(stage, Method::DELETE, &format!("pools/{pool}/members/{id}"), &Value::Null)?;
    let other = json!({"member": {"address": members[0]["address"], "protocol_port": 9, "subnet_id": members[0]["subnet_id"]}});
    write(stage, Method::POST, &format!("pools/{pool}/members"), &other).map(drop)
}

fn status_of_listener(stage: &Stage, status: &str) -> Result<()> {
    let listener =
        Tree::of(&stage.cloud.user, SERVICE)?.listeners[0]["id"].as_str().context("no id")?.to_owned();
    database::execute(
        "octavia",
        &format!("UPDATE listener SET provisioning_status = '{status}' WHERE id = '{listener}'"),
    )
}

fn remove_the_monitor(stage: &mut Stage) -> Result<()> {
    annotate(&stage.api()?, SERVICE, &[("enable-health-monitor", json!("true"))])?;
    reconcile(stage)?;
    let monitor = pool(stage)?["healthmonitor_id"].as_str().context("no monitor")?.to_owned();
    write(stage, Method::DELETE, &format!("healthmonitors/{monitor}"), &Value::Null).map(drop)
}

/// What Octavia's worker leaves when it is lost.
fn since_long_ago(stage: &Stage, status: &str) -> Result<()> {
    let id = stage.cloud.user.load_balancer(SERVICE)?["id"].as_str().context("no id")?.to_owned();
    let change = format!("provisioning_status = '{status}', updated_at = '2026-01-01 00:00:00'");
    database::execute("octavia", &format!("UPDATE load_balancer SET {change} WHERE id = '{id}'"))
}

fn ask_for_header(stage: &mut Stage, value: &str) -> Result<()> {
    annotate(&stage.api()?, SERVICE, &[("proxy-protocol", json!(value))])?;
    reconcile(stage)
}
