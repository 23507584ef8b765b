//! What a path means.

use crate::kinds::{self, Part, Resource};
use crate::verbs::Target;

/// What a request's path addresses.
#[derive(Clone)]
pub(crate) enum Route {
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz` and below.
    Health,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    Resources {
        group: String,
        version: String,
    },
    /// `/openapi/v3` and below; the rest of the path.
    OpenApi(String),
    /// Objects, or one object or its status.
    Objects(Target),
    /// `.../serviceaccounts/NAME/token`
    Token(Target),
    /// An object that is answered and not stored, for example a TokenReview.
    Review(Review),
    /// A resource in a namespace that a known group does not have.
    UnknownResource,
    Unknown,
}

/// Questions about users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Review {
    Token,
    SubjectAccess,
    SelfSubjectAccess,
}

impl Review {
    /// Group, plural and kind of all reviews.
    pub(crate) const ALL: [(Self, &'static str, &'static str, &'static str); 3] = [
        (Self::Token, "authentication.k8s.io", "tokenreviews", "TokenReview"),
        (Self::SubjectAccess, "authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
        (
            Self::SelfSubjectAccess,
            "authorization.k8s.io",
            "selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
        ),
    ];

    /// `authentication.k8s.io/v1`
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Token => "authentication.k8s.io/v1",
            Self::SubjectAccess | Self::SelfSubjectAccess => "authorization.k8s.io/v1",
        }
    }
}

impl Route {
    /// Reads a path; its segments may be percent-encoded.
    pub(crate) fn parse(path: &str) -> Self {
        let segments: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["version"] => Self::Version,
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["openapi", "v3", rest @ ..] => Self::OpenApi(rest.join("/")),
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::Resources { group: String::new(), version: (*version).to_owned() },
            ["apis", group, version] => {
                Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() }
            }
            ["api", version, rest @ ..] => objects("", version, rest),
            ["apis", group, version, rest @ ..] => objects(group, version, rest),
            _ => Self::Unknown,
        }
    }
}

fn decode(segment: &str) -> String {
    // `+` is a plus sign in a path.
    let query = format!("s={}", segment.replace('+', "%2B"));
    url::form_urlencoded::parse(query.as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Route {
    let review = Review::ALL
        .iter()
        .find(|(_, review_group, plural, _)| *review_group == group && version == "v1" && rest == [*plural]);
    if let Some((review, ..)) = review {
        return Route::Review(*review);
    }
    let find = |plural: &str| kinds::find(group, version, plural);
    match rest {
        ["namespaces", namespace, plural, rest @ ..] if !is_subresource_of_namespace(plural) => {
            match find(plural) {
                Some(resource) if resource.namespaced => one(resource, namespace, rest),
                Some(_) => Route::Unknown,
                None if kinds::all().iter().any(|one| one.group == group && one.version == version) => {
                    Route::UnknownResource
                }
                None => Route::Unknown,
            }
        }
        [plural, rest @ ..] => match find(plural) {
            Some(resource) if !resource.namespaced || rest.is_empty() => one(resource, "", rest),
            Some(_) | None => Route::Unknown,
        },
        [] => Route::Unknown,
    }
}

fn is_subresource_of_namespace(segment: &str) -> bool {
    matches!(segment, "status" | "finalize")
}

fn one(resource: &'static Resource, namespace: &str, rest: &[&str]) -> Route {
    let target = |name: &str, part: Part| Target {
        resource,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        part,
    };
    match rest {
        [] => Route::Objects(target("", Part::Main)),
        [name] => Route::Objects(target(name, Part::Main)),
        [name, "status"] if resource.has_status() => Route::Objects(target(name, Part::Status)),
        [name, "token"] if resource.subresource == Some("token") => Route::Token(target(name, Part::Main)),
        _ => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(path: &str) -> String {
        match Route::parse(path) {
            Route::Objects(target) => {
                format!("{}|{}|{}|{:?}", target.resource.plural, target.namespace, target.name, target.part)
            }
            Route::Token(target) => format!("token of {}", target.name),
            Route::Review(review) => format!("{review:?}"),
            Route::Unknown => "unknown".to_owned(),
            _ => "other".to_owned(),
        }
    }

    #[test]
    fn paths_of_objects_are_understood() {
        assert_eq!(described("/api/v1/services"), "services|||Main");
        assert_eq!(described("/api/v1/namespaces/kube-system"), "namespaces||kube-system|Main");
        assert_eq!(
            described("/api/v1/namespaces/default/services/web/status"),
            "services|default|web|Status"
        );
        assert_eq!(described("/api/v1/nodes/a%2Eb"), "nodes||a.b|Main");
        assert_eq!(described("/api/v1/namespaces/x/nodes"), "unknown");
        assert_eq!(described("/apis/coordination.k8s.io/v1/namespaces/a/leases/l"), "leases|a|l|Main");
        assert_eq!(described("/api/v1/namespaces/a/serviceaccounts/s/token"), "token of s");
        assert_eq!(described("/apis/authentication.k8s.io/v1/tokenreviews"), "Token");
        assert_eq!(described("/apis/absent.example/v1/things"), "unknown");
    }
}
