//! `/v2.0/quotas`: limits for each project; a limit below the use needs force.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use super::resource::usage;
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;

/// The limits that a project has when nobody sets others.
const DEFAULTS: [(&str, i64); 11] = [
    ("network", -1),
    ("subnet", -1),
    ("subnetpool", -1),
    ("port", -1),
    ("router_route", 30),
    ("router", -1),
    ("floatingip", -1),
    ("rbac_policy", 10),
    ("security_group", -1),
    ("security_group_rule", -1),
    ("trunk", -1),
];

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    match (request.method.clone(), path) {
        (Method::GET, [project] | [project, "default"]) => {
            if !caller.owns(project) {
                return Err(NeutronFault::policy("rule:get_quota").into());
            }
            let set = if path.len() == 1 { world.network.quotas.get(*project) } else { None };
            Ok(Reply::ok(json!({"quota": limits(world, set)})))
        }
        (Method::PUT, [project]) => {
            require_admin(caller, "update")?;
            let changes = read(world, request, project)?;
            world.network.quotas.entry((*project).to_owned()).or_default().extend(changes);
            Ok(Reply::ok(json!({"quota": limits(world, world.network.quotas.get(*project))})))
        }
        (Method::DELETE, [project]) => {
            require_admin(caller, "delete")?;
            world.network.quotas.remove(*project);
            Ok(Reply::empty(StatusCode::NO_CONTENT))
        }
        _ => Err(NeutronFault::no_such_path().into()),
    }
}

fn require_admin(caller: &Caller, action: &str) -> Result<(), NeutronFault> {
    if caller.is_admin() { Ok(()) } else { Err(NeutronFault::policy(&format!("rule:{action}_quota"))) }
}

fn limits(world: &World, set: Option<&BTreeMap<String, i64>>) -> Map<String, Value> {
    DEFAULTS
        .iter()
        .filter(|(name, _)| *name != "trunk" || ResourceKind::Trunk.is_served(world))
        .map(|(name, default)| {
            let limit = set.and_then(|set| set.get(*name)).copied().unwrap_or(*default);
            ((*name).to_owned(), json!(limit))
        })
        .collect()
}

fn read(world: &World, request: &Request, project: &str) -> Result<BTreeMap<String, i64>, NeutronFault> {
    let body = request.json().unwrap_or_default();
    let given = body["quota"].as_object().cloned().unwrap_or_default();
    let forced = given.get("force") == Some(&json!(true));
    let mut changes = BTreeMap::new();
    for (name, value) in given.into_iter().filter(|(name, _)| name != "force" && name != "check_limit") {
        let limit = value
            .as_i64()
            .ok_or_else(|| NeutronFault::invalid_input(&name, &format!("'{value}' is not an integer.")))?;
        let kind = ResourceKind::ALL.into_iter().find(|kind| kind.root() == name);
        let used = kind.map_or(0, |kind| usage(world, project, kind));
        if !forced && usize::try_from(limit).is_ok_and(|limit| limit < used) {
            let message = format!("Quota limit exceeded for resource {name}: {used} in use, {limit} wanted.");
            return Err(NeutronFault::bad_request("QuotaExceeded", message));
        }
        changes.insert(name, limit);
    }
    Ok(changes)
}
