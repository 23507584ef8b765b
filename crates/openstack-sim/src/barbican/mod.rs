//! Barbican: secrets and containers of them.

use http::header::{HeaderName, LOCATION, VARY};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::key_management::{Container, Secret};

const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");

/// Answers a request to Barbican.
pub(crate) fn answer(world: &mut World, request: &Request) -> Reply {
    let reply = route(world, request).unwrap_or_else(|refusal| refusal);
    if reply.status == StatusCode::UNAUTHORIZED {
        return reply;
    }
    reply.with_header(API_VERSION, "key-manager 1.0").with_header(VARY, "openstack-api-version")
}

fn route(world: &mut World, request: &Request) -> Answer {
    let segments = request.segments();
    if segments.is_empty() {
        return Ok(Reply::json(StatusCode::MULTIPLE_CHOICES, versions(world)));
    }
    let caller = request.caller(world)?;
    match (request.method.clone(), segments.as_slice()) {
        (_, ["v1", ..]) if caller.project_id.is_empty() => Err(forbidden()),
        (Method::POST, ["v1", "secrets"]) => create_secret(world, &caller, request),
        (Method::GET, ["v1", "secrets"]) => {
            let mine = world.key_management.secrets.values().filter(|one| caller.owns(&one.project_id));
            let views: Vec<Value> = mine.map(|secret| show_secret(world, secret)).collect();
            Ok(Reply::ok(json!({"secrets": views, "total": views.len()})))
        }
        (Method::GET, ["v1", "secrets", id]) => {
            Ok(Reply::ok(show_secret(world, secret(world, &caller, id)?)))
        }
        (Method::POST, ["v1", "containers"]) => create_container(world, &caller, request),
        (Method::GET, ["v1", "containers", id]) => {
            Ok(Reply::ok(show_container(world, container(world, &caller, id)?)))
        }
        (Method::PUT, ["v1", kind @ ("secrets" | "containers"), id, "acl"]) => {
            access(world, &caller, request, kind, id)
        }
        _ => Err(Reply::titled(StatusCode::NOT_FOUND, "Not Found")),
    }
}

fn versions(world: &World) -> Value {
    let href = format!("{}/v1/", world.endpoint(Service::KeyManager));
    json!({"versions": {"values": [{
        "id": "v1",
        "status": "stable",
        "links": [
            {"rel": "self", "href": href},
            {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"},
        ],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.key-manager-v1+json"}],
    }]}})
}

fn forbidden() -> Reply {
    Reply::titled(
        StatusCode::FORBIDDEN,
        "Access was denied to this resource. - please review your user and/or project privileges",
    )
}

fn missing(kind: &str) -> Reply {
    Reply::titled(StatusCode::NOT_FOUND, &format!("Not Found. Sorry but your {kind} is in another castle."))
}

fn url(world: &World, kind: &str, id: &str) -> String {
    format!("{}/v1/{kind}/{id}", world.endpoint(Service::KeyManager))
}

fn secret<'a>(world: &'a World, caller: &Caller, id: &str) -> Result<&'a Secret, Reply> {
    let secret = world.key_management.secrets.get(id).ok_or_else(|| missing("secret"))?;
    if may_read(caller, &secret.project_id, &secret.acl) { Ok(secret) } else { Err(forbidden()) }
}

fn container<'a>(world: &'a World, caller: &Caller, id: &str) -> Result<&'a Container, Reply> {
    let container = world.key_management.containers.get(id).ok_or_else(|| missing("container"))?;
    if may_read(caller, &container.project_id, &container.acl) { Ok(container) } else { Err(forbidden()) }
}

fn may_read(caller: &Caller, project_id: &str, acl: &Value) -> bool {
    let users = acl["read"]["users"].as_array().into_iter().flatten();
    caller.owns(project_id) || users.into_iter().any(|user| *user == caller.user_id)
}

fn require_creator(caller: &Caller) -> Result<(), Reply> {
    if caller.is_admin() || caller.has_role("creator") { Ok(()) } else { Err(forbidden()) }
}

fn no_acl() -> Value {
    json!({"read": {"users": [], "project-access": true}})
}

fn create_secret(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    require_creator(caller)?;
    let Some(body) = request.json() else {
        return Err(Reply::titled(StatusCode::BAD_REQUEST, "Unable to decode request data."));
    };
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    let id = world.new_id();
    let secret = Secret {
        id: id.clone(),
        name: text("name").unwrap_or_else(|| id.clone()),
        project_id: caller.project_id.clone(),
        creator_id: caller.user_id.clone(),
        payload_content_type: text("payload_content_type"),
        secret_type: text("secret_type").unwrap_or_else(|| "opaque".to_owned()),
        expiration: text("expiration"),
        created: world.plain_time(),
        acl: no_acl(),
    };
    world.key_management.secrets.insert(id.clone(), secret);
    let reference = url(world, "secrets", &id);
    Ok(Reply::created(json!({"secret_ref": reference})).with_header(LOCATION, reference))
}

fn show_secret(world: &World, secret: &Secret) -> Value {
    let mut view = json!({
        "created": secret.created,
        "updated": secret.created,
        "status": "ACTIVE",
        "name": secret.name,
        "secret_type": secret.secret_type,
        "algorithm": null,
        "bit_length": null,
        "mode": null,
        "expiration": secret.expiration,
        "creator_id": secret.creator_id,
        "secret_ref": url(world, "secrets", &secret.id),
    });
    if let Some(content_type) = &secret.payload_content_type {
        view["content_types"] = json!({"default": content_type});
    }
    view
}

fn create_container(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    require_creator(caller)?;
    let Some(body) = request.json() else {
        return Err(Reply::titled(StatusCode::BAD_REQUEST, "Unable to decode request data."));
    };
    let id = world.new_id();
    let container = Container {
        id: id.clone(),
        name: body["name"].as_str().unwrap_or_default().to_owned(),
        project_id: caller.project_id.clone(),
        creator_id: caller.user_id.clone(),
        kind: body["type"].as_str().unwrap_or("generic").to_owned(),
        secret_refs: body["secret_refs"].as_array().cloned().unwrap_or_default().into(),
        consumers: Vec::new(),
        created: world.plain_time(),
        acl: no_acl(),
    };
    world.key_management.containers.insert(id.clone(), container);
    let reference = url(world, "containers", &id);
    Ok(Reply::created(json!({"container_ref": reference})).with_header(LOCATION, reference))
}

fn show_container(world: &World, container: &Container) -> Value {
    json!({
        "created": container.created,
        "updated": container.created,
        "status": "ACTIVE",
        "name": container.name,
        "type": container.kind,
        "creator_id": container.creator_id,
        "secret_refs": container.secret_refs,
        "consumers": container.consumers,
        "container_ref": url(world, "containers", &container.id),
    })
}

/// Says who besides the project may read a secret or a container.
fn access(world: &mut World, caller: &Caller, request: &Request, kind: &str, id: &str) -> Answer {
    let acl = if kind == "secrets" {
        secret(world, caller, id)?;
        world.key_management.secrets.get_mut(id).map(|secret| &mut secret.acl)
    } else {
        container(world, caller, id)?;
        world.key_management.containers.get_mut(id).map(|container| &mut container.acl)
    };
    require_creator(caller)?;
    if let Some(acl) = acl {
        *acl = request.json().unwrap_or_else(no_acl);
    }
    let reference = format!("{}/acl", url(world, kind, id));
    Ok(Reply::ok(json!({"acl_ref": reference})))
}
