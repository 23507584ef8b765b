//! Keystone: tokens, the catalog, application credentials.

mod application_credentials;
mod catalog;
mod fault;
mod login;
mod tokens;

use http::header::{HeaderName, LOCATION, VARY};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::reply::{Answer, Reply};
use crate::request::Request;
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
        (Method::GET, ["auth", "tokens"]) => tokens::validate(world, request, &token),
        (Method::DELETE, ["auth", "tokens"]) => tokens::revoke(world, request, &token),
        (Method::GET, ["auth", "catalog"]) => {
            let link = format!("{}/auth/catalog", world.identity_url());
            let catalog = catalog::catalog(world);
            Ok(Reply::ok(json!({"catalog": catalog, "links": {"self": link}})))
        }
        (_, ["users", user, "application_credentials", rest @ ..]) => {
            application_credentials::answer(world, &caller, request, user, rest)
        }
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
