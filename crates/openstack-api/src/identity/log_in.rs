//! The JSON of a log-in, identity v3.

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{ApplicationCredentialName, Credentials, DomainRef, ProjectRef, Scope, UserRef};

/// Body of `POST /v3/auth/tokens`. Holds the secret in clear: never log it.
pub(super) fn body(credentials: &Credentials, scope: &Scope) -> Value {
    let mut auth = json!({ "identity": identity(credentials) });
    if let Some(scope) = requested_scope(credentials, scope) {
        auth["scope"] = scope;
    }
    json!({ "auth": auth })
}

fn identity(credentials: &Credentials) -> Value {
    match credentials {
        Credentials::Password { user, password } | Credentials::Trust { trustee: user, password, .. } => {
            let mut user = user_object(user);
            user["password"] = json!(password.expose_secret());
            json!({ "methods": ["password"], "password": { "user": user } })
        }
        Credentials::ApplicationCredential { name, secret } => {
            let mut credential = match name {
                ApplicationCredentialName::Id(id) => json!({ "id": id }),
                ApplicationCredentialName::Name { name, user } => {
                    json!({ "name": name, "user": user_object(user) })
                }
            };
            credential["secret"] = json!(secret.expose_secret());
            json!({ "methods": ["application_credential"], "application_credential": credential })
        }
        Credentials::Token { token } => {
            json!({ "methods": ["token"], "token": { "id": token.expose_secret() } })
        }
    }
}

/// Keystone refuses a log-in with an application credential that asks for a scope, even for its own project.
fn requested_scope(credentials: &Credentials, scope: &Scope) -> Option<Value> {
    match credentials {
        Credentials::ApplicationCredential { .. } => None,
        Credentials::Trust { trust_id, .. } => Some(trust(trust_id)),
        Credentials::Password { .. } | Credentials::Token { .. } => match scope {
            Scope::Project(project) => Some(json!({ "project": project_object(project) })),
            Scope::Domain(domain) => Some(json!({ "domain": domain_object(domain) })),
            Scope::System => Some(json!({ "system": { "all": true } })),
            Scope::Trust { trust_id } => Some(trust(trust_id)),
            Scope::Unscoped => None,
        },
    }
}

fn trust(id: &str) -> Value {
    json!({ "OS-TRUST:trust": { "id": id } })
}

fn domain_object(domain: &DomainRef) -> Value {
    match domain {
        DomainRef::Id(id) => json!({ "id": id }),
        DomainRef::Name(name) => json!({ "name": name }),
    }
}

fn user_object(user: &UserRef) -> Value {
    match user {
        UserRef::Id(id) => json!({ "id": id }),
        UserRef::Name { name, domain } => json!({ "name": name, "domain": domain_object(domain) }),
    }
}

fn project_object(project: &ProjectRef) -> Value {
    match project {
        ProjectRef::Id(id) => json!({ "id": id }),
        ProjectRef::Name { name, domain } => json!({ "name": name, "domain": domain_object(domain) }),
    }
}
