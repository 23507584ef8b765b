//! The lines of what would be written to Kubernetes. The annotation in which the program notes for itself when everything
//! agreed is no news to anybody.

use std::collections::BTreeMap;

use openstack_ccm_provider_openstack::load_balancer::annotations::CONVERGED_DIGEST;
use serde_json::Value;

use super::fields::{Field, known};
use super::journal::{Call, ClusterWrite};
use super::line::{Line, Mark};

/// An object of Kubernetes before the first and after the last write.
struct ClusterEnds<'a> {
    before: &'a Value,
    after: &'a Value,
}

/// The lines, in the order in which the objects are touched first.
pub(super) fn lines(calls: &[Call]) -> Vec<Line> {
    let mut order: Vec<&str> = Vec::new();
    let mut ends: BTreeMap<&str, ClusterEnds<'_>> = BTreeMap::new();
    for call in calls {
        let Call::Cluster(ClusterWrite { method: _, path, body: _, before, after }) = call else { continue };
        let object = path.strip_suffix("/status").unwrap_or(path);
        match ends.get_mut(object) {
            Some(known) => known.after = after,
            None => {
                order.push(object);
                ends.insert(object, ClusterEnds { before, after });
            }
        }
    }
    order
        .iter()
        .filter_map(|path| Some((path, ends.get(path)?)))
        .flat_map(|(path, ends)| of(path, ends))
        .collect()
}

fn of(path: &str, ends: &ClusterEnds<'_>) -> Vec<Line> {
    let is_node = path.contains("/nodes/");
    let name = if is_node { path.rsplit('/').next().unwrap_or_default() } else { "" };
    let line = |mark: Mark, kind: &str, fields: Vec<Field>| Line {
        mark,
        kind: kind.to_owned(),
        id: None,
        name: name.to_owned(),
        fields,
        count: 1,
    };
    let ClusterEnds { before, after } = ends;
    if after.is_null() {
        return vec![line(Mark::Delete, "node", Vec::new())];
    }
    if is_node {
        return vec![line(Mark::Change, "node", node_fields(before, after))];
    }
    let status = status(before, after);
    let mut annotations = maps(&before["metadata"]["annotations"], &after["metadata"]["annotations"]);
    annotations.retain(|field| field.name != CONVERGED_DIGEST.key);
    let finalizers = Field::list(
        "",
        difference(&before["metadata"]["finalizers"], &after["metadata"]["finalizers"]),
        difference(&after["metadata"]["finalizers"], &before["metadata"]["finalizers"]),
    );
    [("status", status.into_iter().collect()), ("annotations", annotations), ("finalizer", vec![finalizers])]
        .into_iter()
        .map(|(kind, fields): (&str, Vec<Field>)| {
            (kind, fields.into_iter().filter(|field| !field.is_empty()))
        })
        .map(|(kind, fields)| line(Mark::Change, kind, fields.collect()))
        .filter(|line| !line.fields.is_empty())
        .collect()
}

/// The published entries as text: `203.0.113.10 (Proxy)`.
pub(super) fn entries(service: &Value) -> Vec<String> {
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array();
    let text = |value: &Value| value.as_str().map(known);
    ingress
        .into_iter()
        .flatten()
        .map(|entry| {
            let place = text(&entry["hostname"]).or_else(|| text(&entry["ip"])).unwrap_or_default();
            match entry["ipMode"].as_str() {
                Some(mode) if mode != "VIP" => format!("{place} ({mode})"),
                _ => place,
            }
        })
        .collect()
}

fn status(before: &Value, after: &Value) -> Option<Field> {
    let text = |entries: Vec<String>| (!entries.is_empty()).then(|| entries.join(", "));
    let field = Field::value("", text(entries(before)), text(entries(after)));
    (!field.is_empty()).then_some(field)
}

/// The keys of a map that would be other.
fn maps(before: &Value, after: &Value) -> Vec<Field> {
    let empty = serde_json::Map::new();
    let (old, new) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let text = |value: &Value| value.as_str().map(known);
    let mut fields: Vec<Field> = old
        .iter()
        .filter(|(key, value)| new.get(*key) != Some(value))
        .map(|(key, value)| Field::value(key, text(value), new.get(key).and_then(text)))
        .collect();
    let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
    fields.extend(added.map(|(key, value)| Field::value(key, None, text(value))));
    fields
}

fn difference(one: &Value, other: &Value) -> Vec<String> {
    let has = |value: &Value| other.as_array().is_some_and(|list| list.contains(value));
    let list = one.as_array().into_iter().flatten().filter(|value| !has(value));
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn node_fields(before: &Value, after: &Value) -> Vec<Field> {
    let mut fields = maps(&before["metadata"]["labels"], &after["metadata"]["labels"]);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    fields.push(Field::value(
        "providerID",
        text(&before["spec"]["providerID"]),
        text(&after["spec"]["providerID"]),
    ));
    let each = |list: &Value, shown: fn(&Value) -> String| -> Vec<String> {
        list.as_array().into_iter().flatten().map(shown).collect()
    };
    let mut lists = |name: &str, before: &Value, after: &Value, shown: fn(&Value) -> String| {
        let (before, after) = (each(before, shown), each(after, shown));
        let lacks = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|text| !other.contains(text)).cloned().collect()
        };
        fields.push(Field::list(name, lacks(&before, &after), lacks(&after, &before)));
    };
    lists("taint", &before["spec"]["taints"], &after["spec"]["taints"], |taint| {
        format!(
            "{}:{}",
            taint["key"].as_str().unwrap_or_default(),
            taint["effect"].as_str().unwrap_or_default()
        )
    });
    lists("address", &before["status"]["addresses"], &after["status"]["addresses"], |address| {
        format!(
            "{} {}",
            address["type"].as_str().unwrap_or_default(),
            address["address"].as_str().unwrap_or_default()
        )
    });
    lists("condition", &before["status"]["conditions"], &after["status"]["conditions"], |condition| {
        let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
        format!("{}={} {}", text("type"), text("status"), text("reason"))
    });
    fields.retain(|field| !field.is_empty());
    fields
}
