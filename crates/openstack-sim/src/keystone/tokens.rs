//! `/v3/auth/tokens`.

use http::StatusCode;
use serde_json::{Value, json};

use super::fault::KeystoneFault;
use super::{SUBJECT_TOKEN, catalog, domain, login};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Token;

/// Logs in.
pub(crate) fn issue(world: &mut World, request: &Request) -> Answer {
    let body = request.json().unwrap_or_default();
    let auth = body.get("auth").cloned();
    let auth =
        auth.ok_or_else(|| KeystoneFault::bad_request("'auth' is a required property").reply(world))?;
    let grant = login::grant(world, &auth).map_err(|fault| fault.reply(world))?;
    let token = world.issue_token(grant);
    let body = show(world, &token, wants_catalog(request));
    Ok(Reply::created(body).with_header(SUBJECT_TOKEN, token.id))
}

fn wants_catalog(request: &Request) -> bool {
    request.parameter("nocatalog").is_none()
}

fn show(world: &mut World, token: &Token, with_catalog: bool) -> Value {
    let user_name = world.identity.users.get(&token.user_id).map(|user| user.name.clone());
    let mut view = json!({
        "methods": token.methods,
        "user": {"domain": domain(), "id": token.user_id, "name": user_name, "password_expires_at": null},
        "audit_ids": token.audit_ids,
        "expires_at": world.microsecond_time(token.expires_at),
        "issued_at": world.microsecond_time(token.issued_at),
    });
    if let Some(project) = token.project_id.as_ref().and_then(|id| world.identity.projects.get(id)) {
        view["project"] = json!({"domain": domain(), "id": project.id, "name": project.name});
        view["is_domain"] = json!(false);
        view["roles"] = token
            .roles
            .iter()
            .filter_map(|name| world.identity.roles.get(name).map(|id| json!({"id": id, "name": name})))
            .collect();
        if with_catalog {
            view["catalog"] = catalog::catalog(world);
        }
    }
    let credentials = &world.identity.application_credentials;
    if let Some(credential) = token.application_credential_id.as_ref().and_then(|id| credentials.get(id)) {
        view["application_credential"] =
            json!({"id": credential.id, "name": credential.name, "restricted": true});
    }
    json!({"token": view})
}

/// The token that the request is about.
fn subject(world: &World, request: &Request, caller: &Token) -> Result<Token, Reply> {
    let id = request.header(SUBJECT_TOKEN.as_str()).unwrap_or(&caller.id);
    let missing = || KeystoneFault::not_found(format!("Could not find token: {id}.")).reply(world);
    world.valid_token(id).cloned().ok_or_else(missing)
}

/// Shows a token.
pub(crate) fn validate(world: &mut World, request: &Request, caller: &Token) -> Answer {
    let token = subject(world, request, caller)?;
    let body = show(world, &token, wants_catalog(request));
    Ok(Reply::ok(body).with_header(SUBJECT_TOKEN, token.id))
}

pub(crate) fn revoke(world: &mut World, request: &Request, caller: &Token) -> Answer {
    let id = subject(world, request, caller)?.id;
    if let Some(token) = world.identity.tokens.get_mut(&id) {
        token.revoked = true;
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
