//! The JSON of a login, identity v3.

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{ApplicationCredentialName, Credentials, DomainRef, InDomain, Scope};

/// Returns the body of `POST /v3/auth/tokens`. It contains the secret in clear text and must not be logged.
pub(super) fn body(credentials: &Credentials, scope: &Scope) -> Value {
    let mut auth = json!({ "identity": identity(credentials) });
    if let Some(scope) = requested_scope(credentials, scope) {
        auth["scope"] = scope;
    }
    json!({ "auth": auth })
}

fn identity(credentials: &Credentials) -> Value {
    match credentials {
        Credentials::Password { user, password } => {
            let mut user = object(user);
            user["password"] = json!(password.expose_secret());
            json!({ "methods": ["password"], "password": { "user": user } })
        }
        Credentials::ApplicationCredential { name, secret } => {
            let mut credential = match name {
                ApplicationCredentialName::Id(id) => json!({ "id": id }),
                ApplicationCredentialName::Name { name, user } => {
                    json!({ "name": name, "user": object(user) })
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

/// Returns the scope to request: none for an application credential, with which Keystone refuses any scope, even its own project.
fn requested_scope(credentials: &Credentials, scope: &Scope) -> Option<Value> {
    match (credentials, scope) {
        (Credentials::ApplicationCredential { .. }, _) | (_, Scope::Unscoped) => None,
        (_, Scope::Project(project)) => Some(json!({ "project": object(project) })),
        (_, Scope::Domain(domain)) => Some(json!({ "domain": domain_object(domain) })),
        (_, Scope::System) => Some(json!({ "system": { "all": true } })),
        (_, Scope::Trust { trust_id }) => Some(json!({ "OS-TRUST:trust": { "id": trust_id } })),
    }
}

fn domain_object(domain: &DomainRef) -> Value {
    match domain {
        DomainRef::Id(id) => json!({ "id": id }),
        DomainRef::Name(name) => json!({ "name": name }),
    }
}

fn object(user_or_project: &InDomain) -> Value {
    match user_or_project {
        InDomain::Id(id) => json!({ "id": id }),
        InDomain::Name { name, domain } => json!({ "name": name, "domain": domain_object(domain) }),
    }
}
