//! `/v2.0/lbaas/listeners`.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::load_balancers;
use super::locks::{begin, lock_tree};
use super::validation::{self, check_protocols, check_quota};
use super::{Action, create, list_of_kind, listing, ovn, require_owner, schema, views};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::load_balancing::{Listener, Provisioning};
use crate::world::operation::OperationKind;

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    if let (Method::GET, [id, "stats"]) = (request.method.clone(), path) {
        owned(world, caller, id)?;
        return Ok(Reply::ok(json!({"stats": {
            "bytes_in": 0, "bytes_out": 0, "active_connections": 0, "total_connections": 0, "request_errors": 0,
        }})));
    }
    match Action::of(request, path)? {
        Action::List => {
            let minor = world.load_balancing.api_minor;
            let mine = world.load_balancing.listeners.values().filter(|one| {
                caller.owns(&one.entity.project_id)
                    && listing::may_match(request, &one.entity, Some(&one.load_balancer_id))
            });
            let views = mine.map(|one| views::listener(one, minor)).collect();
            list_of_kind(world, request, ObjectKind::Listener, views)
        }
        Action::Create => create(world, caller, request),
        Action::Get(id) => show(world, caller, id, StatusCode::OK),
        Action::Update(id) => update(world, caller, request, id),
        Action::Delete(id) => delete(world, caller, id),
    }
}

fn show(world: &World, caller: &Caller, id: &str, status: StatusCode) -> Answer {
    let listener = owned(world, caller, id)?;
    Ok(Reply::json(status, json!({"listener": views::listener(listener, world.load_balancing.api_minor)})))
}

/// A listener that the caller may see.
pub(super) fn owned<'a>(world: &'a World, caller: &Caller, id: &str) -> Result<&'a Listener, OctaviaFault> {
    let listener = world
        .load_balancing
        .listeners
        .get(id)
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::Listener, id))?;
    require_owner(caller, &listener.entity.project_id)?;
    Ok(listener)
}

fn create(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    let given = schema::read_body(request, ObjectKind::Listener, world.load_balancing.api_minor)?;
    let lb_id = given.get("loadbalancer_id").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
        OctaviaFault::InvalidInput {
            attribute: "loadbalancer_id".to_owned(),
            value: Value::Null,
            reason: "Mandatory field missing.".to_owned(),
        }
    })?;
    let project_id = load_balancers::owned(world, caller, &lb_id)?.entity.project_id.clone();
    check_quota(world, &project_id, ObjectKind::Listener, 1)?;
    let protocol = given.get("protocol").and_then(Value::as_str).unwrap_or_default().to_owned();
    let pool_id = default_pool(world, &lb_id, &given, &protocol)?;
    lock_tree(world, &lb_id, (ObjectKind::LoadBalancer, &lb_id))?;
    match create::listener(world, &lb_id, &given, pool_id) {
        Ok(id) => {
            begin(world, OperationKind::ListenerCreate, &lb_id, &id);
            show(world, caller, &id, StatusCode::CREATED)
        }
        Err(fault) => {
            unlock(world, &lb_id);
            Err(fault.into())
        }
    }
}

/// Takes the lock back when the request is refused after it was taken.
pub(super) fn unlock(world: &mut World, load_balancer_id: &str) {
    if let Some(lb) = world.load_balancing.load_balancers.get_mut(load_balancer_id) {
        lb.entity.provisioning = Provisioning::Active;
    }
}

/// The default pool that a body names: it must be one of the same load balancer and go with the protocol.
fn default_pool(
    world: &World,
    lb_id: &str,
    given: &Map<String, Value>,
    protocol: &str,
) -> Result<Option<String>, OctaviaFault> {
    let Some(pool_id) = given.get("default_pool_id").and_then(Value::as_str) else { return Ok(None) };
    let pool = world
        .load_balancing
        .pools
        .get(pool_id)
        .filter(|pool| pool.load_balancer_id == lb_id)
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::Pool, pool_id))?;
    check_protocols(protocol, pool.entity.text("protocol"))?;
    Ok(Some(pool_id.to_owned()))
}

fn update(world: &mut World, caller: &Caller, request: &Request, id: &str) -> Answer {
    let mut given = schema::read_body(request, ObjectKind::Listener, world.load_balancing.api_minor)?;
    let listener = owned(world, caller, id)?.clone();
    let lb_id = listener.load_balancer_id.clone();
    let protocol = listener.entity.text("protocol");
    check_update(world, &listener, &given)?;
    ovn::check(world, &lb_id, ObjectKind::Listener, &given)?;
    let names_pool = given.contains_key("default_pool_id");
    let pool_id = default_pool(world, &lb_id, &given, protocol)?;
    lock_tree(world, &lb_id, (ObjectKind::LoadBalancer, &lb_id))?;
    given.remove("default_pool_id");
    let now = world.plain_time();
    if let Some(listener) = world.load_balancing.listeners.get_mut(id) {
        listener.entity.attributes.extend(given);
        if names_pool {
            listener.default_pool_id = pool_id;
        }
        listener.entity.set_provisioning(Provisioning::PendingUpdate, &now);
    }
    begin(world, OperationKind::ListenerUpdate, &lb_id, id);
    show(world, caller, id, StatusCode::OK)
}

fn check_update(world: &World, listener: &Listener, given: &Map<String, Value>) -> Result<(), OctaviaFault> {
    let protocol = listener.entity.text("protocol");
    if let Some(headers) = given.get("insert_headers") {
        validation::check_insert_headers(protocol, headers)?;
    }
    if protocol == "TERMINATED_HTTPS" {
        validation::check_certificates(world, &validation::certificate_references(given))?;
    }
    match (given.get("allowed_cidrs"), world.load_balancing.load_balancers.get(&listener.load_balancer_id)) {
        (Some(cidrs), Some(lb)) => validation::check_allowed_cidrs(cidrs, lb, world.load_balancing.release),
        _ => Ok(()),
    }
}

fn delete(world: &mut World, caller: &Caller, id: &str) -> Answer {
    let lb_id = owned(world, caller, id)?.load_balancer_id.clone();
    lock_tree(world, &lb_id, (ObjectKind::LoadBalancer, &lb_id))?;
    let now = world.plain_time();
    if let Some(listener) = world.load_balancing.listeners.get_mut(id) {
        listener.entity.set_provisioning(Provisioning::PendingDelete, &now);
    }
    begin(world, OperationKind::ListenerDelete, &lb_id, id);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
