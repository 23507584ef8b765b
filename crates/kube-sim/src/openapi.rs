//! `/openapi/v3`: enough for kubectl to learn that the server validates fields itself, and for others to see which
//! fields a release has.

use serde_json::{Map, Value, json};

use crate::kinds::{self, Resource};
use crate::schema::{Scalar, Schema, Topology};
use crate::version::ApiVersion;

/// The index, or the document of one group and version (`api/v1`, `apis/GROUP/v1`).
pub(crate) fn document(path: &str, version: ApiVersion) -> Option<Value> {
    if path.is_empty() {
        let paths: Map<String, Value> = kinds::built_in()
            .map(|resource| {
                let path = group_path(resource);
                let link = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
                (path, link)
            })
            .collect();
        return Some(json!({"paths": paths}));
    }
    let resources: Vec<&Resource> = kinds::built_in().filter(|one| group_path(one) == path).collect();
    if resources.is_empty() {
        return None;
    }
    let paths: Map<String, Value> = resources.iter().flat_map(|resource| operations(resource)).collect();
    let schemas: Map<String, Value> = resources
        .iter()
        .map(|resource| {
            let mut schema = described(&resource.schema, version);
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
            (schema_name(resource), schema)
        })
        .collect();
    Some(json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": version.git_version()},
        "paths": paths, "components": {"schemas": schemas}}))
}

fn group_path(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}

fn schema_name(resource: &Resource) -> String {
    let group = match resource.group {
        "" => "core",
        group => group.split('.').next().unwrap_or_default(),
    };
    format!("io.k8s.api.{group}.{}.{}", resource.version, resource.kind)
}

fn operations(resource: &Resource) -> Vec<(String, Value)> {
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("/{}{scope}/{}", group_path(resource), resource.plural);
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let operation = |action: &str| {
        json!({
            "parameters": [query("dryRun"), query("fieldManager"), query("fieldValidation")],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind":
                {"group": resource.group, "version": resource.version, "kind": resource.kind},
        })
    };
    vec![
        (collection.clone(), json!({"post": operation("post")})),
        (format!("{collection}/{{name}}"), json!({"put": operation("put"), "patch": operation("patch")})),
    ]
}

fn described(schema: &Schema, version: ApiVersion) -> Value {
    match schema {
        Schema::Scalar(Scalar::Text) => json!({"type": "string"}),
        Schema::Scalar(Scalar::Integer) => json!({"type": "integer", "format": "int32"}),
        Schema::Scalar(Scalar::Flag) => json!({"type": "boolean"}),
        Schema::Scalar(Scalar::Time | Scalar::MicroTime) => json!({"type": "string", "format": "date-time"}),
        Schema::Scalar(Scalar::IntegerOrText) => json!({"type": "string", "format": "int-or-string"}),
        Schema::Map => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Schema::Anything => json!({"type": "object"}),
        Schema::List(item, topology) => {
            let mut list = json!({"type": "array", "items": described(item, version)});
            match topology {
                Topology::Atomic => list["x-kubernetes-list-type"] = "atomic".into(),
                Topology::Set => {
                    list["x-kubernetes-list-type"] = "set".into();
                    list["x-kubernetes-patch-strategy"] = "merge".into();
                }
                Topology::Keyed(keys) => {
                    list["x-kubernetes-list-type"] = "map".into();
                    let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
                    list["x-kubernetes-list-map-keys"] = json!(names);
                    list["x-kubernetes-patch-strategy"] = "merge".into();
                    list["x-kubernetes-patch-merge-key"] = names.first().copied().into();
                }
            }
            list
        }
        Schema::Object(fields) | Schema::AtomicObject(fields) => {
            let known = fields.iter().filter(|field| field.since <= version.minor());
            let properties: Map<String, Value> =
                known.map(|field| (field.name.clone(), described(&field.schema, version))).collect();
            json!({"type": "object", "properties": properties})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_ip_mode(version: ApiVersion) -> bool {
        let document = document("api/v1", version).unwrap();
        let ingress = "/components/schemas/io.k8s.api.core.v1.Service/properties/status/properties/loadBalancer\
                       /properties/ingress/items/properties/ipMode";
        document.pointer(ingress).is_some()
    }

    #[test]
    fn the_schema_shows_the_release_but_not_the_gate() {
        assert!(!has_ip_mode(ApiVersion::V1_28));
        assert!(has_ip_mode(ApiVersion::V1_29));
        assert!(has_ip_mode(ApiVersion::V1_36));
    }
}
