//! Alerts and dashboard ask for metrics that the program has.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::helm::{Release, read};

/// The metrics of the reference page, which a test compares with what the program says.
fn known_names() -> BTreeSet<String> {
    let page = read("docs/reference/metrics.md");
    page.split('`').filter(|part| is_name(part)).map(str::to_owned).collect()
}

fn is_name(text: &str) -> bool {
    text.contains('_') && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The metrics of a query: words with an underscore that no `=` follows and that are no label of `by (...)`.
fn names_in_query(query: &str) -> Vec<String> {
    let functions = ["histogram_quantile"];
    // What stands for the labels that choose the series is no metric.
    let query = query.replace("$selector", "").replace("$cluster", "");
    // Neither is what stands between quotes.
    let query: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| is_name(word) && !functions.contains(word)).map(str::to_owned).collect()
}

pub(crate) fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("expr").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| queries(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| queries(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_exist() {
    let alerts: Value = serde_saphyr::from_str(&read("charts/openstack-ccm/alerts.yaml")).unwrap();
    let dashboard: Value =
        serde_json::from_str(&read("charts/openstack-ccm/dashboards/openstack-ccm.json")).unwrap();
    let mut found = Vec::new();
    queries(&alerts, &mut found);
    queries(&dashboard, &mut found);
    assert!(found.len() > 15, "{found:#?}");
    let known = known_names();
    for query in found {
        for name in names_in_query(&query) {
            let family = ["_total", "_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .unwrap_or(&name);
            assert!(known.contains(family) || known.contains(&name), "{name} in {query} is on no page");
        }
    }
}

#[test]
fn the_dashboard_arrives_whole() {
    let Some(objects) = Release::new().values("everything.yaml").objects() else { return };
    let map = objects.one("ConfigMap");
    assert_eq!(map["metadata"]["namespace"], "monitoring");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let data = map["data"]["openstack-ccm.json"].as_str().unwrap();
    assert_eq!(data.trim_end(), read("charts/openstack-ccm/dashboards/openstack-ccm.json").trim_end());
}
