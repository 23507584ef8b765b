//! `/v2.0/lbaas/pools/ID/members`: single members and the batch that replaces them all.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::locks::{begin, lock_tree, mark_pool_and_listeners};
use super::schema::{Reading, name_whole_body, parse, read_object, root_object};
use super::validation::{check_address, check_quota};
use super::{Action, create, list_of_kind, listeners, ovn, pools, schema, views};
use crate::neutron;
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::load_balancing::{Member, Pool, Provisioning};
use crate::world::operation::OperationKind;

pub(crate) fn answer(
    world: &mut World,
    caller: &Caller,
    request: &Request,
    pool_id: &str,
    path: &[&str],
) -> Answer {
    let pool = pools::owned(world, caller, pool_id)?.clone();
    if request.method == Method::PUT && path.is_empty() {
        return batch(world, caller, request, &pool);
    }
    match Action::of(request, path)? {
        Action::List => {
            let minor = world.load_balancing.api_minor;
            let members = world.load_balancing.members_of(pool_id);
            let views = members.into_iter().map(|one| views::member(one, minor)).collect();
            list_of_kind(world, request, ObjectKind::Member, views)
        }
        Action::Create => create_one(world, caller, request, &pool),
        Action::Get(id) => show(world, &pool, id, StatusCode::OK),
        Action::Update(id) => update_one(world, request, &pool, id),
        Action::Delete(id) => delete_one(world, &pool, id),
    }
}

fn show(world: &World, pool: &Pool, id: &str, status: StatusCode) -> Answer {
    let member = find(world, pool, id)?;
    Ok(Reply::json(status, json!({"member": views::member(member, world.load_balancing.api_minor)})))
}

fn find<'a>(world: &'a World, pool: &Pool, id: &str) -> Result<&'a Member, OctaviaFault> {
    let member = world.load_balancing.members.get(id).filter(|member| member.pool_id == pool.entity.id);
    member.ok_or_else(|| OctaviaFault::not_found(ObjectKind::Member, id))
}

fn lock(world: &mut World, pool: &Pool) -> Result<(), OctaviaFault> {
    lock_tree(world, &pool.load_balancer_id, (ObjectKind::Pool, &pool.entity.id))
}

fn create_one(world: &mut World, caller: &Caller, request: &Request, pool: &Pool) -> Answer {
    let given = schema::read_body(request, ObjectKind::Member, world.load_balancing.api_minor)?;
    check_address(world, &given)?;
    check_subnet(world, caller, &given)?;
    check_quota(world, &pool.entity.project_id, ObjectKind::Member, 1)?;
    lock(world, pool)?;
    match create::member(world, &pool.entity.id, &pool.entity.project_id, &given) {
        Ok(id) => {
            mark_pool_and_listeners(world, &pool.entity.id);
            begin(world, OperationKind::MemberCreate, &pool.load_balancer_id, &id);
            show(world, pool, &id, StatusCode::CREATED)
        }
        Err(fault) => {
            listeners::unlock(world, &pool.load_balancer_id);
            Err(fault.into())
        }
    }
}

fn check_subnet(world: &World, caller: &Caller, member: &Map<String, Value>) -> Result<(), OctaviaFault> {
    match member.get("subnet_id").and_then(Value::as_str) {
        Some(subnet) if neutron::visible_subnet(world, caller, subnet).is_none() => {
            Err(OctaviaFault::InvalidReference { kind: "Subnet", id: subnet.to_owned() })
        }
        _ => Ok(()),
    }
}

fn update_one(world: &mut World, request: &Request, pool: &Pool, id: &str) -> Answer {
    let given = schema::read_body(request, ObjectKind::Member, world.load_balancing.api_minor)?;
    find(world, pool, id)?;
    lock(world, pool)?;
    mark_pool_and_listeners(world, &pool.entity.id);
    change(world, id, given);
    begin(world, OperationKind::MemberUpdate, &pool.load_balancer_id, id);
    show(world, pool, id, StatusCode::OK)
}

fn delete_one(world: &mut World, pool: &Pool, id: &str) -> Answer {
    find(world, pool, id)?;
    lock(world, pool)?;
    mark_pool_and_listeners(world, &pool.entity.id);
    mark_deleted(world, id);
    begin(world, OperationKind::MemberDelete, &pool.load_balancer_id, id);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

fn change(world: &mut World, id: &str, given: Map<String, Value>) {
    let now = world.plain_time();
    if let Some(member) = world.load_balancing.members.get_mut(id) {
        member.entity.attributes.extend(given);
        member.entity.set_provisioning(Provisioning::PendingUpdate, &now);
    }
}

fn mark_deleted(world: &mut World, id: &str) {
    let now = world.plain_time();
    if let Some(member) = world.load_balancing.members.get_mut(id) {
        member.entity.set_provisioning(Provisioning::PendingDelete, &now);
    }
}

/// The batch: adds and updates, and deletes what it does not name unless `additive_only`.
///
/// Nothing is compared: an unchanged batch costs a full round. Only new members are checked: another subnet of a member that is there
/// fails in the worker.
fn batch(world: &mut World, caller: &Caller, request: &Request, pool: &Pool) -> Answer {
    let minor = world.load_balancing.api_minor;
    if let Some((name, _)) = request.query.iter().find(|(name, _)| name != "additive_only" || minor < 11) {
        return Err(OctaviaFault::BadRequest(format!("Unknown argument: \"{name}\"")).into());
    }
    let additive = request.parameter("additive_only").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let wanted = read_batch(request, minor)?;
    let has_duplicates = has_duplicates(&wanted);
    if has_duplicates && !world.load_balancing.release.accepts_duplicate_members() {
        return Err(OctaviaFault::validation("Member must be updated only once in the same request.").into());
    }
    let project_id = &pool.entity.project_id;
    let found = wanted.iter().map(|one| create::find_member(world, &pool.entity.id, one));
    let found: Vec<Option<String>> = found.collect();
    let kept: BTreeSet<String> = found.iter().flatten().cloned().collect();
    let members = world.load_balancing.members_of(&pool.entity.id);
    let gone: Vec<String> = members
        .into_iter()
        .map(|one| one.entity.id.clone())
        .filter(|id| !additive && !kept.contains(id))
        .collect();
    ovn::check_batch(world, &pool.load_balancer_id, &wanted)?;
    let added = wanted.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(one, _)| one);
    let added: Vec<&Map<String, Value>> = added.collect();
    added.iter().try_for_each(|one| check_address(world, one))?;
    // What goes makes room in the same request.
    let more = added.len().saturating_sub(gone.len());
    if more > 0 {
        check_quota(world, project_id, ObjectKind::Member, more)?;
    }
    added.iter().try_for_each(|one| check_subnet(world, caller, one))?;
    lock(world, pool)?;
    mark_pool_and_listeners(world, &pool.entity.id);
    if has_duplicates {
        // The worker fails, and nothing unlocks the load balancer.
        return Ok(Reply::empty(StatusCode::ACCEPTED));
    }

    for given in wanted {
        match create::find_member(world, &pool.entity.id, &given) {
            Some(id) => {
                let mut values = batch_defaults();
                values.extend(given);
                change(world, &id, values);
            }
            None => {
                create::member(world, &pool.entity.id, project_id, &given)?;
            }
        }
    }
    for id in gone {
        mark_deleted(world, &id);
    }
    begin(world, OperationKind::MemberBatch, &pool.load_balancer_id, &pool.entity.id);
    Ok(Reply::empty(StatusCode::ACCEPTED))
}

/// What a batch sets when it does not say otherwise; name, tags and subnet stay as they are.
fn batch_defaults() -> Map<String, Value> {
    let reset = ObjectKind::Member.attributes().iter().filter(|attribute| attribute.reset_by_batch);
    reset.map(|attribute| (attribute.name.to_owned(), attribute.default_value())).collect()
}

fn read_batch(request: &Request, minor: u8) -> Result<Vec<Map<String, Value>>, OctaviaFault> {
    const ARGUMENT: &str = "members_";
    let body = parse(request)?;
    let list = root_object(&body, ARGUMENT, "members")?;
    let entries = list.as_array().ok_or_else(|| OctaviaFault::InvalidInput {
        attribute: "members".to_owned(),
        value: list.clone(),
        reason: "Value should be a list".to_owned(),
    })?;
    let reading = Reading {
        kind: ObjectKind::Member,
        minor,
        update: false,
        argument: "members_.members",
        nested: true,
    };
    let mut members: Vec<Map<String, Value>> = Vec::new();
    for entry in entries {
        let member = read_object(entry, reading).map_err(|fault| name_whole_body(fault, ARGUMENT, &body))?;
        members.push(member);
    }
    Ok(members)
}

fn has_duplicates(members: &[Map<String, Value>]) -> bool {
    let key = |member: &Map<String, Value>| {
        format!("{:?} {:?}", member.get("address"), member.get("protocol_port"))
    };
    members.iter().map(key).collect::<BTreeSet<String>>().len() < members.len()
}
