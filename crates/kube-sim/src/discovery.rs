//! What the server offers: versions, groups, resources.

use serde_json::{Value, json};

use crate::kinds::{self, Resource};
use crate::route::Review;
use crate::version::ApiVersion;

const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
/// Groups that have reviews only.
const REVIEW_GROUPS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// `/version`
pub(crate) fn version(version: ApiVersion) -> Value {
    let minor = version.minor();
    let mut document = json!({
        "major": "1", "minor": minor.to_string(), "gitVersion": version.git_version(),
        "gitCommit": "0000000000000000000000000000000000000000", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "go1.26.8", "compiler": "gc", "platform": "linux/amd64",
    });
    if version.shows_compatibility() {
        document["emulationMajor"] = "1".into();
        document["emulationMinor"] = minor.to_string().into();
        document["minCompatibilityMajor"] = "1".into();
        document["minCompatibilityMinor"] = minor.saturating_sub(1).to_string().into();
    }
    document
}

/// `/api`
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]})
}

fn group_names() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        kinds::built_in().map(|resource| resource.group).chain(REVIEW_GROUPS).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names
}

fn described(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

/// `/apis`
pub(crate) fn groups() -> Value {
    let groups: Vec<Value> = group_names().into_iter().map(described).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`
pub(crate) fn group(name: &str) -> Option<Value> {
    group_names().contains(&name).then(|| {
        let mut document = described(name);
        document["kind"] = "APIGroup".into();
        document["apiVersion"] = "v1".into();
        document
    })
}

/// `/api/v1` and `/apis/GROUP/VERSION`
pub(crate) fn resources(group: &str, version: &str) -> Option<Value> {
    let of_group = kinds::built_in().filter(|one| one.group == group && one.version == version);
    let mut resources: Vec<Value> = of_group.flat_map(entries).collect();
    let reviews =
        Review::ALL.iter().filter(|(_, review_group, ..)| *review_group == group && version == "v1");
    resources.extend(reviews.map(|(_, _, plural, kind)| {
        json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": false, "kind": kind,
            "verbs": ["create"]})
    }));
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!resources.is_empty()).then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
            "resources": resources})
    })
}

fn entries(resource: &'static Resource) -> Vec<Value> {
    let Resource { plural, kind, namespaced, .. } = resource;
    let mut main = json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind,
        "verbs": VERBS});
    if let Some(short_name) = resource.short_name {
        main["shortNames"] = json!([short_name]);
    }
    if matches!(*plural, "pods" | "services") {
        main["categories"] = json!(["all"]);
    }
    let subresource = resource.subresource.map(|subresource| {
        let name = format!("{plural}/{subresource}");
        if subresource == "token" {
            json!({"name": name, "singularName": "", "namespaced": namespaced, "group": "authentication.k8s.io",
                "version": "v1", "kind": "TokenRequest", "verbs": ["create"]})
        } else {
            json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind,
                "verbs": ["get", "patch", "update"]})
        }
    });
    std::iter::once(main).chain(subresource).collect()
}
