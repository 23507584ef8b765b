//! The pages of the charts' values, written from values.yaml and its schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::helm::{read, repository};

/// The charts, and how their pages begin.
const CHARTS: [(&str, &str); 2] = [("openstack-ccm", HEAD), ("ip-mode-overlay", HEAD_OF_OVERLAY)];

const HEAD_OF_OVERLAY: &str = "\
# ip-mode-overlay

Sets `ipMode: Proxy` beside the load balancer controller that a cluster already has. [docs/overlay](../../docs/overlay/README.md) explains what it is
for, and whether to use the policy or the controller.

## Values

<!-- Generated from values.yaml by `make manifests`; do not edit. -->

| Value | Default | Meaning |
| --- | --- | --- |
";

const HEAD: &str = "\
# openstack-ccm

A Helm chart for openstack-ccm, the Kubernetes cloud-controller-manager for OpenStack with PROXY-protocol load balancers that work from
inside the cluster. Guides: [install](../../docs/guides/install.md), [try](../../docs/guides/try-on-one-class.md),
[migrate from OCCM](../../docs/guides/migrate-from-occm.md), [scrape the metrics](../../docs/guides/scrape-metrics.md).

```sh
helm upgrade --install openstack-ccm charts/openstack-ccm --namespace kube-system \\
  --set image.repository=registry.example.org/openstack-ccm \\
  --set cluster.name=my-cluster --set-file cloudConfigContents=cloud.conf
```

## Values

<!-- Generated from values.yaml by `make manifests`; do not edit. -->

Every value of the OCCM chart has the same name, form and effect here. The chart refuses unknown values, and a number or a boolean where it
expects text: quote it, or use `--set-string` on the command line.

| Value | Default | Meaning |
| --- | --- | --- |
";

/// A value: path, default, meaning.
struct Entry {
    path: String,
    default: Value,
    meaning: String,
}

/// The values in the order of the file. The comment above a key is its meaning.
fn entries(chart: &str) -> Vec<Entry> {
    let text = read(&format!("charts/{chart}/values.yaml"));
    let values: &Value = &serde_saphyr::from_str(&text).unwrap();
    let schema = &schema(chart);
    let (mut entries, mut comment, mut section) = (Vec::new(), String::new(), None::<String>);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(words) = trimmed.strip_prefix('#') {
            let _ = write!(comment, "{}{}", if comment.is_empty() { "" } else { " " }, words.trim());
        } else if let Some((key, rest)) = trimmed.split_once(':').filter(|_| !trimmed.starts_with('-')) {
            let nested = line.starts_with("  ") && !line.starts_with("   ");
            let path = match &section {
                Some(section) if nested => format!("{section}.{key}"),
                _ => key.to_owned(),
            };
            let known = if nested { section.is_some() } else { !line.starts_with(' ') };
            let default = path.split('.').fold(values, |place, key| &place[key]);
            let is_section = !nested && rest.trim().is_empty() && is_map_of_values(schema, &path);
            if !nested {
                section = is_section.then(|| path.clone());
            }
            let meaning = std::mem::take(&mut comment);
            if known && !is_section {
                entries.push(Entry { path, default: default.clone(), meaning });
            }
        } else if trimmed.is_empty() {
            // What stands before an empty line is about the whole file.
            comment.clear();
        }
    }
    entries
}

/// Whether the parts of a value are values with a meaning of their own.
fn is_map_of_values(schema: &Value, path: &str) -> bool {
    properties(schema, path).is_some()
}

/// The parts of a value, which may be described elsewhere in the schema.
fn properties<'a>(schema: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    let property = &schema["properties"][path];
    let definition = property["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/definitions/"));
    let is_shared_by_sections = definition == Some("monitor");
    let described = if is_shared_by_sections { &schema["definitions"]["monitor"] } else { property };
    described["properties"].as_object()
}

fn schema(chart: &str) -> Value {
    serde_json::from_str(&read(&format!("charts/{chart}/values.schema.json"))).unwrap()
}

fn page(chart: &str, head: &str) -> String {
    let mut page = head.to_owned();
    for Entry { path, default, meaning } in entries(chart) {
        let default = if default == "" { String::new() } else { format!("`{default}`") };
        let _ = writeln!(page, "| `{path}` | {default} | {meaning} |");
    }
    page
}

#[test]
fn the_pages_of_the_values_are_up_to_date() {
    for (chart, head) in CHARTS {
        let (page, path) = (page(chart, head), format!("charts/{chart}/README.md"));
        if std::env::var_os("UPDATE_MANIFESTS").is_some() {
            std::fs::write(repository(&path), &page).unwrap();
        }
        let stored = std::fs::read_to_string(repository(&path)).unwrap_or_default();
        assert!(stored == page, "{path} is out of date; regenerate it with `make manifests`");
    }
}

#[test]
fn every_value_of_the_schema_is_on_the_page_with_its_meaning() {
    for (chart, _) in CHARTS {
        every_value_has_a_meaning(chart);
    }
}

fn every_value_has_a_meaning(chart: &str) {
    let (entries, schema) = (entries(chart), schema(chart));
    for entry in &entries {
        assert!(!entry.meaning.is_empty(), "values.yaml of {chart} says nothing about {}", entry.path);
    }
    for name in schema["properties"].as_object().unwrap().keys() {
        // Not this chart's: Helm's, and those of a library chart that OCCM has.
        if ["global", "common"].contains(&name.as_str()) {
            continue;
        }
        let parts = properties(&schema, name).filter(|_| entries.iter().all(|entry| entry.path != *name));
        let paths: Vec<String> = match parts {
            Some(parts) => parts.keys().map(|part| format!("{name}.{part}")).collect(),
            None => vec![name.clone()],
        };
        // Known only so that they can be refused, or passed over, with a word.
        let foreign = ["block_storage", "useExistingSecret", "existingSecret", "secretName"];
        for path in paths.into_iter().filter(|path| !foreign.iter().any(|name| path.ends_with(name))) {
            assert!(
                entries.iter().any(|entry| entry.path == path),
                "values.yaml of {chart} does not have {path}"
            );
        }
    }
}
