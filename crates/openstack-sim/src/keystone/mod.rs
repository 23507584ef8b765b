//! Keystone: tokens, the catalog, application credentials, trusts.

mod application_credentials;
mod catalog;
mod fault;
mod log_in;
mod tokens;
mod trusts;

use http::header::{HeaderName, LOCATION, VARY};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::identity::{Caller, Token};
use fault::KeystoneFault;

/// The header with the token that a request is about, or that an answer brings.
pub(crate) const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// Answers a request to Keystone.
pub(crate) fn answer(world: &mut World, request: &Request) -> Reply {
    let reply = route(world, request).unwrap_or_else(|refusal| refusal);
    reply.with_header(VARY, "X-Auth-Token")
}

fn route(world: &mut World, request: &Request) -> Answer {
    let segments = request.segments();
    match (request.method.clone(), segments.as_slice()) {
        (Method::GET, []) => {
            let body = json!({"versions": {"values": [version(world)]}});
            let location = format!("{}/", world.identity_url());
            Ok(Reply::json(StatusCode::MULTIPLE_CHOICES, body).with_header(LOCATION, location))
        }
        (Method::GET, ["v3"]) => Ok(Reply::ok(json!({"version": version(world)}))),
        (Method::POST, ["v3", "auth", "tokens"]) => tokens::issue(world, request),
        (_, ["v3", rest @ ..]) => authenticated(world, request, rest),
        _ => Err(KeystoneFault::not_found("The resource could not be found.").reply(world)),
    }
}

fn authenticated(world: &mut World, request: &Request, path: &[&str]) -> Answer {
    let token = current_token(world, request)?;
    let caller = Caller {
        user_id: token.user_id.clone(),
        project_id: token.project_id.clone().unwrap_or_default(),
        roles: token.roles.clone(),
    };
    match (request.method.clone(), path) {
        (Method::GET | Method::HEAD, ["auth", "tokens"]) => tokens::validate(world, request, &token),
        (Method::DELETE, ["auth", "tokens"]) => tokens::revoke(world, request, &token),
        (Method::GET, ["auth", "catalog"]) => {
            let link = format!("{}/auth/catalog", world.identity_url());
            let catalog = catalog::catalog(world);
            Ok(Reply::ok(json!({"catalog": catalog, "links": {"self": link}})))
        }
        (Method::GET, ["auth", "projects"]) => Ok(Reply::ok(projects_of(world, &caller))),
        (_, ["users", user, "application_credentials", rest @ ..]) => {
            application_credentials::answer(world, &caller, request, user, rest)
        }
        (_, ["OS-TRUST", "trusts", rest @ ..]) => trusts::answer(world, &caller, request, rest),
        (Method::GET, ["users"]) => list_users(world, &caller, request),
        _ => Err(KeystoneFault::not_found("The resource could not be found.").reply(world)),
    }
}

fn version(world: &World) -> Value {
    json!({
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/", world.identity_url())}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    })
}

fn current_token(world: &World, request: &Request) -> Result<Token, Reply> {
    let token = request.header("x-auth-token").and_then(|token| world.valid_token(token)).cloned();
    token.ok_or_else(|| KeystoneFault::unauthorized().reply(world))
}

fn domain() -> Value {
    json!({"id": "default", "name": "Default"})
}

fn projects_of(world: &World, caller: &Caller) -> Value {
    let projects: Vec<Value> = world
        .identity
        .projects
        .values()
        .filter(|project| !world.identity.effective_roles(&caller.user_id, &project.id).is_empty())
        .map(|project| {
            json!({"id": project.id, "name": project.name, "domain_id": "default", "enabled": true,
                   "is_domain": false, "description": "", "parent_id": "default", "tags": [], "options": {}})
        })
        .collect();
    json!({"projects": projects, "links": {"next": null, "previous": null}})
}

fn list_users(world: &World, caller: &Caller, request: &Request) -> Answer {
    if !caller.is_admin() {
        return Err(KeystoneFault::forbidden("identity:list_users").reply(world));
    }
    let name = request.parameter("name");
    let users: Vec<Value> = world
        .identity
        .users
        .values()
        .filter(|user| name.is_none_or(|name| user.name == name))
        .map(|user| json!({"id": user.id, "name": user.name, "domain_id": "default", "enabled": true}))
        .collect();
    let link = format!("{}/v3/users", world.endpoint(Service::Identity));
    Ok(Reply::ok(json!({"users": users, "links": {"self": link, "next": null, "previous": null}})))
}
