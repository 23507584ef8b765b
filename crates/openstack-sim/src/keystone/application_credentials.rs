//! `/v3/users/ID/application_credentials`.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use super::fault::KeystoneFault;
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::{ApplicationCredential, Caller, with_implied};

pub(crate) fn answer(
    world: &mut World,
    caller: &Caller,
    request: &Request,
    user: &str,
    path: &[&str],
) -> Answer {
    if caller.user_id != user && !caller.is_admin() {
        return Err(KeystoneFault::forbidden("identity:application_credentials").reply(world));
    }
    match (request.method.clone(), path) {
        (Method::POST, []) => create(world, caller, request),
        _ => Err(KeystoneFault::not_found("The resource could not be found.").reply(world)),
    }
}

fn create(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    let body = request.json().unwrap_or_default();
    let given = &body["application_credential"];
    let Some(name) = given["name"].as_str().filter(|name| !name.is_empty()) else {
        return Err(KeystoneFault::bad_request("'name' is a required property").reply(world));
    };
    let mut names = world.identity.application_credentials.values();
    if names.any(|one| one.user_id == caller.user_id && one.name == name) {
        let text =
            "Conflict occurred attempting to store application_credential - Duplicate entry found with name";
        return Err(KeystoneFault::conflict(format!("{text} {name}.")).reply(world));
    }
    let roles = match given["roles"].as_array() {
        None => caller.roles.clone(),
        Some(roles) => roles.iter().filter_map(|role| role["name"].as_str()).map(str::to_owned).collect(),
    };
    if !roles.is_subset(&caller.roles) {
        return Err(KeystoneFault::bad_request(
            "Invalid application credential: Could not find role assignment.",
        )
        .reply(world));
    }
    let secret = given["secret"].as_str().map_or_else(|| world.new_hex_id(), str::to_owned);
    let credential = ApplicationCredential {
        id: world.new_hex_id(),
        name: name.to_owned(),
        secret: secret.clone(),
        user_id: caller.user_id.clone(),
        project_id: caller.project_id.clone(),
        roles: with_implied(roles),
    };
    let mut view = show(world, &credential);
    // The only answer that ever shows the secret.
    view["secret"] = json!(secret);
    world.identity.application_credentials.insert(credential.id.clone(), credential);
    Ok(Reply::created(json!({"application_credential": view})))
}

fn show(world: &World, credential: &ApplicationCredential) -> Value {
    let immutable: BTreeSet<&str> = BTreeSet::from(["admin", "manager", "member", "reader", "service"]);
    let roles: Vec<Value> = credential
        .roles
        .iter()
        .map(|name| {
            let options =
                if immutable.contains(name.as_str()) { json!({"immutable": true}) } else { json!({}) };
            json!({"id": world.identity.roles.get(name), "name": name, "domain_id": null, "description": null,
                   "options": options})
        })
        .collect();
    json!({
        "id": credential.id,
        "name": credential.name,
        "description": null,
        "user_id": credential.user_id,
        "project_id": credential.project_id,
        "system": null,
        "expires_at": null,
        "unrestricted": null,
        "roles": roles,
        "links": {"self": format!("{}/application_credentials/{}", world.identity_url(), credential.id)},
    })
}
