//! Octavia: load balancers and their trees.

pub(crate) mod capacity;
mod create;
mod deployment;
mod fault;
mod health_monitors;
mod kind;
pub(crate) mod lacks;
mod listeners;
mod listing;
mod load_balancers;
mod locks;
pub(crate) mod major_version;
mod members;
mod ovn;
mod pools;
mod quotas;
mod schema;
pub(crate) mod status;
mod tree;
mod validation;
mod values;
mod versions;
pub(crate) mod views;
mod vip;
pub(crate) mod worker;

use http::header::ALLOW;
use http::{Method, StatusCode};
use serde_json::json;

use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::identity::Caller;
use fault::OctaviaFault;
use kind::ObjectKind;
use listing::Listing;

pub(crate) use versions::NEWEST_MINOR;

/// Answers a request to Octavia.
pub(crate) fn answer(world: &mut World, request: &Request) -> Reply {
    route(world, request).unwrap_or_else(|refusal| refusal)
}

fn route(world: &mut World, request: &Request) -> Answer {
    let segments = request.segments();
    if segments.is_empty() {
        return Ok(versions::document(world));
    }
    let caller = request.caller(world)?;
    match segments.as_slice() {
        ["v2" | "v2.0"] | ["v2" | "v2.0", "lbaas"] => Ok(Reply::ok(json!("v2"))),
        ["v2" | "v2.0", "lbaas", rest @ ..] => lbaas(world, &caller, request, rest),
        ["v2" | "v2.0", "octavia", "amphorae", rest @ ..] => {
            deployment::amphorae(world, &caller, request, rest)
        }
        _ => Err(not_found()),
    }
}

fn lbaas(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    authorize(caller, request)?;
    match path {
        ["loadbalancers", rest @ ..] => load_balancers::answer(world, caller, request, rest),
        ["listeners", rest @ ..] => listeners::answer(world, caller, request, rest),
        ["pools", pool, "members", rest @ ..] => members::answer(world, caller, request, pool, rest),
        ["pools", rest @ ..] => pools::answer(world, caller, request, rest),
        ["healthmonitors", rest @ ..] => health_monitors::answer(world, caller, request, rest),
        ["quotas", rest @ ..] => quotas::answer(world, caller, request, rest),
        ["providers" | "flavors" | "flavorprofiles" | "availabilityzones", ..] => {
            deployment::answer(world, caller, request, path)
        }
        _ => Err(not_found()),
    }
}

/// Octavia's default policy: readers may look, changes need a load balancer role or an administrator.
fn authorize(caller: &Caller, request: &Request) -> Result<(), OctaviaFault> {
    let writers = ["load-balancer_member", "load-balancer_admin", "admin"];
    let readers = ["reader", "member", "load-balancer_observer", "load-balancer_global_observer"];
    let may_write = writers.iter().any(|role| caller.has_role(role));
    let may_read = may_write || readers.iter().any(|role| caller.has_role(role));
    let allowed = if request.is_write() { may_write } else { may_read };
    if allowed && !caller.project_id.is_empty() { Ok(()) } else { Err(OctaviaFault::Policy) }
}

/// Refuses what only administrators may do.
fn require_admin(caller: &Caller) -> Result<(), OctaviaFault> {
    if caller.is_admin() || caller.has_role("load-balancer_admin") {
        Ok(())
    } else {
        Err(OctaviaFault::Policy)
    }
}

/// Refuses objects of other projects.
fn require_owner(caller: &Caller, project_id: &str) -> Result<(), OctaviaFault> {
    if caller.owns(project_id) { Ok(()) } else { Err(OctaviaFault::Policy) }
}

fn not_found() -> Reply {
    Reply::titled(StatusCode::NOT_FOUND, "")
}

fn method_not_allowed() -> Reply {
    Reply::titled(StatusCode::METHOD_NOT_ALLOWED, "").with_header(ALLOW, "DELETE, GET, POST, PUT")
}

/// The shape of a request's path below a collection, with its method.
enum Action<'a> {
    List,
    Create,
    Get(&'a str),
    Update(&'a str),
    Delete(&'a str),
}

impl<'a> Action<'a> {
    fn of(request: &Request, path: &[&'a str]) -> Result<Self, Reply> {
        match (request.method.clone(), path) {
            (Method::GET, []) => Ok(Self::List),
            (Method::POST, []) => Ok(Self::Create),
            (Method::GET, [id]) => Ok(Self::Get(id)),
            (Method::PUT, [id]) => Ok(Self::Update(id)),
            (Method::DELETE, [id]) => Ok(Self::Delete(id)),
            (_, [] | [_]) => Err(method_not_allowed()),
            _ => Err(not_found()),
        }
    }
}

fn list_of_kind(world: &World, request: &Request, kind: ObjectKind, views: Vec<serde_json::Value>) -> Answer {
    let minor = world.load_balancing.api_minor;
    let listing = Listing {
        collection: kind.collection(),
        names: Some(listing::filter_names(kind, minor)),
        base_url: world.endpoint(Service::LoadBalancer),
        has_tags: minor >= 5,
    };
    listing::list(request, views, &listing)
}
