//! `/v2.0/lbaas/loadbalancers`.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::locks::{begin, lock_load_balancer};
use super::validation::check_quota;
use super::views::{self, Depth};
use super::{
    Action, create, list_of_kind, listing, method_not_allowed, require_admin, require_owner, schema, tree,
    vip,
};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::load_balancing::{LoadBalancer, Provisioning};
use crate::world::operation::OperationKind;

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    match (request.method.clone(), path) {
        (Method::GET, [id, "status" | "statuses"]) => {
            let lb = owned(world, caller, id)?;
            Ok(Reply::ok(views::status_tree(&world.load_balancing, lb)))
        }
        (Method::GET, [id, "stats"]) => {
            let total = owned(world, caller, id)?.connections;
            Ok(Reply::ok(json!({"stats": {
                "bytes_in": 0, "bytes_out": 0, "active_connections": 0, "total_connections": total, "request_errors": 0,
            }})))
        }
        (Method::PUT, [id, "failover"]) => failover(world, caller, id),
        (_, [_, "status" | "statuses" | "stats" | "failover"]) => Err(method_not_allowed()),
        _ => match Action::of(request, path)? {
            Action::List => list(world, caller, request),
            Action::Create => create(world, caller, request),
            Action::Get(id) => {
                let lb = owned(world, caller, id)?;
                Ok(show(world, lb, StatusCode::OK))
            }
            Action::Update(id) => update(world, caller, request, id),
            Action::Delete(id) => delete(world, caller, request, id),
        },
    }
}

fn show(world: &World, lb: &LoadBalancer, status: StatusCode) -> Reply {
    Reply::json(status, json!({"loadbalancer": views::load_balancer(&world.load_balancing, lb, Depth::Ids)}))
}

/// A load balancer that the caller may see.
pub(super) fn owned<'a>(
    world: &'a World,
    caller: &Caller,
    id: &str,
) -> Result<&'a LoadBalancer, OctaviaFault> {
    let lb = world
        .load_balancing
        .load_balancers
        .get(id)
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::LoadBalancer, id))?;
    require_owner(caller, &lb.entity.project_id)?;
    Ok(lb)
}

fn list(world: &World, caller: &Caller, request: &Request) -> Answer {
    let state = &world.load_balancing;
    let is_wanted = |lb: &&LoadBalancer| {
        caller.owns(&lb.entity.project_id) && listing::may_match(request, &lb.entity, None)
    };
    let views = views::load_balancers(state, state.load_balancers.values().filter(is_wanted));
    list_of_kind(world, request, ObjectKind::LoadBalancer, views)
}

fn create(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    let mut given = schema::read_body(request, ObjectKind::LoadBalancer, world.load_balancing.api_minor)?;
    if let Some(default) = &world.load_balancing.default_provider
        && given.get("provider").is_none_or(Value::is_null)
    {
        given.insert("provider".to_owned(), json!(default));
    }
    let project_id = project_of(caller, &given)?;
    let plan = vip::plan(world, caller, &given)?;
    check_deployment(world, &given)?;
    check_quota(world, &project_id, ObjectKind::LoadBalancer, 1)?;

    let entity = create::entity(world, ObjectKind::LoadBalancer, &project_id, &given);
    let id = entity.id.clone();
    let allocated = vip::allocate(world, &entity, plan)?;
    let lb = LoadBalancer {
        entity,
        vip: allocated.vip,
        additional_vips: allocated.additional,
        owns_vip_port: allocated.owns_port,
        built: false,
        security_group_id: None,
        connections: 0,
        hides_port: false,
    };
    world.load_balancing.load_balancers.insert(id.clone(), lb.clone());
    if let Err(fault) = tree::grow(world, &id, &project_id, &given) {
        // The real service rolls its own database back and forgets the port that it made in Neutron.
        world.load_balancing.remove_tree(&id);
        return Err(fault.into());
    }
    begin(world, OperationKind::LoadBalancerCreate, &id, &id);
    let view = views::load_balancer(&world.load_balancing, &lb, Depth::Tree);
    Ok(Reply::created(json!({"loadbalancer": view})))
}

/// Only administrators make load balancers for others.
fn project_of(caller: &Caller, given: &Map<String, Value>) -> Result<String, OctaviaFault> {
    let wanted = ["project_id", "tenant_id"].iter().find_map(|name| given.get(*name).and_then(Value::as_str));
    match wanted {
        None => Ok(caller.project_id.clone()),
        Some(project) => require_owner(caller, project).map(|()| project.to_owned()),
    }
}

/// Octavia keeps a disabled flavor with the nil id in the place of deleted ones.
fn check_flavor(id: &str, found: Option<&Value>) -> Result<(), OctaviaFault> {
    match found {
        Some(flavor) if flavor["enabled"] == json!(true) => Ok(()),
        None if id != uuid::Uuid::nil().to_string() => Err(OctaviaFault::validation("Invalid flavor_id.")),
        Some(_) | None => {
            let text = format!("The selected flavor is not allowed in this deployment: {id}");
            Err(OctaviaFault::BadRequest(text))
        }
    }
}

fn check_deployment(world: &World, given: &Map<String, Value>) -> Result<(), OctaviaFault> {
    let state = &world.load_balancing;
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    if let Some(flavor) = text("flavor_id") {
        check_flavor(flavor, state.flavors.get(flavor))?;
    }
    if let Some(zone) = text("availability_zone")
        && !state.availability_zones.contains_key(zone)
    {
        return Err(OctaviaFault::validation("Invalid availability zone."));
    }
    match text("provider") {
        Some(provider) if state.providers.iter().all(|(name, _)| name != provider) => {
            Err(OctaviaFault::BadRequest(format!("Provider '{provider}' is not enabled.")))
        }
        _ => Ok(()),
    }
}

fn update(world: &mut World, caller: &Caller, request: &Request, id: &str) -> Answer {
    let given = schema::read_body(request, ObjectKind::LoadBalancer, world.load_balancing.api_minor)?;
    owned(world, caller, id)?;
    lock_load_balancer(world, id, Provisioning::PendingUpdate, &[Provisioning::Active])?;
    if let Some(lb) = world.load_balancing.load_balancers.get_mut(id) {
        lb.entity.attributes.extend(given);
    }
    begin(world, OperationKind::LoadBalancerUpdate, id, id);
    let lb = owned(world, caller, id)?;
    Ok(show(world, lb, StatusCode::OK))
}

fn delete(world: &mut World, caller: &Caller, request: &Request, id: &str) -> Answer {
    owned(world, caller, id)?;
    let cascade = request.parameter("cascade").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let state = &world.load_balancing;
    let has_children = !state.listeners_of(id).is_empty() || !state.pools_of(id).is_empty();
    if has_children && !cascade {
        let text = format!("Cannot delete Load Balancer {id} - it has children");
        return Err(OctaviaFault::validation(text).into());
    }
    let allowed = [Provisioning::Active, Provisioning::Error];
    lock_load_balancer(world, id, Provisioning::PendingDelete, &allowed)?;
    begin(world, OperationKind::LoadBalancerDelete, id, id);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

fn failover(world: &mut World, caller: &Caller, id: &str) -> Answer {
    owned(world, caller, id)?;
    require_admin(caller)?;
    let allowed = [Provisioning::Active, Provisioning::Error];
    lock_load_balancer(world, id, Provisioning::PendingUpdate, &allowed)?;
    begin(world, OperationKind::LoadBalancerFailover, id, id);
    Ok(Reply::empty(StatusCode::ACCEPTED))
}
