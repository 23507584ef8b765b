//! Each object on the way switched off, detached, edited or removed by somebody with the rights of the project.

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::Fault;
use super::cloud_faults::{guard_with, open, pool, reconcile, write};
use super::patient::{Ends, PLACES, Patient, SERVICE};
use crate::kubernetes::api::Kubernetes;
use crate::openstack::tree::Tree;
use crate::scenario::steps::Reach;
use crate::stage::Stage;

/// A security group that lets in datagrams only.
const GROUP: &str = "datagrams-only";

pub(super) const ALL: &[Fault] = &[
    Fault {
        name: "a load balancer that is switched off",
        codes: &["D510"],
        ends: Ends::End,
        provoke: |stage, _| enable_load_balancer(stage, false),
        mend: |stage, _| enable_load_balancer(stage, true),
    },
    Fault {
        name: "all members drained",
        codes: &["D703"],
        ends: Ends::End,
        provoke: |stage, _| change_members(stage, PLACES.len(), &json!({"weight": 0})),
        mend: |stage, _| change_members(stage, PLACES.len(), &json!({"weight": 1})),
    },
    Fault {
        name: "one member switched off",
        codes: &["D704"],
        ends: Ends::ArriveHere("the other member serves"),
        provoke: |stage, _| change_members(stage, 1, &json!({"admin_state_up": false})),
        mend: |stage, _| change_members(stage, PLACES.len(), &json!({"admin_state_up": true})),
    },
    Fault {
        name: "all members at another port",
        codes: &["D701"],
        ends: Ends::End,
        provoke: |stage, _| misdirect_members(stage),
        mend: |stage, _| reconcile(stage),
    },
    Fault {
        name: "somebody deletes the listener",
        codes: &["D503"],
        ends: Ends::End,
        provoke: |stage, _| {
            write(stage, Method::DELETE, &format!("listeners/{}", listener(stage)?), &Value::Null).map(drop)
        },
        mend: |stage, _| reconcile(stage),
    },
    Fault {
        name: "a security group that lets in datagrams only",
        codes: &["D702"],
        ends: Ends::End,
        provoke: |stage, _| guard_with(stage, &[datagrams_only(stage)?]),
        mend: |stage, _| {
            guard_with(stage, &[open(stage)?])?;
            remove_group(stage)
        },
    },
    Fault {
        name: "a targetPort that no endpoint has",
        codes: &["D804"],
        ends: Ends::End,
        provoke: |stage, _| {
            let path = format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{SERVICE}-ipv4");
            stage.api()?.patch(&path, &json!({"ports": []})).map(drop)
        },
        mend: |stage, patient| patient.sketch.update(&stage.api()?, &PLACES),
    },
];

/// Of a Service with a floating IP.
pub(super) const FLOATING: &[Fault] = &[
    Fault {
        name: "somebody detaches the floating IP",
        codes: &["D509"],
        ends: Ends::End,
        provoke: |stage, patient| attach(stage, patient, &Value::Null),
        mend: |stage, patient| {
            let port = stage.cloud.user.load_balancer(SERVICE)?["vip_port_id"].clone();
            attach(stage, patient, &port)
        },
    },
    Fault {
        name: "somebody deletes the floating IP",
        codes: &["D509"],
        ends: Ends::End,
        provoke: |stage, patient| {
            let path = floating_ip(stage, patient)?;
            stage.cloud.user.call("network", Method::DELETE, &path, None)?.success().map(drop)
        },
        mend: |stage, patient| {
            reconcile(stage)?;
            patient.follow(stage)
        },
    },
];

/// Gives the Service a floating IP.
pub(super) fn make_public(stage: &mut Stage, patient: &mut Patient) -> Result<()> {
    let annotation = json!({"service.beta.kubernetes.io/openstack-internal-load-balancer": "false"});
    let change = json!({"metadata": {"annotations": annotation}});
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change)?;
    reconcile(stage)?;
    patient.reach = Reach::Floating;
    patient.follow(stage)
}

fn listener(stage: &Stage) -> Result<String> {
    let tree = Tree::of(&stage.cloud.user, SERVICE)?;
    Ok(tree.listeners[0]["id"].as_str().context("no id")?.to_owned())
}

fn enable_load_balancer(stage: &Stage, enabled: bool) -> Result<()> {
    let id = stage.cloud.user.load_balancer(SERVICE)?["id"].as_str().context("no id")?.to_owned();
    let change = json!({"loadbalancer": {"admin_state_up": enabled}});
    write(stage, Method::PUT, &format!("loadbalancers/{id}"), &change).map(drop)
}

/// The members of the pool, and its id.
fn members(stage: &Stage) -> Result<(String, Vec<Value>)> {
    let pool = pool(stage)?["id"].as_str().context("no id")?.to_owned();
    let path = format!("/v2/lbaas/pools/{pool}/members");
    let members = stage.cloud.user.list("load-balancer", &path, "members")?;
    ensure!(members.len() == PLACES.len(), "{members:?}");
    Ok((pool, members))
}

fn change_members(stage: &Stage, count: usize, change: &Value) -> Result<()> {
    let (pool, members) = members(stage)?;
    for id in members.iter().take(count).filter_map(|member| member["id"].as_str()) {
        write(stage, Method::PUT, &format!("pools/{pool}/members/{id}"), &json!({"member": change}))?;
    }
    Ok(())
}

fn misdirect_members(stage: &Stage) -> Result<()> {
    let (pool, members) = members(stage)?;
    let others: Vec<Value> = members
        .iter()
        .map(|one| json!({"address": one["address"], "protocol_port": 9, "subnet_id": one["subnet_id"]}))
        .collect();
    write(stage, Method::PUT, &format!("pools/{pool}/members"), &json!({"members": others})).map(drop)
}

fn datagrams_only(stage: &Stage) -> Result<Value> {
    let cloud = &stage.cloud.user;
    let group = json!({"security_group": {"name": GROUP}});
    let group = cloud.post("network", "/v2.0/security-groups", &group)?.success()?["security_group"].clone();
    let rule = json!({"security_group_rule": {"security_group_id": group["id"], "direction": "ingress",
        "ethertype": "IPv4", "protocol": "udp"}});
    cloud.post("network", "/v2.0/security-group-rules", &rule)?.success()?;
    Ok(group["id"].clone())
}

fn remove_group(stage: &Stage) -> Result<()> {
    let cloud = &stage.cloud.user;
    let path = format!("/v2.0/security-groups?name={GROUP}");
    for group in cloud.list("network", &path, "security_groups")? {
        let path = format!("/v2.0/security-groups/{}", group["id"].as_str().context("no id")?);
        cloud.call("network", Method::DELETE, &path, None)?.success()?;
    }
    Ok(())
}

fn floating_ip(stage: &Stage, patient: &Patient) -> Result<String> {
    let path = format!("/v2.0/floatingips?floating_ip_address={}", patient.address);
    let found = stage.cloud.user.list("network", &path, "floatingips")?;
    let id = found.first().and_then(|one| one["id"].as_str()).context("no floating IP")?;
    Ok(format!("/v2.0/floatingips/{id}"))
}

fn attach(stage: &Stage, patient: &Patient, port: &Value) -> Result<()> {
    let path = floating_ip(stage, patient)?;
    let body = json!({"floatingip": {"port_id": port}});
    stage.cloud.user.put("network", &path, &body)?.success().map(drop)
}
