//! Making objects from checked attributes: the same code for single POSTs and for whole trees.

use serde_json::{Map, Value};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::schema::complete;
use super::{ovn, validation};
use crate::world::World;
use crate::world::load_balancing::{Entity, HealthMonitor, Listener, Member, Operating, Pool, Provisioning};

/// A new object that nobody has built yet.
pub(crate) fn entity(
    world: &mut World,
    kind: ObjectKind,
    project_id: &str,
    given: &Map<String, Value>,
) -> Entity {
    Entity {
        id: world.new_id(),
        project_id: project_id.to_owned(),
        provisioning: Provisioning::PendingCreate,
        operating: Operating::Offline,
        created_at: world.plain_time(),
        updated_at: None,
        attributes: complete(kind, given),
    }
}

/// Adds a listener.
///
/// # Errors
/// Headers, ranges, certificates or the port do not fit.
pub(crate) fn listener(
    world: &mut World,
    load_balancer_id: &str,
    given: &Map<String, Value>,
    default_pool_id: Option<String>,
) -> Result<String, OctaviaFault> {
    let lb = world
        .load_balancing
        .load_balancers
        .get(load_balancer_id)
        .cloned()
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::LoadBalancer, load_balancer_id))?;
    ovn::check(world, load_balancer_id, ObjectKind::Listener, given)?;
    let mut entity = entity(world, ObjectKind::Listener, &lb.entity.project_id, given);
    let protocol = entity.text("protocol").to_owned();
    validation::check_insert_headers(&protocol, &entity.attributes["insert_headers"])?;
    validation::prepare_tls(world, &mut entity.attributes)?;
    validation::check_allowed_cidrs(&entity.attributes["allowed_cidrs"], &lb, world.load_balancing.release)?;
    check_port_is_free(world, load_balancer_id, &entity)?;
    let id = entity.id.clone();
    let listener = Listener { entity, load_balancer_id: load_balancer_id.to_owned(), default_pool_id };
    world.load_balancing.listeners.insert(id.clone(), listener);
    Ok(id)
}

fn check_port_is_free(world: &World, load_balancer_id: &str, new: &Entity) -> Result<(), OctaviaFault> {
    let transport = validation::transport_protocol(new.text("protocol"));
    let port = new.port("protocol_port");
    let taken = world.load_balancing.listeners_of(load_balancer_id).into_iter().any(|listener| {
        listener.entity.port("protocol_port") == port
            && validation::transport_protocol(listener.entity.text("protocol")) == transport
    });
    if !taken {
        return Ok(());
    }
    Err(OctaviaFault::Conflict(format!(
        "Another Listener on this Load Balancer is already using protocol {transport} and protocol_port {}",
        port.unwrap_or_default()
    )))
}

/// Adds a pool without members.
pub(crate) fn pool(
    world: &mut World,
    load_balancer_id: &str,
    project_id: &str,
    given: &Map<String, Value>,
) -> String {
    let entity = entity(world, ObjectKind::Pool, project_id, given);
    let id = entity.id.clone();
    let pool = Pool { entity, load_balancer_id: load_balancer_id.to_owned() };
    world.load_balancing.pools.insert(id.clone(), pool);
    id
}

/// Adds a member.
///
/// # Errors
/// The pool has a member with this address and port.
pub(crate) fn member(
    world: &mut World,
    pool_id: &str,
    project_id: &str,
    given: &Map<String, Value>,
) -> Result<String, OctaviaFault> {
    check_below_pool(world, pool_id, ObjectKind::Member, given)?;
    let mut entity = entity(world, ObjectKind::Member, project_id, given);
    if find_member(world, pool_id, &entity.attributes).is_some() {
        return Err(OctaviaFault::Conflict(format!(
            "Another member on this pool is already using ip {} on protocol_port {}",
            entity.text("address"),
            entity.port("protocol_port").unwrap_or_default()
        )));
    }
    if world.load_balancing.monitor_of(pool_id).is_none() {
        entity.operating = Operating::NoMonitor;
    }
    let id = entity.id.clone();
    world.load_balancing.members.insert(Member { entity, pool_id: pool_id.to_owned() });
    Ok(id)
}

fn check_below_pool(
    world: &World,
    pool_id: &str,
    kind: ObjectKind,
    given: &Map<String, Value>,
) -> Result<(), OctaviaFault> {
    let pool = world.load_balancing.pools.get(pool_id);
    pool.map_or(Ok(()), |pool| ovn::check(world, &pool.load_balancer_id, kind, given))
}

/// The member of a pool with the same address and port.
pub(crate) fn find_member(world: &World, pool_id: &str, wanted: &Map<String, Value>) -> Option<String> {
    let key = |attributes: &Map<String, Value>| {
        (attributes.get("address").cloned(), attributes.get("protocol_port").cloned())
    };
    let wanted = key(wanted);
    world
        .load_balancing
        .members
        .of(pool_id)
        .find(|member| key(&member.entity.attributes) == wanted)
        .map(|member| member.entity.id.clone())
}

/// Adds a health monitor.
///
/// # Errors
/// The type does not go with the pool, or the pool has a monitor.
pub(crate) fn health_monitor(
    world: &mut World,
    pool_id: &str,
    project_id: &str,
    given: &Map<String, Value>,
) -> Result<String, OctaviaFault> {
    let pool_protocol = world
        .load_balancing
        .pools
        .get(pool_id)
        .map(|pool| pool.entity.text("protocol").to_owned())
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::Pool, pool_id))?;
    validation::check_monitor(given, &pool_protocol, world.load_balancing.api_minor)?;
    check_below_pool(world, pool_id, ObjectKind::HealthMonitor, given)?;
    if world.load_balancing.monitor_of(pool_id).is_some() {
        return Err(OctaviaFault::Conflict("This pool already has a health monitor".to_owned()));
    }
    let mut entity = entity(world, ObjectKind::HealthMonitor, project_id, given);
    validation::complete_monitor(&mut entity.attributes);
    let id = entity.id.clone();
    let monitor = HealthMonitor { entity, pool_id: pool_id.to_owned() };
    world.load_balancing.health_monitors.insert(id.clone(), monitor);
    Ok(id)
}
