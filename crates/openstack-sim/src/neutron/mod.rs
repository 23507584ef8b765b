//! Neutron: networks, subnets, ports, floating IPs, security groups, routers.

mod addresses;
mod fault;
mod floating_ips;
mod kind;
mod listing;
mod networks;
pub(crate) mod ports;
mod quotas;
mod resource;
mod routers;
pub(crate) mod security_groups;
mod subnets;
mod tags;
pub(crate) mod trunks;
pub(crate) mod views;

use http::Method;
use serde_json::{Value, json};

use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::Resource;

pub(crate) use addresses::cidr_holds;
pub(crate) use fault::NeutronFault;
pub(crate) use kind::ResourceKind;

/// The extensions of the recorded service, as it lists them.
const EXTENSIONS: &str = include_str!("extensions.json");

/// Answers a request to Neutron.
pub(crate) fn answer(world: &mut World, request: &Request) -> Reply {
    route(world, request).unwrap_or_else(|refusal| refusal)
}

fn route(world: &mut World, request: &Request) -> Answer {
    let segments = request.segments();
    let href = format!("{}/v2.0/", world.endpoint(Service::Network));
    if segments.is_empty() {
        return Ok(Reply::ok(json!({"versions": [
            {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]},
        ]})));
    }
    let caller = request.caller(world)?;
    match segments.as_slice() {
        ["v2.0"] => Ok(Reply::ok(json!({"resources": resource_links(world, &href)}))),
        ["v2.0", "extensions", rest @ ..] => extensions(world, request, rest),
        ["v2.0", "quotas", rest @ ..] => quotas::answer(world, &caller, request, rest),
        ["v2.0", collection, rest @ ..] => match ResourceKind::of_collection(collection) {
            Some(kind) if kind.is_served(world) => resource(world, &caller, request, kind, rest),
            Some(_) | None => Err(NeutronFault::no_such_path().into()),
        },
        _ => Err(NeutronFault::no_such_path().into()),
    }
}

fn resource_links(world: &World, href: &str) -> Value {
    ResourceKind::ALL
        .into_iter()
        .filter(|kind| kind.is_served(world))
        .map(|kind| {
            let collection = kind.path();
            json!({"name": kind.root(), "collection": kind.collection(),
                   "links": [{"rel": "self", "href": format!("{href}{collection}")}]})
        })
        .collect()
}

fn extensions(world: &World, request: &Request, path: &[&str]) -> Answer {
    let all: Vec<Value> = serde_json::from_str(EXTENSIONS).unwrap_or_default();
    let mut present = all.into_iter().filter(|one| {
        one["alias"].as_str().is_some_and(|alias| !world.network.missing_extensions.contains(alias))
    });
    match (request.method.clone(), path) {
        (Method::GET, []) => Ok(Reply::ok(json!({"extensions": present.collect::<Vec<_>>()}))),
        (Method::GET, [alias]) => {
            let found = present.find(|one| one["alias"] == **alias);
            let found = found.ok_or_else(NeutronFault::no_such_path)?;
            Ok(Reply::ok(json!({"extension": found})))
        }
        _ => Err(NeutronFault::no_such_path().into()),
    }
}

/// Whether this deployment has an API extension.
pub(crate) fn has_extension(world: &World, alias: &str) -> bool {
    !world.network.missing_extensions.contains(alias)
}

fn resource(
    world: &mut World,
    caller: &Caller,
    request: &Request,
    kind: ResourceKind,
    path: &[&str],
) -> Answer {
    match (request.method.clone(), path) {
        (Method::GET, []) => listing::list(world, caller, request, kind),
        (Method::POST, []) => {
            fault::check_policy(caller, "create", kind)?;
            create(world, caller, request, kind)
        }
        (Method::GET, [id]) => {
            let found = resource::visible(world, caller, kind, id)?;
            let fields = request.parameters("fields");
            let view = crate::filters::select_fields(views::view(world, caller, kind, found), &fields);
            Ok(Reply::ok(json!({kind.root(): view})))
        }
        (Method::PUT, [id]) => {
            resource::check_revision(world, caller, request, kind, id)?;
            fault::check_policy(caller, "update", kind)?;
            update(world, caller, request, kind, id)
        }
        (Method::DELETE, [id]) => {
            resource::check_revision(world, caller, request, kind, id)?;
            fault::check_policy(caller, "delete", kind)?;
            delete(world, caller, kind, id)?;
            Ok(Reply::empty(http::StatusCode::NO_CONTENT))
        }
        (_, [id, "tags", rest @ ..]) if has_extension(world, "standard-attr-tag") => {
            tags::answer(world, caller, request, kind, id, rest)
        }
        (Method::PUT, [id, action]) if kind == ResourceKind::Router => {
            routers::act(world, caller, request, id, action)
        }
        (Method::GET | Method::PUT, [id, action]) if kind == ResourceKind::Trunk => {
            trunks::act(world, caller, request, id, action)
        }
        _ => Err(NeutronFault::no_such_path().into()),
    }
}

fn create(world: &mut World, caller: &Caller, request: &Request, kind: ResourceKind) -> Answer {
    let body = resource::body(request, kind)?;
    let id = match kind {
        ResourceKind::Network => networks::create(world, caller, body)?,
        ResourceKind::Subnet => subnets::create(world, caller, body)?,
        ResourceKind::Port => ports::create_for_user(world, caller, &body)?,
        ResourceKind::FloatingIp => floating_ips::create(world, caller, &body)?,
        ResourceKind::SecurityGroup => security_groups::create(world, caller, &body)?,
        ResourceKind::SecurityGroupRule => security_groups::create_rule(world, caller, &body)?,
        ResourceKind::Router => routers::create(world, caller, body)?,
        ResourceKind::Trunk => trunks::create(world, caller, body)?,
    };
    let view = views::created(world, caller, kind, &id);
    Ok(Reply::created(json!({kind.root(): view})))
}

fn update(world: &mut World, caller: &Caller, request: &Request, kind: ResourceKind, id: &str) -> Answer {
    let body = resource::body(request, kind)?;
    match kind {
        ResourceKind::FloatingIp => floating_ips::update(world, caller, id, &body)?,
        ResourceKind::Port => ports::update(world, caller, id, &body)?,
        ResourceKind::Router => routers::update(world, caller, id, &body)?,
        ResourceKind::Network | ResourceKind::Subnet | ResourceKind::SecurityGroup | ResourceKind::Trunk => {
            resource::update_plain(world, kind, id, &body)?;
        }
        ResourceKind::SecurityGroupRule => return Err(NeutronFault::no_such_path().into()),
    }
    let found = resource::visible(world, caller, kind, id)?;
    Ok(Reply::ok(json!({kind.root(): views::view(world, caller, kind, found)})))
}

fn delete(world: &mut World, caller: &Caller, kind: ResourceKind, id: &str) -> Result<(), NeutronFault> {
    let found = resource::visible(world, caller, kind, id)?;
    if !caller.owns(&found.project_id) {
        return Err(NeutronFault::not_found(kind, id));
    }
    match kind {
        ResourceKind::Network => networks::delete(world, id),
        ResourceKind::Subnet => subnets::delete(world, id),
        ResourceKind::Port => ports::delete(world, id),
        ResourceKind::FloatingIp => {
            floating_ips::delete(world, id);
            Ok(())
        }
        ResourceKind::SecurityGroup => security_groups::delete(world, id),
        ResourceKind::SecurityGroupRule => {
            security_groups::delete_rule(world, id);
            Ok(())
        }
        ResourceKind::Router => routers::delete(world, id),
        ResourceKind::Trunk => {
            trunks::delete(world, id);
            Ok(())
        }
    }
}

/// A network that the caller may see.
pub(crate) fn visible_network<'a>(world: &'a World, caller: &Caller, id: &str) -> Option<&'a Resource> {
    resource::visible(world, caller, ResourceKind::Network, id).ok()
}

/// A subnet that the caller may see.
pub(crate) fn visible_subnet<'a>(world: &'a World, caller: &Caller, id: &str) -> Option<&'a Resource> {
    resource::visible(world, caller, ResourceKind::Subnet, id).ok()
}

pub(crate) fn subnets_of<'a>(world: &'a World, network_id: &str) -> Vec<&'a Resource> {
    world.network.subnets.values().filter(|subnet| subnet.text("network_id") == network_id).collect()
}
