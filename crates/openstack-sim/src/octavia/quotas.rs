//! `/v2.0/lbaas/quotas`: limits for each project, -1 without one.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::schema::{parse, root_object};
use super::{method_not_allowed, not_found, require_admin, require_owner};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;

const NAMES: [&str; 7] =
    ["load_balancer", "listener", "member", "pool", "health_monitor", "l7policy", "l7rule"];

/// Two names have an older spelling, which is taken and shown as well.
fn current_name(name: &str) -> Option<&'static str> {
    let name = match name {
        "loadbalancer" => "load_balancer",
        "healthmonitor" => "health_monitor",
        other => other,
    };
    NAMES.into_iter().find(|known| *known == name)
}

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    match (request.method.clone(), path) {
        (Method::GET, ["defaults"]) => {
            require_admin(caller)?;
            Ok(Reply::ok(json!({"quota": limits(&BTreeMap::new())})))
        }
        (Method::GET, [project]) => {
            require_owner(caller, project)?;
            Ok(Reply::ok(show(world, project)))
        }
        (Method::PUT, [project]) => {
            require_admin(caller)?;
            let changes = read(request)?;
            world.load_balancing.quotas.entry((*project).to_owned()).or_default().extend(changes);
            Ok(Reply::json(StatusCode::ACCEPTED, show(world, project)))
        }
        (Method::DELETE, [project]) => {
            require_admin(caller)?;
            world.load_balancing.quotas.remove(*project);
            Ok(Reply::empty(StatusCode::ACCEPTED))
        }
        (_, [_]) => Err(method_not_allowed()),
        _ => Err(not_found()),
    }
}

fn limits(set: &BTreeMap<String, i64>) -> Map<String, Value> {
    let limit = |name: &str| json!(set.get(name).copied().unwrap_or(-1));
    let mut view: Map<String, Value> = NAMES.iter().map(|name| ((*name).to_owned(), limit(name))).collect();
    view.insert("loadbalancer".to_owned(), limit("load_balancer"));
    view.insert("healthmonitor".to_owned(), limit("health_monitor"));
    view
}

fn show(world: &World, project: &str) -> Value {
    let mut view = limits(&world.load_balancing.quotas.get(project).cloned().unwrap_or_default());
    view.insert("project_id".to_owned(), json!(project));
    view.insert("tenant_id".to_owned(), json!(project));
    json!({"quota": view})
}

fn read(request: &Request) -> Result<BTreeMap<String, i64>, OctaviaFault> {
    let body = parse(request)?;
    let mut changes = BTreeMap::new();
    for (name, value) in root_object(&body, "quotas", "quota")?.as_object().into_iter().flatten() {
        let known = current_name(name).ok_or_else(|| OctaviaFault::UnknownAttribute {
            argument: "quotas.quota".to_owned(),
            attribute: name.clone(),
        })?;
        changes.insert(known.to_owned(), value.as_i64().unwrap_or(-1));
    }
    Ok(changes)
}
