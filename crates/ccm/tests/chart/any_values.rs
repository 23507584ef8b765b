//! Whatever the schema of the values lets through renders, and Kubernetes takes it.
//!
//! Values are made from the schema. What Kubernetes itself says about the inside of its objects (a volume, an affinity) is not
//! repeated there: for those, and for the template in `controllerExtraArgs`, there are samples.

use std::collections::BTreeMap;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::Union;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestCaseResult, TestRng, TestRunner};
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::helm::{Objects, Release, helm, read};
use crate::kubernetes::knows;

/// Samples for a value by its path; `*` stands for an entry.
fn samples(path: &str) -> Option<Value> {
    let last = path.rsplit('.').next().unwrap_or(path);
    let probe = json!([{}, null, {"httpGet": {"path": "/healthz", "port": 10258, "scheme": "HTTPS"}, "periodSeconds": 3},
        {"exec": {"command": ["true"]}}, {"tcpSocket": {"port": 1}, "failureThreshold": 2}]);
    let profile = json!([{"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a"}]);
    Some(match last {
        "global" if path == last => json!([{}, null]),
        "common" if path == last => json!([{}, null]),
        // An image that nobody can pull is refused for another reason.
        "repository" => json!(["registry.example.org/openstack-ccm", "registry.example.org:5000/a/b_c"]),
        "controllerExtraArgs" => json!([
            null,
            {},
            "",
            " ",
            "- --concurrent-service-syncs=3",
            "--v=3 --kube-api-qps=7",
            "--v=3\n--user-agent=a",
            "# none\n- \"--user-agent=a b\"\n- --cluster-cidr={{ \"10.0.0.0/8\" }}",
            ["--v=3"]
        ]),
        "livenessProbe" | "readinessProbe" => probe,
        "seccompProfile" | "appArmorProfile" => profile,
        "sysctls" => json!([[], [{"name": "kernel.shm_rmid_forced", "value": "1"}]]),
        "resources" => {
            json!([{}, null, {"requests": {"cpu": 1}}, {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"cpu": 2, "memory": "1Gi"}}])
        }
        "tolerations" => {
            json!([[], null, [{"operator": "Exists"}], [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 3},
            {"key": "b/c", "operator": "Equal", "value": "d", "effect": "NoSchedule"}]])
        }
        "extraEnv" => {
            json!([[], null, [{"name": "A", "value": "b: 'c'"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]])
        }
        "nodeAffinity" => json!([{}, {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
            [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}]),
        "podAffinity" | "podAntiAffinity" => json!([{}, {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": "a", "labelSelector": {"matchLabels": {"b": "c"}}}]}]),
        "matchExpressions" => json!([[], [{"key": "a", "operator": "NotIn", "values": ["b"]}]]),
        "matchLabelKeys" => json!([["pod-template-hash"]]),
        "topologySpreadConstraints" => {
            json!([[], null, [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"},
            {"maxSkew": 2, "topologyKey": "b", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2, "labelSelector": {"matchLabels": {"c": "d"}}}]])
        }
        "extraInitContainers" => {
            json!([[], null, [{"name": "wait", "image": "a/b", "command": ["sleep", "1"]}]])
        }
        "extraVolumes" => {
            json!([[], null, [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/c"}}]])
        }
        "extraVolumeMounts" => {
            json!([[], null, [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b", "readOnly": true}]])
        }
        "extraObjects" => {
            json!([[], null, [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "{{ c }}"}}],
            ["apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n"]])
        }
        "hostAliases" => {
            json!([[], null, [{"ip": "192.0.2.1", "hostnames": ["a.b"]}, {"ip": "2001:db8::1", "hostnames": ["c"]}]])
        }
        "from" => {
            json!([[], null, [{"namespaceSelector": {"matchLabels": {"a": "b"}}}, {"ipBlock": {"cidr": "192.0.2.0/24"}}]])
        }
        "imagePullSecrets" => json!([[], null, [{"name": "a"}, {"name": "1"}]]),
        "addresses" => {
            json!([["203.0.113.1", "203.0.113.2"], ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"]])
        }
        "tlsConfig" => json!([{}, null, {"serverName": "a"}]),
        "block_storage" => json!([null, {}, {"ignore-volume-az": true}]),
        "useExistingSecret" | "existingSecret" | "secretName" => {
            json!([null])
        }
        _ => return None,
    })
}

/// Text that any value may hold.
const TEXT: &str = "[ -~äß€\n\t]{0,12}";

/// Makes values from a schema.
struct Maker {
    definitions: Value,
}

impl Maker {
    fn value(&self, schema: &Value, path: &str) -> BoxedStrategy<Value> {
        if let Some(samples) = samples(path) {
            return select(samples.as_array().unwrap().clone()).boxed();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            return self.value(&self.definitions[reference.trim_start_matches("#/definitions/")], path);
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            return Union::new(choices.iter().map(|choice| self.value(choice, path))).boxed();
        }
        if let Some(all) = schema["allOf"].as_array().filter(|_| schema["type"].is_null()) {
            return self.value(&all[0], path);
        }
        if schema["type"].is_null() && !schema["if"].is_null() {
            // Either the condition is one for a message, or it distinguishes a list from its entry.
            let other = self.value(&schema["else"], path);
            let entries = &schema["then"]["items"];
            if entries.is_null() {
                return other;
            }
            return prop_oneof![vec(self.value(entries, path), 0..3).prop_map(Value::from), other].boxed();
        }
        if let Some(values) = schema["enum"].as_array() {
            return select(values.clone()).boxed();
        }
        match &schema["type"] {
            Value::String(kind) => self.of_type(kind, schema, path),
            Value::Array(kinds) => {
                Union::new(kinds.iter().map(|kind| self.of_type(kind.as_str().unwrap(), schema, path)))
                    .boxed()
            }
            _ => panic!("{path}: what is made from {schema}?"),
        }
    }

    fn of_type(&self, kind: &str, schema: &Value, path: &str) -> BoxedStrategy<Value> {
        match kind {
            "null" => Just(Value::Null).boxed(),
            "boolean" => any::<bool>().prop_map(Value::from).boxed(),
            "integer" | "number" => {
                let (least, most) = (schema["minimum"].as_i64(), schema["maximum"].as_i64());
                (least.unwrap_or(0)..=most.unwrap_or(i64::from(u32::MAX))).prop_map(Value::from).boxed()
            }
            "string" => text(schema, path),
            "array" => {
                let most = schema["maxItems"].as_u64().map_or(3, |most| usize::try_from(most).unwrap());
                let entry = if schema["items"].is_null() {
                    json!({"type": "string"})
                } else {
                    schema["items"].clone()
                };
                vec(self.value(&entry, &format!("{path}.*")), 0..=most).prop_map(Value::from).boxed()
            }
            "object" => self.object(schema, path),
            other => panic!("{path}: {other}"),
        }
    }

    fn object(&self, schema: &Value, path: &str) -> BoxedStrategy<Value> {
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut parts: Vec<BoxedStrategy<Vec<(String, Value)>>> = Vec::new();
        for (name, property) in properties {
            let (name, below) = (name.clone(), format!("{path}.{name}"));
            let below = below.trim_start_matches('.').to_owned();
            let entry = self.value(property, &below).prop_map({
                let name = name.clone();
                move |value| vec![(name.clone(), value)]
            });
            // One in four: a release has few values of its own.
            let weight = if required.contains(&name.as_str()) { 0 } else { 3 };
            parts.push(if weight == 0 {
                entry.boxed()
            } else {
                prop_oneof![3 => Just(Vec::new()), 1 => entry].boxed()
            });
        }
        let further = &schema["additionalProperties"];
        if further.is_object() && schema["maxProperties"] != 0 {
            let names = match (&schema["propertyNames"], properties.is_empty()) {
                (Value::Object(names), true) => text(&Value::Object(names.clone()), path),
                _ => text(&json!({"pattern": "^[a-z]{5,9}$"}), path),
            };
            let entry = (names, self.value(further, &format!("{path}.*")));
            let entry = entry.prop_map(|(name, value)| (name.as_str().unwrap().to_owned(), value));
            parts.push(vec(entry, 0..3).boxed());
        }
        parts.prop_map(|parts| Value::Object(parts.into_iter().flatten().collect())).boxed()
    }
}

/// Text of a pattern, a format or any.
fn text(schema: &Value, path: &str) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return select(values.clone()).boxed();
    }
    let pattern = schema["pattern"].as_str().unwrap_or(TEXT);
    // Anchors are not made; a caret that negates stays.
    let pattern = pattern.replace("[^", "\0").replace(['^', '$'], "").replace('\0', "[^");
    let (least, most) =
        (schema["minLength"].as_u64().unwrap_or(0), schema["maxLength"].as_u64().unwrap_or(4096));
    let strategy = proptest::string::string_regex(&pattern).unwrap_or_else(|error| panic!("{path}: {error}"));
    let fits = move |text: &String| (least..=most).contains(&u64::try_from(text.len()).unwrap());
    strategy.prop_filter("its length", fits).prop_map(Value::from).boxed()
}

/// Any values that the schema describes.
fn any_values() -> BoxedStrategy<Value> {
    let schema: Value = serde_json::from_str(&read("charts/openstack-ccm/values.schema.json")).unwrap();
    let maker = Maker { definitions: schema["definitions"].clone() };
    let all: Vec<(String, Value)> = schema["properties"].as_object().unwrap().clone().into_iter().collect();
    let count = all.len();
    // Some of the values, as a person would set them.
    subsequence(all, 1..=count.min(14))
        .prop_flat_map(move |chosen| {
            let schema = json!({"properties": Map::from_iter(chosen.clone()), "required": chosen.iter().map(|(name, _)| name).collect::<Vec<_>>()});
            maker.object(&schema, "")
        })
        .prop_map(consistent)
        .boxed()
}

/// What no schema can say about two values: a mount needs its volume.
fn consistent(mut values: Value) -> Value {
    if values["extraVolumes"].as_array().is_none_or(Vec::is_empty) {
        values.as_object_mut().unwrap().remove("extraVolumeMounts");
    }
    values
}

/// The rendered objects, or nothing where the schema refuses the values.
fn rendered(values: &Value) -> Result<Option<Objects>, TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values.to_string()).unwrap();
    match Release::new().values_file(&file).try_text().unwrap() {
        Ok(text) => Ok(Some(Objects::parse(&text))),
        Err(error) if error.contains("values don't meet the specifications") => Ok(None),
        // Whether values fit to each other, such as where cloud.conf comes from, is nothing that the schema can say.
        Err(error)
            if [
                "there is no cloud.conf",
                "would be ignored silently",
                "workloadCluster.kubeconfigSecret is set",
            ]
            .iter()
            .any(|refusal| error.contains(refusal)) =>
        {
            Ok(None)
        }
        Err(error) => Err(TestCaseError::fail(error)),
    }
}

/// Runs a check on rendered objects of many values. Most of them have to come through the schema.
fn for_any_values(cases: u32, check: impl Fn(&Objects) -> TestCaseResult) {
    let counts = std::cell::RefCell::new(BTreeMap::<bool, u32>::new());
    // Always the same values: more of them with PROPTEST_CASES.
    let cases = std::env::var_os("PROPTEST_CASES").map_or(cases, |_| Config::default().cases);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 60, ..Config::default() };
    let generator = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let ran = TestRunner::new_with_rng(config, generator).run(&any_values(), |values| {
        let objects = rendered(&values)?;
        *counts.borrow_mut().entry(objects.is_some()).or_default() += 1;
        objects.as_ref().map_or(Ok(()), &check)
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    let counts = counts.into_inner();
    let (taken, refused) =
        (counts.get(&true).copied().unwrap_or_default(), counts.get(&false).copied().unwrap_or_default());
    assert!(taken > refused, "the schema refused {refused} of {} values", taken + refused);
}

#[test]
fn what_the_schema_lets_through_renders_as_objects_of_kubernetes() {
    if helm().is_none() {
        return;
    }
    for_any_values(64, |objects| objects.0.iter().try_for_each(knows).map_err(TestCaseError::fail));
}

#[test]
fn what_the_schema_lets_through_is_taken_by_a_real_server() {
    let Some(cluster) = Cluster::start() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(cluster.client());
    for_any_values(64, |objects| {
        for object in &objects.0 {
            runtime
                .block_on(taken(&client, object))
                .map_err(|error| TestCaseError::fail(format!("{error}\n{object:#}")))?;
        }
        Ok(())
    });
}

/// A strict dry run of a server-side apply.
async fn taken(client: &kube::Client, object: &Value) -> Result<(), String> {
    let mut object: DynamicObject =
        serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    let types = object.types.clone().ok_or("no types")?;
    // A pod of `helm test` is taken where its account is there, which a dry run does not make.
    if types.api_version.starts_with("monitoring.coreos.com/") || types.kind == "Pod" {
        return Ok(());
    }
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).map_err(|error| error.to_string())?);
    let api: Api<DynamicObject> = if types.kind.starts_with("Cluster")
        || types.kind.starts_with("Validating")
        || types.kind == "Namespace"
    {
        Api::all_with(client.clone(), &kind)
    } else {
        // Other namespaces are not there; which one it is does not matter here.
        object.metadata.namespace = Some("kube-system".to_owned());
        Api::namespaced_with(client.clone(), "kube-system", &kind)
    };
    let params = PatchParams { dry_run: true, ..PatchParams::apply("test").force().validation_strict() };
    let name = object.metadata.name.clone().ok_or("no name")?;
    api.patch(&name, &params, &Patch::Apply(&object)).await.map(drop).map_err(|error| error.to_string())
}
