//! The whole tree in one POST: pools with monitors and members first, then the listeners that refer to them by name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::validation::{check_address, check_protocols, check_quota, check_session_persistence};
use super::{create, ovn};
use crate::world::World;

/// Adds what was nested in the POST of a load balancer.
///
/// # Errors
/// The first rule that is broken. The caller takes back what was added; the VIP port stays behind, as with the real service.
pub(crate) fn grow(
    world: &mut World,
    load_balancer_id: &str,
    project_id: &str,
    given: &Map<String, Value>,
) -> Result<(), OctaviaFault> {
    let (pools, listeners) = separate(given)?;
    check_quota(world, project_id, ObjectKind::Pool, pools.len())?;
    let mut pool_ids = BTreeMap::new();
    for pool in &pools {
        let id = grow_pool(world, load_balancer_id, project_id, pool)?;
        pool_ids.insert(name_of(pool).to_owned(), id);
    }
    check_quota(world, project_id, ObjectKind::Listener, listeners.len())?;
    for listener in &listeners {
        grow_listener(world, load_balancer_id, listener, &pool_ids)?;
    }
    Ok(())
}

type Object = Map<String, Value>;

/// All pools by themselves, and listeners that have only the name of theirs.
fn separate(given: &Object) -> Result<(Vec<Object>, Vec<Object>), OctaviaFault> {
    let mut pools = objects(given.get("pools"));
    let mut listeners = objects(given.get("listeners"));
    let mut references = Vec::new();
    for listener in &mut listeners {
        let Some(Value::Object(pool)) = listener.get("default_pool").cloned() else { continue };
        let name = name_of(&pool).to_owned();
        if name.is_empty() {
            return Err(unnamed_pool());
        }
        if pool.len() > 1 {
            pools.push(pool);
        } else {
            references.push(name.clone());
        }
        listener.insert("default_pool".to_owned(), json!(name));
    }
    check_pool_names(&pools, &references)?;
    Ok((pools, listeners))
}

fn check_pool_names(pools: &[Object], references: &[String]) -> Result<(), OctaviaFault> {
    let names: BTreeSet<&str> = pools.iter().map(name_of).collect();
    if names.contains("") {
        return Err(unnamed_pool());
    }
    if names.len() < pools.len() {
        return Err(OctaviaFault::validation(
            "Pool names must be unique when creating a fully populated loadbalancer.",
        ));
    }
    match references.iter().find(|name| !names.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(OctaviaFault::validation(format!(
            "Pool '{name}' was referenced but no full definition was found."
        ))),
    }
}

fn unnamed_pool() -> OctaviaFault {
    OctaviaFault::validation("Pools must be named when creating a fully populated loadbalancer.")
}

fn name_of(object: &Object) -> &str {
    object.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn objects(list: Option<&Value>) -> Vec<Object> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object).cloned().collect()
}

fn grow_pool(
    world: &mut World,
    load_balancer_id: &str,
    project_id: &str,
    pool: &Object,
) -> Result<String, OctaviaFault> {
    let protocol = pool.get("protocol").and_then(Value::as_str).unwrap_or_default();
    if let Some(persistence) = pool.get("session_persistence") {
        check_session_persistence(protocol, persistence)?;
    }
    ovn::check(world, load_balancer_id, ObjectKind::Pool, pool)?;
    let id = create::pool(world, load_balancer_id, project_id, pool);
    if let Some(Value::Object(monitor)) = pool.get("healthmonitor") {
        check_quota(world, project_id, ObjectKind::HealthMonitor, 1)?;
        create::health_monitor(world, &id, project_id, monitor)?;
    }
    let members = objects(pool.get("members"));
    check_quota(world, project_id, ObjectKind::Member, members.len())?;
    for member in &members {
        check_address(world, member)?;
        create::member(world, &id, project_id, member)?;
    }
    Ok(id)
}

fn grow_listener(
    world: &mut World,
    load_balancer_id: &str,
    listener: &Object,
    pool_ids: &BTreeMap<String, String>,
) -> Result<(), OctaviaFault> {
    let pool_id =
        listener.get("default_pool").and_then(Value::as_str).and_then(|name| pool_ids.get(name)).cloned();
    if let Some(pool) = pool_id.as_ref().and_then(|id| world.load_balancing.pools.get(id)) {
        let protocol = listener.get("protocol").and_then(Value::as_str).unwrap_or_default();
        check_protocols(protocol, pool.entity.text("protocol"))?;
    }
    create::listener(world, load_balancer_id, listener, pool_id).map(|_| ())
}
