//! No value is bent by YAML: what must be text is refused as a number, with the word to quote it, and null is absent.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, json};

use crate::configuration::cloud_conf;
use crate::helm::{Release, read};

fn with_values(text: &str) -> (tempfile::TempDir, Release) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, text).unwrap();
    (folder, Release::new().values_file(&file))
}

#[rstest]
#[case::leading_zero("cloudConfig: {global: {password: 0123456789}}", "/cloudConfig/global/password")]
#[case::octal("cloudConfig: {global: {password: 0755}}", "/cloudConfig/global/password")]
#[case::yes("cloudConfig: {global: {password: yes}}", "/cloudConfig/global/password")]
#[case::many_digits("cloudConfig: {global: {tenant-id: 12345678901234567}}", "/cloudConfig/global/tenant-id")]
#[case::in_a_list("cloudConfig: {networking: {public-network-name: [1]}}", "/public-network-name/0")]
#[case::in_a_class("cloudConfig: {loadBalancerClasses: {a: {subnet-id: 1e3}}}", "/a/subnet-id")]
#[case::in_a_namespace(
    "cloudConfig: {loadBalancerNamespaces: {a: {allowed-ports: [1]}}}",
    "/allowed-ports/0"
)]
#[case::a_key_that_nobody_knows("cloudConfig: {global: {pasword: 0755}}", "/cloudConfig/global/pasword")]
#[case::tag("image: {tag: 1.10}", "/image/tag")]
#[case::cluster("cluster: {name: 0755}", "/cluster/name")]
#[case::annotation("podAnnotations: {scrape: true}", "/podAnnotations/scrape")]
#[case::annotation_of_all("commonAnnotations: {cost: 7}", "/commonAnnotations/cost")]
#[case::label("podLabels: {scrape: true}", "/podLabels/scrape")]
#[case::label_of_dashboard("grafanaDashboard: {labels: {grafana_dashboard: 1}}", "/grafana_dashboard")]
#[case::label_of_monitor("serviceMonitor: {additionalLabels: {a: on}}", "/serviceMonitor/additionalLabels/a")]
#[case::variable("extraEnv: [{name: OS_CCM_REGIONAL, value: true}]", "/extraEnv/0/value")]
#[case::selector("nodeSelector: {node-role.kubernetes.io/etcd: true}", "/etcd")]
fn what_must_be_text_is_refused_as_anything_else(#[case] values: &str, #[case] named: &str) {
    let (_folder, release) = with_values(values);
    let Some(error) = release.error() else { return };
    assert!(error.contains("text in quotes") && error.contains("--set-string"), "{error}");
    // A slash in a key is written as `~1`.
    assert!(error.replace("~1", "/").contains(named), "{error}");
}

#[test]
fn quoted_values_arrive_as_they_were_written() {
    let (_folder, release) = with_values(
        "cloudConfig:\n  global: {password: '0123456789', tenant-id: '12345678901234567', region: null, \
         tls-insecure: true}\n  loadBalancer: {max-shared-lb: 3, monitor-delay: null, create-monitor: yes}\n",
    );
    let Some(objects) = release.objects() else { return };
    let text = cloud_conf(&objects);
    assert!(
        text.starts_with(
            "[Global]\npassword = \"0123456789\"\ntenant-id = \"12345678901234567\"\ntls-insecure = \"true\"\n\n"
        ),
        "{text}"
    );
    assert!(text.contains("[LoadBalancer]\ncreate-monitor = \"true\"\nmax-shared-lb = \"3\"\n\n"), "{text}");
    assert!(!text.contains("nil"), "{text}");
}

/// Every property that the schema describes, as a path.
fn properties(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        properties(property, &path, found);
        found.push(path);
    }
}

/// Helm takes the value away, and with it the chart's default.
#[test]
fn null_in_place_of_any_value_renders_or_is_refused_by_name() {
    let schema: Value = serde_json::from_str(&read("charts/openstack-ccm/values.schema.json")).unwrap();
    let mut paths = Vec::new();
    properties(&schema, "", &mut paths);
    assert!(paths.len() > 80, "{paths:?}");
    let switched_on =
        ["serviceMonitor.enabled=true", "prometheusRule.enabled=true", "grafanaDashboard.enabled=true"];
    for path in &paths {
        let release = switched_on.iter().fold(Release::new(), |release, setting| release.set(setting));
        let Some(rendered) = release.set(&format!("{path}=null")).try_text() else { return };
        if let Err(error) = rendered {
            let name = path.rsplit('.').next().unwrap();
            let meant = error.contains("don't meet the specifications") || error.contains("execution error");
            assert!(meant && (error.contains(name) || path == "kind"), "{path}: {error}");
        }
    }
}

/// Keys of each section by the type that docs/reference/cloud-conf.md states, as the schema has to have them.
fn types_of_keys() -> BTreeMap<String, BTreeMap<String, Value>> {
    let page = read("docs/reference/cloud-conf.md");
    let mut sections: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for part in page.split("\n## [").skip(1) {
        let name = part.split([' ', ']']).next().unwrap();
        let table = part.split("\n## ").next().unwrap();
        for row in table.lines().filter_map(|line| line.strip_prefix("| `")) {
            let (key, rest) = row.split_once('`').unwrap();
            let definition = match rest.split('|').nth(1).unwrap().trim() {
                "number" => "number",
                bool if bool.starts_with("bool") => "flag",
                // A boolean in all but name: OCCM's documentation writes it without quotes.
                _ if key == "tls-insecure" => "flag",
                list if list.starts_with("list") => "list",
                _ => "text",
            };
            let keys = sections.entry(name.to_owned()).or_default();
            keys.insert(key.to_owned(), json!({"$ref": format!("#/definitions/{definition}")}));
        }
    }
    sections
}

#[test]
fn the_schema_knows_the_type_of_every_key_of_cloud_conf() {
    let schema: Value = serde_json::from_str(&read("charts/openstack-ccm/values.schema.json")).unwrap();
    let sections = types_of_keys();
    assert_eq!(sections.len(), 7, "{sections:?}");
    for (section, keys) in sections {
        let known = &schema["definitions"][format!("cloudConf{section}")]["properties"];
        for (key, expected) in &keys {
            assert_eq!(
                known[key], *expected,
                "values.schema.json, definitions.cloudConf{section}.properties: this line belongs there:\n\
                 \"{key}\": {expected},"
            );
        }
        assert_eq!(
            known.as_object().unwrap().len(),
            keys.len(),
            "cloudConf{section} has keys that are no more"
        );
    }
}
