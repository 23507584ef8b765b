//! `/v2.0/lbaas/healthmonitors`.

use http::StatusCode;
use serde_json::{Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::locks::{begin, lock_tree, mark_pool_and_listeners};
use super::validation::{check_monitor, check_quota};
use super::{Action, create, list_of_kind, listeners, pools, require_owner, schema, views};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::load_balancing::{HealthMonitor, Provisioning};
use crate::world::operation::OperationKind;

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    match Action::of(request, path)? {
        Action::List => {
            let minor = world.load_balancing.api_minor;
            let mine = world
                .load_balancing
                .health_monitors
                .values()
                .filter(|one| caller.owns(&one.entity.project_id));
            let views = mine.map(|one| views::health_monitor(one, minor)).collect();
            list_of_kind(world, request, ObjectKind::HealthMonitor, views)
        }
        Action::Create => create(world, caller, request),
        Action::Get(id) => show(world, caller, id, StatusCode::OK),
        Action::Update(id) => update(world, caller, request, id),
        Action::Delete(id) => delete(world, caller, id),
    }
}

fn show(world: &World, caller: &Caller, id: &str, status: StatusCode) -> Answer {
    let monitor = owned(world, caller, id)?;
    let view = views::health_monitor(monitor, world.load_balancing.api_minor);
    Ok(Reply::json(status, json!({"healthmonitor": view})))
}

fn owned<'a>(world: &'a World, caller: &Caller, id: &str) -> Result<&'a HealthMonitor, OctaviaFault> {
    let monitor = world
        .load_balancing
        .health_monitors
        .get(id)
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::HealthMonitor, id))?;
    require_owner(caller, &monitor.entity.project_id)?;
    Ok(monitor)
}

fn create(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    let minor = world.load_balancing.api_minor;
    let given = schema::read_body(request, ObjectKind::HealthMonitor, minor)?;
    let pool_id = given.get("pool_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let pool = pools::owned(world, caller, &pool_id)?.clone();
    check_monitor(&given, pool.entity.text("protocol"), minor)?;
    check_quota(world, &pool.entity.project_id, ObjectKind::HealthMonitor, 1)?;
    lock_tree(world, &pool.load_balancer_id, (ObjectKind::Pool, &pool_id))?;
    match create::health_monitor(world, &pool_id, &pool.entity.project_id, &given) {
        Ok(id) => {
            mark_pool_and_listeners(world, &pool_id);
            begin(world, OperationKind::HealthMonitorCreate, &pool.load_balancer_id, &id);
            show(world, caller, &id, StatusCode::CREATED)
        }
        Err(fault) => {
            listeners::unlock(world, &pool.load_balancer_id);
            Err(fault.into())
        }
    }
}

fn lock(world: &mut World, pool_id: &str) -> Result<String, OctaviaFault> {
    let pool = world
        .load_balancing
        .pools
        .get(pool_id)
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::Pool, pool_id))?;
    let lb_id = pool.load_balancer_id.clone();
    lock_tree(world, &lb_id, (ObjectKind::Pool, pool_id))?;
    mark_pool_and_listeners(world, pool_id);
    Ok(lb_id)
}

fn update(world: &mut World, caller: &Caller, request: &Request, id: &str) -> Answer {
    let given = schema::read_body(request, ObjectKind::HealthMonitor, world.load_balancing.api_minor)?;
    let pool_id = owned(world, caller, id)?.pool_id.clone();
    let lb_id = lock(world, &pool_id)?;
    let now = world.plain_time();
    if let Some(monitor) = world.load_balancing.health_monitors.get_mut(id) {
        monitor.entity.attributes.extend(given);
        monitor.entity.set_provisioning(Provisioning::PendingUpdate, &now);
    }
    begin(world, OperationKind::HealthMonitorUpdate, &lb_id, id);
    show(world, caller, id, StatusCode::OK)
}

fn delete(world: &mut World, caller: &Caller, id: &str) -> Answer {
    let pool_id = owned(world, caller, id)?.pool_id.clone();
    let lb_id = lock(world, &pool_id)?;
    let now = world.plain_time();
    if let Some(monitor) = world.load_balancing.health_monitors.get_mut(id) {
        monitor.entity.set_provisioning(Provisioning::PendingDelete, &now);
    }
    begin(world, OperationKind::HealthMonitorDelete, &lb_id, id);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
