//! What all kinds of resources share: visibility, bodies, revisions, plain changes.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Map, Value};

use super::fault::NeutronFault;
use super::kind::ResourceKind;
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::Resource;

/// A resource that the caller may see.
///
/// # Errors
/// It does not exist, or belongs to another project: Neutron does not distinguish the two.
pub(crate) fn visible<'a>(
    world: &'a World,
    caller: &Caller,
    kind: ResourceKind,
    id: &str,
) -> Result<&'a Resource, NeutronFault> {
    kind.resources(&world.network)
        .get(id)
        .filter(|resource| may_see(world, caller, kind, resource))
        .ok_or_else(|| NeutronFault::not_found(kind, id))
}

/// Whether the caller may see a resource: its own, shared ones, external networks and their subnets.
pub(crate) fn may_see(world: &World, caller: &Caller, kind: ResourceKind, resource: &Resource) -> bool {
    if caller.owns(&resource.project_id) {
        return true;
    }
    let open = |network: &Resource| network.flag("router:external") || network.flag("shared");
    match kind {
        ResourceKind::Network => open(resource),
        ResourceKind::Subnet => world.network.networks.get(resource.text("network_id")).is_some_and(open),
        ResourceKind::SecurityGroupRule => {
            let group = world.network.security_groups.get(resource.text("security_group_id"));
            group.is_some_and(|group| caller.owns(&group.project_id))
        }
        ResourceKind::Port
        | ResourceKind::FloatingIp
        | ResourceKind::SecurityGroup
        | ResourceKind::Router
        | ResourceKind::Trunk => false,
    }
}

/// The object under the kind's key in the body.
pub(crate) fn body(request: &Request, kind: ResourceKind) -> Result<Map<String, Value>, NeutronFault> {
    let body = request
        .json()
        .ok_or_else(|| NeutronFault::bad_request("HTTPBadRequest", "The server could not comply with the request since it is either malformed or otherwise incorrect."))?;
    let object = body.get(kind.root()).and_then(Value::as_object);
    object.cloned().ok_or_else(|| {
        NeutronFault::bad_request(
            "HTTPBadRequest",
            format!("Unable to find '{}' in request body", kind.root()),
        )
    })
}

/// Refuses a change when the client knows an older revision: `If-Match: revision_number=N`.
pub(crate) fn check_revision(
    world: &World,
    caller: &Caller,
    request: &Request,
    kind: ResourceKind,
    id: &str,
) -> Result<(), NeutronFault> {
    let wanted = request.header("if-match").and_then(|text| text.strip_prefix("revision_number="));
    let Some(wanted) = wanted.and_then(|text| text.parse::<u64>().ok()) else { return Ok(()) };
    let current = visible(world, caller, kind, id)?.revision_number;
    if wanted == current {
        return Ok(());
    }
    Err(NeutronFault::new(
        StatusCode::PRECONDITION_FAILED,
        "RevisionNumberConstraintFailed",
        format!("Constrained to {wanted}, but current revision is {current}"),
    ))
}

/// The project of a new resource: only administrators make one for others.
pub(crate) fn project_of(caller: &Caller, body: &Map<String, Value>) -> Result<String, NeutronFault> {
    let wanted = ["project_id", "tenant_id"].iter().find_map(|name| body.get(*name).and_then(Value::as_str));
    match wanted {
        Some(project) if caller.owns(project) => Ok(project.to_owned()),
        Some(_) => Err(NeutronFault::policy("rule:create_resource:tenant_id")),
        None => Ok(caller.project_id.clone()),
    }
}

/// Adds a resource with complete attributes.
pub(crate) fn insert(
    world: &mut World,
    kind: ResourceKind,
    project_id: &str,
    attributes: Map<String, Value>,
) -> String {
    let id = world.new_id();
    let now = world.zulu_time();
    world.network.standard_attribute_id += 1;
    let resource = Resource {
        id: id.clone(),
        project_id: project_id.to_owned(),
        tags: BTreeSet::new(),
        created_at: now.clone(),
        updated_at: now,
        revision_number: kind.first_revision(),
        standard_attribute_id: world.network.standard_attribute_id,
        attributes,
    };
    kind.resources_mut(&mut world.network).insert(id.clone(), resource);
    id
}

/// Changes a resource and counts the change.
pub(crate) fn change(world: &mut World, kind: ResourceKind, id: &str, change: impl FnOnce(&mut Resource)) {
    let now = world.zulu_time();
    if let Some(resource) = kind.resources_mut(&mut world.network).get_mut(id) {
        change(resource);
        resource.touch(&now);
    }
}

/// Replaces attributes that the kind has by the given ones, with no further rules.
///
/// # Errors
/// An attribute is unknown.
pub(crate) fn update_plain(
    world: &mut World,
    kind: ResourceKind,
    id: &str,
    body: &Map<String, Value>,
) -> Result<(), NeutronFault> {
    let known = kind.resources(&world.network).get(id).ok_or_else(|| NeutronFault::not_found(kind, id))?;
    if let Some(unknown) = body.keys().find(|name| !known.attributes.contains_key(*name)) {
        return Err(unrecognized(unknown));
    }
    change(world, kind, id, |resource| resource.attributes.extend(body.clone()));
    Ok(())
}

/// An attribute that the kind does not have.
pub(crate) fn unrecognized(name: &str) -> NeutronFault {
    NeutronFault::bad_request("HTTPBadRequest", format!("Unrecognized attribute(s) '{name}'"))
}

/// Defaults overlaid with what the body gives; project and tags are not attributes.
///
/// # Errors
/// The body has an attribute that the defaults do not have.
pub(crate) fn merged(defaults: Value, body: Map<String, Value>) -> Result<Map<String, Value>, NeutronFault> {
    let mut attributes = match defaults {
        Value::Object(defaults) => defaults,
        _ => Map::new(),
    };
    for (name, value) in body {
        if matches!(name.as_str(), "project_id" | "tenant_id") {
            continue;
        }
        if !attributes.contains_key(&name) {
            return Err(unrecognized(&name));
        }
        attributes.insert(name, value);
    }
    Ok(attributes)
}

/// An attribute that must be a UUID.
///
/// # Errors
/// It is missing or malformed.
pub(crate) fn required_id(body: &Map<String, Value>, name: &str) -> Result<String, NeutronFault> {
    let Some(text) = body.get(name).and_then(Value::as_str) else {
        let message = format!("Failed to parse request. Required attribute '{name}' not specified");
        return Err(NeutronFault::bad_request("HTTPBadRequest", message));
    };
    if uuid::Uuid::parse_str(text).is_err() {
        return Err(NeutronFault::invalid_input(name, &format!("'{text}' is not a valid UUID.")));
    }
    Ok(text.to_owned())
}

/// Refuses one more resource than the project may have.
pub(crate) fn check_quota(world: &World, project_id: &str, kind: ResourceKind) -> Result<(), NeutronFault> {
    let limits = world.network.quotas.get(project_id);
    let limit = limits.and_then(|limits| limits.get(kind.root())).copied().unwrap_or(-1);
    let Ok(limit) = usize::try_from(limit) else { return Ok(()) };
    if usage(world, project_id, kind) >= limit { Err(NeutronFault::over_quota(kind)) } else { Ok(()) }
}

/// How many resources of a kind a project has.
pub(crate) fn usage(world: &World, project_id: &str, kind: ResourceKind) -> usize {
    kind.resources(&world.network).values().filter(|resource| resource.project_id == project_id).count()
}
