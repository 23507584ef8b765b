//! Who asks, and what they may do.

use std::collections::BTreeMap;
use std::fmt;

use http::{HeaderMap, header};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::object::{text, texts};
use crate::route::Review;

/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// Someone who sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// For example `system:serviceaccount:kube-system:openstack-ccm`.
    pub name: String,
    /// For example `system:authenticated`.
    pub groups: Vec<String>,
}

impl User {
    /// A user who is in the group of all who logged in.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), groups: vec!["system:authenticated".to_owned()] }
    }

    /// Whom a request without credentials comes from.
    fn administrator() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            groups: vec![MASTERS.to_owned(), "system:authenticated".to_owned()],
        }
    }

    /// The user of a service account.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }

    fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// What someone wants to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; `get` or `post` for paths.
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
    fn from_review(spec: &Value) -> Self {
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

/// Known tokens and who may do what.
pub(crate) struct Access {
    tokens: BTreeMap<String, User>,
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
    pub(crate) fn add_token(&mut self, token: &str, user: User) {
        self.tokens.insert(token.to_owned(), user);
    }

    pub(crate) fn set_authorizer(&mut self, authorizer: Authorizer) {
        self.authorizer = authorizer;
    }

    /// Who sent a request: by token, else the administrator, who may speak for others (`Impersonate-User`).
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<User, Failure> {
        let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let user = match value(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "))
        {
            Some(token) => self.tokens.get(token).cloned().ok_or_else(Failure::unauthorized)?,
            None => User::administrator(),
        };
        match value("impersonate-user") {
            Some(name) if user.is_master() => Ok(User::named(name)),
            Some(_) | None => Ok(user),
        }
    }

    fn is_allowed(&self, user: &User, attributes: &Attributes) -> bool {
        user.is_master() || (self.authorizer)(user, attributes)
    }

    /// 403 in the words of RBAC, unless it is allowed.
    pub(crate) fn authorize(&self, user: &User, attributes: &Attributes) -> Result<(), Failure> {
        if self.is_allowed(user, attributes) { Ok(()) } else { Err(attributes.refusal(user)) }
    }

    /// Answers a question about a user.
    pub(crate) fn review(&self, review: Review, asking: &User, sent: &Value) -> Value {
        let spec = &sent["spec"];
        let status = match review {
            Review::Token => match self.tokens.get(text(spec, "/token")) {
                Some(user) => json!({"authenticated": true,
                    "user": {"username": user.name, "groups": user.groups}}),
                None => json!({"user": {}, "error": "invalid bearer token"}),
            },
            Review::SubjectAccess => {
                let groups = texts(spec, "/groups").into_iter().map(str::to_owned).collect();
                let user = User { name: text(spec, "/user").to_owned(), groups };
                json!({"allowed": self.is_allowed(&user, &Attributes::from_review(spec))})
            }
            Review::SelfSubjectAccess => {
                json!({"allowed": self.is_allowed(asking, &Attributes::from_review(spec))})
            }
        };
        let kind = Review::ALL.iter().find(|(one, ..)| *one == review).map_or("", |(.., kind)| *kind);
        json!({"kind": kind, "apiVersion": review.api_version(), "metadata": {}, "spec": spec, "status": status})
    }
}
