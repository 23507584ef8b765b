//! Who asks, and what they may do.

use std::collections::BTreeMap;
use std::fmt;

use http::{HeaderMap, header};
use serde_json::Value;

use crate::failure::Failure;
use crate::object::text;

/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// Someone who sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// For example `system:serviceaccount:kube-system:openstack-ccm`.
    pub name: String,
    /// For example `system:authenticated`.
    pub groups: Vec<String>,
    /// The uid of a service account.
    pub uid: Option<String>,
    /// What else the token says, for example which token it is.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who is in the group of all who logged in.
    pub fn named(name: &str) -> Self {
        Self::member(name, ["system:authenticated"].map(str::to_owned).into())
    }

    /// A user of whom no more is known than the groups.
    pub(crate) fn member(name: &str, groups: Vec<String>) -> Self {
        Self { name: name.to_owned(), groups, uid: None, extra: BTreeMap::new() }
    }

    /// Whom a request without credentials comes from.
    fn administrator() -> Self {
        Self::member("kubernetes-admin", [MASTERS, "system:authenticated"].map(str::to_owned).into())
    }

    /// The user of a service account.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        let groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        Self::member(&format!("system:serviceaccount:{namespace}:{name}"), groups)
    }

    fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// What someone wants to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`; `get` or `post` for paths.
    pub verb: String,
    /// API group, empty for the core group.
    pub group: String,
    /// Plural, empty for a request that is not about objects.
    pub resource: String,
    /// For example `status`.
    pub subresource: String,
    /// Empty for cluster-scoped objects and all namespaces.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// Path of a request that is not about objects, for example `/metrics`.
    pub path: String,
}

impl Attributes {
    pub(crate) fn from_review(spec: &Value) -> Self {
        let field = |name: &str| text(spec, &format!("/resourceAttributes/{name}")).to_owned();
        let other = |name: &str| text(spec, &format!("/nonResourceAttributes/{name}")).to_owned();
        let verb = match field("verb") {
            verb if verb.is_empty() => other("verb"),
            verb => verb,
        };
        Self {
            verb,
            group: field("group"),
            resource: field("resource"),
            subresource: field("subresource"),
            namespace: field("namespace"),
            name: field("name"),
            path: other("path"),
        }
    }

    fn refusal(&self, user: &User) -> Failure {
        let resource = if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        };
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        let detail = if self.resource.is_empty() {
            format!("User \"{}\" cannot {} path \"{}\"", user.name, self.verb, self.path)
        } else {
            format!(
                "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {place}",
                user.name, self.verb, self.group
            )
        };
        let subject = crate::failure::Subject { group: &self.group, kind: &self.resource, name: &self.name };
        Failure::forbidden(subject, &detail)
    }
}

/// Decides about requests of everyone who is not in `system:masters`.
type Authorizer = Box<dyn Fn(&User, &Attributes) -> bool + Send + Sync>;

/// A known token.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// Whose it is.
    pub(crate) user: User,
    /// Whom it may be shown to.
    pub(crate) audiences: Vec<String>,
}

/// Known tokens and who may do what.
pub(crate) struct Access {
    tokens: BTreeMap<String, Token>,
    authorizer: Authorizer,
}

impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secrets, even here.
        formatter.debug_struct("Access").field("tokens", &self.tokens.len()).finish_non_exhaustive()
    }
}

impl Default for Access {
    fn default() -> Self {
        Self { tokens: BTreeMap::new(), authorizer: Box::new(|_, _| false) }
    }
}

impl Access {
    pub(crate) fn add_token(&mut self, text: &str, token: Token) {
        self.tokens.insert(text.to_owned(), token);
    }

    /// What is known about a token.
    pub(crate) fn token(&self, text: &str) -> Option<&Token> {
        self.tokens.get(text)
    }

    pub(crate) fn set_authorizer(&mut self, authorizer: Authorizer) {
        self.authorizer = authorizer;
    }

    /// Who sent a request: by token, else the administrator, who may speak for others (`Impersonate-User`).
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<User, Failure> {
        let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let user = match value(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "))
        {
            Some(text) => {
                let token = self.tokens.get(text).ok_or_else(Failure::unauthorized)?;
                token.user.clone()
            }
            None => User::administrator(),
        };
        match value("impersonate-user") {
            Some(name) if user.is_master() => Ok(User::named(name)),
            Some(_) | None => Ok(user),
        }
    }

    pub(crate) fn is_allowed(&self, user: &User, attributes: &Attributes) -> bool {
        user.is_master() || (self.authorizer)(user, attributes)
    }

    /// 403 in the words of RBAC, unless it is allowed.
    pub(crate) fn authorize(&self, user: &User, attributes: &Attributes) -> Result<(), Failure> {
        if self.is_allowed(user, attributes) { Ok(()) } else { Err(attributes.refusal(user)) }
    }
}
