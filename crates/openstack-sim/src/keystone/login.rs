//! Reading `auth` bodies: who logs in, by which method, with which scope.

use serde_json::Value;

use super::fault::KeystoneFault;
use crate::world::World;
use crate::world::identity::{TokenGrant, with_implied};

/// Checks an `auth` body and says what the token is to hold.
///
/// # Errors
/// The body is malformed; the secret, the user or the project is wrong (one text for all).
pub(crate) fn grant(world: &World, auth: &Value) -> Result<TokenGrant, KeystoneFault> {
    let identity = auth
        .get("identity")
        .ok_or_else(|| KeystoneFault::bad_request("'identity' is a required property"))?;
    let methods: Vec<String> = identity["methods"]
        .as_array()
        .ok_or_else(|| KeystoneFault::bad_request("'methods' is a required property"))?
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let scope = auth.get("scope").filter(|scope| !scope.is_null() && *scope != "unscoped");
    match methods.first().map(String::as_str) {
        Some("password") => scoped(world, by_password(world, identity, methods)?, scope),
        Some("token") => scoped(world, by_token(world, identity, methods)?, scope),
        Some("application_credential") if scope.is_some() => {
            Err(KeystoneFault::scope_with_application_credential())
        }
        Some("application_credential") => by_application_credential(world, identity, methods),
        Some(_) | None => Err(KeystoneFault::unauthorized()),
    }
}

fn is_default_domain(owner: &Value) -> bool {
    match &owner["domain"] {
        Value::Object(domain) => {
            domain.get("id").is_some_and(|id| id == "default")
                || domain
                    .get("name")
                    .and_then(Value::as_str)
                    .is_some_and(|name| name.eq_ignore_ascii_case("default"))
        }
        _ => false,
    }
}

fn user_id(world: &World, user: &Value) -> Result<String, KeystoneFault> {
    let found = match (user["id"].as_str(), user["name"].as_str()) {
        (Some(id), _) => world.identity.users.get(id),
        (None, Some(name)) if is_default_domain(user) => world.identity.user_named(name),
        _ => None,
    };
    found.map(|user| user.id.clone()).ok_or_else(KeystoneFault::unauthorized)
}

fn by_password(world: &World, identity: &Value, methods: Vec<String>) -> Result<TokenGrant, KeystoneFault> {
    let given = identity.get("password").ok_or_else(|| KeystoneFault::missing("password", "identity"))?;
    let user = &given["user"];
    let user_id = user_id(world, user)?;
    let password = world.identity.users.get(&user_id).map(|user| user.password.as_str());
    if password.is_none() || password != user["password"].as_str() {
        return Err(KeystoneFault::unauthorized());
    }
    Ok(TokenGrant { user_id, methods, ..TokenGrant::default() })
}

fn by_token(world: &World, identity: &Value, mut methods: Vec<String>) -> Result<TokenGrant, KeystoneFault> {
    let token = identity["token"]["id"].as_str().and_then(|id| world.valid_token(id));
    let token = token.ok_or_else(KeystoneFault::unauthorized)?;
    methods.extend(token.methods.iter().filter(|method| *method != "token").cloned());
    Ok(TokenGrant {
        user_id: token.user_id.clone(),
        methods,
        parent_audit_id: token.audit_ids.last().cloned(),
        expires_at: Some(token.expires_at),
        ..TokenGrant::default()
    })
}

fn by_application_credential(
    world: &World,
    identity: &Value,
    methods: Vec<String>,
) -> Result<TokenGrant, KeystoneFault> {
    let given = &identity["application_credential"];
    let credentials = &world.identity.application_credentials;
    let found = match given["id"].as_str() {
        Some(id) => credentials.get(id),
        None => {
            let owner = user_id(world, &given["user"])?;
            let name = given["name"].as_str().unwrap_or_default();
            credentials.values().find(|one| one.user_id == owner && one.name == name)
        }
    };
    let credential = found
        .filter(|credential| given["secret"].as_str() == Some(&credential.secret))
        .ok_or_else(KeystoneFault::unauthorized)?;
    Ok(TokenGrant {
        user_id: credential.user_id.clone(),
        project_id: Some(credential.project_id.clone()),
        roles: with_implied(credential.roles.clone()),
        methods,
        application_credential_id: Some(credential.id.clone()),
        ..TokenGrant::default()
    })
}

/// Adds the project and the roles in it.
fn scoped(world: &World, mut grant: TokenGrant, scope: Option<&Value>) -> Result<TokenGrant, KeystoneFault> {
    let Some(scope) = scope else { return Ok(grant) };
    let project = &scope["project"];
    let found = match (project["id"].as_str(), project["name"].as_str()) {
        (Some(id), _) => world.identity.projects.get(id),
        (None, Some(name)) if is_default_domain(project) => world.identity.project_named(name),
        _ => None,
    };
    let project_id = found.map(|project| project.id.clone()).ok_or_else(KeystoneFault::unauthorized)?;
    grant.roles = world.identity.effective_roles(&grant.user_id, &project_id);
    if grant.roles.is_empty() {
        return Err(KeystoneFault::unauthorized());
    }
    grant.project_id = Some(project_id);
    Ok(grant)
}
