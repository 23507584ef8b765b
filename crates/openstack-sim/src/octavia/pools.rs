//! `/v2.0/lbaas/pools`.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::locks::{begin, lock_tree, mark_listeners, mark_pool_and_listeners};
use super::validation::{check_protocols, check_quota, check_session_persistence};
use super::{
    Action, create, list_of_kind, listeners, listing, load_balancers, ovn, require_owner, schema, views,
    worker,
};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::load_balancing::{Pool, Provisioning};
use crate::world::operation::{OperationKind, Outcome};

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    match Action::of(request, path)? {
        Action::List => {
            let state = &world.load_balancing;
            let mine = state.pools.values().filter(|one| {
                caller.owns(&one.entity.project_id)
                    && listing::may_match(request, &one.entity, Some(&one.load_balancer_id))
            });
            let views = mine.map(|one| views::pool(state, one)).collect();
            list_of_kind(world, request, ObjectKind::Pool, views)
        }
        Action::Create => create(world, caller, request),
        Action::Get(id) => show(world, caller, id, StatusCode::OK),
        Action::Update(id) => update(world, caller, request, id),
        Action::Delete(id) => delete(world, caller, id),
    }
}

fn show(world: &World, caller: &Caller, id: &str, status: StatusCode) -> Answer {
    let pool = owned(world, caller, id)?;
    Ok(Reply::json(status, json!({"pool": views::pool(&world.load_balancing, pool)})))
}

/// A pool that the caller may see.
pub(super) fn owned<'a>(world: &'a World, caller: &Caller, id: &str) -> Result<&'a Pool, OctaviaFault> {
    let pool =
        world.load_balancing.pools.get(id).ok_or_else(|| OctaviaFault::not_found(ObjectKind::Pool, id))?;
    require_owner(caller, &pool.entity.project_id)?;
    Ok(pool)
}

/// Where a new pool belongs: a load balancer, and perhaps a listener of it.
struct Place {
    load_balancer_id: String,
    project_id: String,
    listener_id: Option<String>,
}

fn place(world: &World, caller: &Caller, given: &Map<String, Value>) -> Result<Place, OctaviaFault> {
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let listener_id = text("listener_id");
    let listener = listener_id.as_deref().map(|id| listeners::owned(world, caller, id)).transpose()?;
    let lb_id =
        text("loadbalancer_id").or_else(|| listener.map(|listener| listener.load_balancer_id.clone()));
    let load_balancer_id = lb_id.ok_or_else(|| {
        OctaviaFault::validation("Must provide at least one of: loadbalancer_id, listener_id")
    })?;
    let lb = load_balancers::owned(world, caller, &load_balancer_id)?;
    Ok(Place { project_id: lb.entity.project_id.clone(), load_balancer_id, listener_id })
}

fn create(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    let given = schema::read_body(request, ObjectKind::Pool, world.load_balancing.api_minor)?;
    let place = place(world, caller, &given)?;
    let protocol = given.get("protocol").and_then(Value::as_str).unwrap_or_default();
    if let Some(listener) = place.listener_id.as_ref().and_then(|id| world.load_balancing.listeners.get(id)) {
        check_protocols(listener.entity.text("protocol"), protocol)?;
    }
    if let Some(persistence) = given.get("session_persistence") {
        check_session_persistence(protocol, persistence)?;
    }
    check_quota(world, &place.project_id, ObjectKind::Pool, 1)?;
    lock_tree(world, &place.load_balancer_id, (ObjectKind::LoadBalancer, &place.load_balancer_id))?;
    if let Err(fault) = check_after_lock(world, &place, &given) {
        listeners::unlock(world, &place.load_balancer_id);
        return Err(fault.into());
    }
    let id = create::pool(world, &place.load_balancer_id, &place.project_id, &given);
    if let Some(listener) =
        place.listener_id.as_ref().and_then(|id| world.load_balancing.listeners.get_mut(id))
    {
        listener.default_pool_id = Some(id.clone());
    }
    mark_listeners(world, &id);
    begin(world, OperationKind::PoolCreate, &place.load_balancer_id, &id);
    show(world, caller, &id, StatusCode::CREATED)
}

fn check_after_lock(world: &World, place: &Place, given: &Map<String, Value>) -> Result<(), OctaviaFault> {
    let listener = place.listener_id.as_ref().and_then(|id| world.load_balancing.listeners.get(id));
    if listener.is_some_and(|listener| listener.default_pool_id.is_some()) {
        return Err(OctaviaFault::Conflict("This listener already has a default pool".to_owned()));
    }
    ovn::check(world, &place.load_balancer_id, ObjectKind::Pool, given)?;
    // A documented-looking body that the real service stumbles over: children can only be nested in a load balancer's POST.
    let nested = given.get("members").and_then(Value::as_array).is_some_and(|members| !members.is_empty())
        || given.get("healthmonitor").is_some_and(Value::is_object);
    if nested {
        return Err(OctaviaFault::Internal("'dict' object has no attribute '_sa_instance_state'".to_owned()));
    }
    Ok(())
}

fn update(world: &mut World, caller: &Caller, request: &Request, id: &str) -> Answer {
    let given = schema::read_body(request, ObjectKind::Pool, world.load_balancing.api_minor)?;
    let pool = owned(world, caller, id)?;
    let lb_id = pool.load_balancer_id.clone();
    if let Some(persistence) = given.get("session_persistence") {
        check_session_persistence(pool.entity.text("protocol"), persistence)?;
    }
    ovn::check(world, &lb_id, ObjectKind::Pool, &given)?;
    lock_tree(world, &lb_id, (ObjectKind::LoadBalancer, &lb_id))?;
    let names: Vec<String> = given.keys().cloned().collect();
    if let Some(pool) = world.load_balancing.pools.get_mut(id) {
        pool.entity.attributes.extend(given);
    }
    mark_pool_and_listeners(world, id);
    match ovn::pool_update(world, &lb_id, &names) {
        ovn::PoolUpdate::Whole => begin(world, OperationKind::PoolUpdate, &lb_id, id),
        ovn::PoolUpdate::WithoutListeners => {
            worker::settle(world, ObjectKind::Pool, id, Outcome::Done);
            begin(world, OperationKind::LoadBalancerUpdate, &lb_id, &lb_id);
        }
        ovn::PoolUpdate::Failed => {
            worker::settle(world, ObjectKind::Pool, id, Outcome::Failed);
            worker::settle_listeners_of(world, id);
            begin(world, OperationKind::LoadBalancerUpdate, &lb_id, &lb_id);
        }
    }
    show(world, caller, id, StatusCode::OK)
}

fn delete(world: &mut World, caller: &Caller, id: &str) -> Answer {
    let lb_id = owned(world, caller, id)?.load_balancer_id.clone();
    lock_tree(world, &lb_id, (ObjectKind::LoadBalancer, &lb_id))?;
    mark_listeners(world, id);
    let now = world.plain_time();
    if let Some(pool) = world.load_balancing.pools.get_mut(id) {
        pool.entity.set_provisioning(Provisioning::PendingDelete, &now);
    }
    begin(world, OperationKind::PoolDelete, &lb_id, id);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
