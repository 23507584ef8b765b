//! Faults inside the cloud, through the fault file of Octavia's drivers and through quotas and tokens.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::CURRENT;
use super::steps::{self, Reach, clients_inside, green, published_through};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::objects::{ServiceSketch, delete_service};
use crate::kubernetes::proxy::Mode;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::faults::Faults;
use crate::openstack::tree::Tree;
use crate::programs::kept;
use crate::stage::Stage;

const SERVICE: &str = "troubled";
const SCENARIO: &str = "8 faults";
const PLACES: [NodePlace; 2] = [NODES[0], NODES[1]];

/// The whole scenario on the present cluster.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    stage.start_controller()?;
    stage.check(SCENARIO, "Service deleted while its load balancer is PENDING", deleted_while_pending);
    stage.check(SCENARIO, "load balancer in ERROR after create", error_after_create);
    stage.check(SCENARIO, "a member batch fails inside Octavia", failed_batch);
    stage.check(SCENARIO, "token revoked", revoked_token);
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[SERVICE]));
    stage.end_proxy(NODES[2])?;
    stage.api()?.delete(&format!("/api/v1/nodes/{}", NODES[2].name()))?;
    stage.check(SCENARIO, "quota met", quota_met);
    stage.check(SCENARIO, "no request of the controller was forbidden", nothing_forbidden);
    Ok(())
}

fn create(stage: &Stage) -> Result<()> {
    ServiceSketch::proxy(SERVICE, "v1", false).create(&stage.api()?, &PLACES)
}

fn works(stage: &Stage) -> Result<String> {
    let address = published_through(&stage.api()?, SERVICE)?;
    green(&address, &clients_inside(stage, Reach::Floating))
}

fn deleted_while_pending(stage: &mut Stage) -> Result<String> {
    let hold = Faults::inject(&stage.cloud.folders, &[json!({"operation": "compute_build", "hold": true})])?;
    create(stage)?;
    soon("the load balancer is PENDING_CREATE", || {
        let balancer = stage.cloud.user.load_balancer(SERVICE)?;
        ensure!(balancer["provisioning_status"] == "PENDING_CREATE", "{}", balancer["provisioning_status"]);
        Ok(())
    })?;
    let api = stage.api()?;
    delete_service(&api, SERVICE)?;
    let waiting = api.service(SERVICE)?;
    ensure!(waiting["metadata"]["deletionTimestamp"].is_string(), "the finalizer does not hold the Service");
    drop(hold);
    soon("the Service is gone", || api.gone(&Kubernetes::service_path(SERVICE)))?;
    steps::nothing_left(stage)
}

fn error_after_create(stage: &mut Stage) -> Result<String> {
    let rules = [json!({"operation": "compute_build", "raise": "no capacity", "times": 1})];
    let fault = Faults::inject(&stage.cloud.folders, &rules)?;
    create(stage)?;
    let seen = works(stage)?;
    drop(fault);
    Ok(format!("healed by itself: {seen}"))
}

fn failed_batch(stage: &mut Stage) -> Result<String> {
    let rules = [json!({"operation": "upload_config", "raise": "agent is busy", "times": 1})];
    let fault = Faults::inject(&stage.cloud.folders, &rules)?;
    stage.join(NODES[2], CURRENT, Mode::Iptables)?;
    soon("all members are in order", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        ensure!(tree.addresses().len() == NODES.len(), "members {:?}", tree.addresses());
        tree.settled()
    })?;
    drop(fault);
    Ok(format!("the batch was sent again: {}", works(stage)?))
}

/// All tokens of the user become invalid, and services forget what they had validated.
fn revoked_token(stage: &mut Stage) -> Result<String> {
    let admin = OpenStack::log_in("admin")?;
    let users = admin.list("identity", "/users?name=demo", "users")?;
    let user = users.first().and_then(|user| user["id"].as_str()).context("there is no user demo")?;
    for password in ["another", "e2e"] {
        let body = json!({"user": {"password": password}});
        admin.call("identity", reqwest::Method::PATCH, &format!("/users/{user}"), Some(&body))?.success()?;
    }
    for service in ["octavia", "neutron"] {
        stage.cloud.services.stop(service)?;
        stage.cloud.services.resume(&stage.cloud.folders, service)?;
    }
    let old = stage.cloud.user.call("network", reqwest::Method::GET, "/v2.0/networks", None)?;
    ensure!(old.status == 401, "the old token still works: {}", old.status);
    stage.cloud.user = OpenStack::log_in("demo")?;
    let change =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/timeout-client-data": "61000"}}});
    stage.api()?.patch(&Kubernetes::service_path(SERVICE), &change)?;
    soon("the change reaches Octavia", || {
        let tree = Tree::of(&stage.cloud.user, SERVICE)?;
        let timeout = tree.listeners.first().map(|listener| listener["timeout_client_data"].clone());
        ensure!(timeout == Some(json!(61000)), "{timeout:?}");
        tree.settled()
    })?;
    Ok(format!("logged in again: {}", works(stage)?))
}

fn quota_met(stage: &mut Stage) -> Result<String> {
    let admin = OpenStack::log_in("admin")?;
    let projects = admin.list("identity", "/projects?name=demo", "projects")?;
    let project =
        projects.first().and_then(|project| project["id"].as_str()).context("there is no project demo")?;
    let path = format!("/v2/lbaas/quotas/{project}");
    admin.put("load-balancer", &path, &json!({"quota": {"load_balancer": 0}}))?.success()?;
    create(stage)?;
    let api = stage.api()?;
    let note = soon("an event names the quota", || {
        let events = api.events(SERVICE)?;
        let found = events.iter().find(|(_, note)| note.to_lowercase().contains("quota"));
        found.map(|(reason, note)| format!("{reason}: {note}")).with_context(|| format!("{events:?}"))
    });
    admin.delete("load-balancer", &path)?.success()?;
    let note = note?;
    // The next try is some time away; a change of the Service makes it now.
    let change = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/connection-limit": "900"}}});
    api.patch(&Kubernetes::service_path(SERVICE), &change)?;
    let seen = works(stage)?;
    let empty = steps::release(stage, &[SERVICE])?;
    Ok(format!("event {note}; after the quota was raised: {seen}; {empty}"))
}

/// The rights of the chart are enough: the controller counts no 403 of the API server.
fn nothing_forbidden(stage: &mut Stage) -> Result<String> {
    kept::ran_through()?;
    let controller = stage.cluster()?.controller.as_ref().context("no controller runs")?;
    let counted = controller.metrics("rest_client_requests_total{")?;
    let refused = counted.iter().find(|line| line.contains("code=\"403\""));
    ensure!(refused.is_none(), "{}", refused.map_or("", String::as_str));
    ensure!(!counted.is_empty(), "no request is counted");
    Ok(format!("{} kinds of answers, none of them 403", counted.len()))
}
