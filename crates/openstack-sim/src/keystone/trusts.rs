//! `/v3/OS-TRUST/trusts`.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fault::KeystoneFault;
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::{Caller, Trust};

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    match (request.method.clone(), path) {
        (Method::POST, []) => create(world, caller, request),
        (Method::GET, [id]) => Ok(Reply::ok(json!({"trust": show(world, find(world, caller, id)?)}))),
        (Method::DELETE, [id]) => {
            let id = find(world, caller, id)?.id.clone();
            world.identity.trusts.remove(&id);
            for token in world.identity.tokens.values_mut() {
                token.revoked |= token.trust_id.as_ref() == Some(&id);
            }
            Ok(Reply::empty(StatusCode::NO_CONTENT))
        }
        _ => Err(KeystoneFault::not_found("The resource could not be found.").reply(world)),
    }
}

fn find<'a>(world: &'a World, caller: &Caller, id: &str) -> Result<&'a Trust, Reply> {
    let party =
        |trust: &&Trust| trust.trustor_user_id == caller.user_id || trust.trustee_user_id == caller.user_id;
    let found = world.identity.trusts.get(id).filter(party);
    found.ok_or_else(|| KeystoneFault::not_found(format!("Could not find trust: {id}.")).reply(world))
}

fn create(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    let body = request.json().unwrap_or_default();
    let given = &body["trust"];
    let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    if text("trustor_user_id") != caller.user_id {
        return Err(KeystoneFault::forbidden("identity:create_trust").reply(world));
    }
    if !world.identity.users.contains_key(&text("trustee_user_id")) {
        return Err(KeystoneFault::not_found(format!("Could not find user: {}.", text("trustee_user_id")))
            .reply(world));
    }
    let roles = given["roles"].as_array().into_iter().flatten();
    let trust = Trust {
        id: world.new_hex_id(),
        trustor_user_id: caller.user_id.clone(),
        trustee_user_id: text("trustee_user_id"),
        project_id: text("project_id"),
        roles: roles.filter_map(|role| role["name"].as_str()).map(str::to_owned).collect(),
        impersonation: given["impersonation"].as_bool().unwrap_or_default(),
    };
    let view = show(world, &trust);
    world.identity.trusts.insert(trust.id.clone(), trust);
    Ok(Reply::created(json!({"trust": view})))
}

fn show(world: &World, trust: &Trust) -> Value {
    let roles: Vec<Value> =
        trust.roles.iter().map(|name| json!({"id": world.identity.roles.get(name), "name": name})).collect();
    json!({
        "id": trust.id,
        "trustor_user_id": trust.trustor_user_id,
        "trustee_user_id": trust.trustee_user_id,
        "project_id": trust.project_id,
        "impersonation": trust.impersonation,
        "roles": roles,
        "expires_at": null,
        "deleted_at": null,
        "remaining_uses": null,
        "links": {"self": format!("{}/OS-TRUST/trusts/{}", world.identity_url(), trust.id)},
    })
}
