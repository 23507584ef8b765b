//! Users, projects, roles, tokens and the other ways to log in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::World;

/// What Keystone keeps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity {
    /// Projects by id.
    pub(crate) projects: BTreeMap<String, Project>,
    /// Users by id.
    pub(crate) users: BTreeMap<String, User>,
    /// Role ids by name.
    pub(crate) roles: BTreeMap<String, String>,
    /// The names of the roles that a user has in a project, implied ones not included.
    pub(crate) grants: BTreeMap<(String, String), BTreeSet<String>>,
    /// Tokens by their text.
    pub(crate) tokens: BTreeMap<String, Token>,
    /// Application credentials by id.
    pub(crate) application_credentials: BTreeMap<String, ApplicationCredential>,
    /// How long a token lives.
    pub(crate) token_lifetime: Duration,
    /// Ids of the services and endpoints of the catalog, drawn once.
    pub(crate) catalog_ids: BTreeMap<String, String>,
}

/// A project in the domain `default`.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A user in the domain `default`.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) password: String,
}

/// An issued token.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) user_id: String,
    /// `None` for an unscoped token.
    pub(crate) project_id: Option<String>,
    pub(crate) roles: BTreeSet<String>,
    pub(crate) methods: Vec<String>,
    pub(crate) audit_ids: Vec<String>,
    pub(crate) issued_at: Duration,
    pub(crate) expires_at: Duration,
    pub(crate) revoked: bool,
    pub(crate) application_credential_id: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ApplicationCredential {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) secret: String,
    pub(crate) user_id: String,
    pub(crate) project_id: String,
    pub(crate) roles: BTreeSet<String>,
}

/// Who makes a request, as the services' middleware learns it from the token.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user_id: String,
    /// Empty for an unscoped token.
    pub(crate) project_id: String,
    pub(crate) roles: BTreeSet<String>,
}

impl Caller {
    /// Whether the caller has a role.
    pub(crate) fn has_role(&self, role: &str) -> bool {
        self.roles.contains(role)
    }

    /// Whether the caller may do everything.
    pub(crate) fn is_admin(&self) -> bool {
        self.has_role("admin")
    }

    /// Whether an object of this project is the caller's, or the caller is an administrator.
    pub(crate) fn owns(&self, project_id: &str) -> bool {
        self.is_admin() || (!self.project_id.is_empty() && self.project_id == project_id)
    }
}

impl Identity {
    pub(crate) fn project_named(&self, name: &str) -> Option<&Project> {
        self.projects.values().find(|project| project.name == name)
    }

    pub(crate) fn user_named(&self, name: &str) -> Option<&User> {
        self.users.values().find(|user| user.name == name)
    }

    /// The roles of a user in a project with those that they imply; empty when there is no grant.
    pub(crate) fn effective_roles(&self, user_id: &str, project_id: &str) -> BTreeSet<String> {
        let granted = self.grants.get(&(user_id.to_owned(), project_id.to_owned()));
        with_implied(granted.cloned().unwrap_or_default())
    }
}

/// Adds the roles that Keystone's bootstrap makes others imply.
pub(crate) fn with_implied(mut roles: BTreeSet<String>) -> BTreeSet<String> {
    for (role, implied) in [("admin", "manager"), ("manager", "member"), ("member", "reader")] {
        if roles.contains(role) {
            roles.insert(implied.to_owned());
        }
    }
    roles
}

impl World {
    /// Who a token belongs to; `None` when it is unknown, revoked or expired.
    pub(crate) fn caller(&self, token: &str) -> Option<Caller> {
        let token = self.valid_token(token)?;
        Some(Caller {
            user_id: token.user_id.clone(),
            project_id: token.project_id.clone().unwrap_or_default(),
            roles: token.roles.clone(),
        })
    }

    /// A token that is neither revoked nor expired.
    pub(crate) fn valid_token(&self, token: &str) -> Option<&Token> {
        self.identity.tokens.get(token).filter(|token| !token.revoked && self.now() < token.expires_at)
    }

    /// Issues a token; `roles` are the effective ones.
    pub(crate) fn issue_token(&mut self, grant: TokenGrant) -> Token {
        let id = format!("gAAAAAB{}{}", self.new_hex_id(), self.new_hex_id());
        let mut audit_ids = vec![self.new_hex_id()];
        audit_ids.extend(grant.parent_audit_id);
        let issued_at = self.now();
        let expires_at = grant.expires_at.unwrap_or(issued_at + self.identity.token_lifetime);
        let token = Token {
            id: id.clone(),
            user_id: grant.user_id,
            project_id: grant.project_id,
            roles: grant.roles,
            methods: grant.methods,
            audit_ids,
            issued_at,
            expires_at,
            revoked: false,
            application_credential_id: grant.application_credential_id,
        };
        // Keystone keeps none: an expired token is as good as an unknown one.
        let now = self.now();
        self.identity.tokens.retain(|_, token| now < token.expires_at);
        self.identity.tokens.insert(id, token.clone());
        token
    }
}

/// What a new token is to say.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenGrant {
    pub(crate) user_id: String,
    pub(crate) project_id: Option<String>,
    pub(crate) roles: BTreeSet<String>,
    pub(crate) methods: Vec<String>,
    pub(crate) parent_audit_id: Option<String>,
    /// A token made from a token lives no longer than its parent.
    pub(crate) expires_at: Option<Duration>,
    pub(crate) application_credential_id: Option<String>,
}
