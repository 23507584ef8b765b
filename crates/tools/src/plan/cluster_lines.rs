//! The lines of writes to Kubernetes. The annotation in which the program notes that everything was up to date has no line: it is
//! of no interest to users.

use openstack_ccm_provider_openstack::load_balancer::annotations::CONVERGED_DIGEST;
use serde_json::{Map, Value};

use super::fields::{Field, known};
use super::journal::Call;
use super::line::{Line, Mark};

/// Returns the lines, in the order in which the objects are first written.
pub(super) fn lines(calls: &[Call]) -> Vec<Line> {
    // The state of each object before its first and after its last write.
    let mut ends: Vec<(&str, &Value, &Value)> = Vec::new();
    for write in calls.iter().filter_map(Call::in_cluster) {
        let object = write.path.strip_suffix("/status").unwrap_or(&write.path);
        match ends.iter_mut().find(|(known, ..)| *known == object) {
            Some((_, _, after)) => *after = &write.after,
            None => ends.push((object, &write.before, &write.after)),
        }
    }
    ends.into_iter().flat_map(|(path, before, after)| of(path, before, after)).collect()
}

fn of(path: &str, before: &Value, after: &Value) -> Vec<Line> {
    let is_node = path.contains("/nodes/");
    let name = if is_node { path.rsplit('/').next().unwrap_or_default() } else { "" };
    let line = |mark: Mark, kind: &str, fields: Vec<Field>| Line {
        mark,
        kind: kind.to_owned(),
        id: None,
        name: name.to_owned(),
        parent: None,
        fields: fields.into_iter().filter(|field| !field.is_empty()).collect(),
        count: 1,
    };
    if after.is_null() {
        return vec![line(Mark::Delete, "node", Vec::new())];
    }
    if is_node {
        return vec![line(Mark::Change, "node", node_fields(before, after))];
    }
    let published = |service: &Value| Some(entries(service).join(", ")).filter(|text| !text.is_empty());
    let ingress = |service: &Value| {
        let ingress = &service["status"]["loadBalancer"]["ingress"];
        ingress.as_array().filter(|entries| !entries.is_empty()).map(|_| ingress.clone())
    };
    let words =
        Field::value("", published(before).map(Value::from), published(after).map(Value::from)).to_string();
    let status = Field { words: Some(words), ..Field::value("", ingress(before), ingress(after)) };
    let mut annotations = maps(&before["metadata"]["annotations"], &after["metadata"]["annotations"]);
    annotations.retain(|field| field.name != CONVERGED_DIGEST.key);
    let finalizers =
        |service: &Value| texts(&service["metadata"]["finalizers"], |one| string(one).to_owned());
    let finalizers = Field::list("", &finalizers(before), &finalizers(after));
    [("status", vec![status]), ("annotations", annotations), ("finalizer", vec![finalizers])]
        .into_iter()
        .map(|(kind, fields)| line(Mark::Change, kind, fields))
        .filter(|line| !line.fields.is_empty())
        .collect()
}

/// Returns the published entries as text: `203.0.113.10 (Proxy)`.
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

/// Returns the changed keys of a map, with their values before and after.
fn maps(before: &Value, after: &Value) -> Vec<Field> {
    let old = before.as_object().into_iter().flat_map(Map::keys);
    let new = after.as_object().into_iter().flat_map(Map::keys).filter(|key| before[*key].is_null());
    let text = |value: &Value| value.is_string().then(|| value.clone());
    old.chain(new).map(|key| Field::value(key, text(&before[key]), text(&after[key]))).collect()
}

fn node_fields(before: &Value, after: &Value) -> Vec<Field> {
    let mut fields = maps(&before["metadata"]["labels"], &after["metadata"]["labels"]);
    let provider_id = |node: &Value| Some(node["spec"]["providerID"].clone()).filter(Value::is_string);
    fields.push(Field::value("providerID", provider_id(before), provider_id(after)));
    let mut list = |name: &str, of: fn(&Value) -> &Value, shown: fn(&Value) -> String| {
        fields.push(Field::list(name, &texts(of(before), shown), &texts(of(after), shown)));
    };
    list(
        "taint",
        |node| &node["spec"]["taints"],
        |taint| format!("{}:{}", string(&taint["key"]), string(&taint["effect"])),
    );
    list(
        "address",
        |node| &node["status"]["addresses"],
        |address| format!("{} {}", string(&address["type"]), string(&address["address"])),
    );
    list(
        "condition",
        |node| &node["status"]["conditions"],
        |one| format!("{}={} {}", string(&one["type"]), string(&one["status"]), string(&one["reason"])),
    );
    fields
}

fn texts(list: &Value, shown: fn(&Value) -> String) -> Vec<String> {
    list.as_array().into_iter().flatten().map(shown).collect()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
