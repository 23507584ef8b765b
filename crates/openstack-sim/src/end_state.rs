//! The state of the cloud without what differs between two runs: ids, allocated addresses, times.

use serde_json::{Map, Value, json};

use crate::sim::Sim;

/// Keys that say when or how often something changed, not what is there.
const HISTORY: [&str; 6] = [
    "created_at",
    "updated_at",
    "revision_number",
    "standard_attr_id",
    "mac_address",
    "security_group_rules",
];

impl Sim {
    /// Everything that a controller makes or changes, comparable between runs: objects are sorted, ids and allocated addresses are
    /// replaced by names such as `listeners/0`, times and revisions are left out. Two runs that end alike have equal end states,
    /// however many requests were lost and repeated on the way. Ports are those that Octavia made and those that belong to nobody.
    pub fn end_state(&self) -> Value {
        let pools = self.pools();
        let members: Vec<Value> = pools
            .iter()
            .flat_map(|pool| {
                self.members(pool["id"].as_str().unwrap_or_default()).into_iter().map(|mut member| {
                    member["pool_id"] = pool["id"].clone();
                    member
                })
            })
            .collect();
        let loose = |port: &Value| matches!(port["device_owner"].as_str(), Some("Octavia" | ""));
        let collections = [
            ("load_balancers", self.load_balancers()),
            ("listeners", self.listeners()),
            ("pools", pools),
            ("members", members),
            ("health_monitors", self.health_monitors()),
            ("floating_ips", self.floating_ips()),
            ("ports", self.ports().into_iter().filter(loose).collect()),
            ("security_groups", self.security_groups()),
            ("security_group_rules", self.security_group_rules()),
            ("routers", self.routers()),
        ];
        comparable(collections)
    }
}

fn comparable<const N: usize>(collections: [(&str, Vec<Value>); N]) -> Value {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut sorted: Vec<(&str, Vec<Value>)> = Vec::new();
    for (kind, mut objects) in collections {
        objects.iter_mut().for_each(drop_history);
        objects.sort_by_cached_key(|object| without_ids(object).to_string());
        for (index, object) in objects.iter().enumerate() {
            let name = format!("{kind}/{index}");
            names.extend(identities(object).map(|(what, identity)| (identity, format!("{name}{what}"))));
        }
        sorted.push((kind, objects));
    }
    let state: Map<String, Value> =
        sorted.into_iter().map(|(kind, objects)| (kind.to_owned(), rename(json!(objects), &names))).collect();
    Value::Object(state)
}

fn drop_history(object: &mut Value) {
    if let Some(entries) = object.as_object_mut() {
        entries.retain(|key, _| !HISTORY.contains(&key.as_str()));
    }
}

/// What another run would have drawn differently: ids, and addresses that were allocated.
fn identities(object: &Value) -> impl Iterator<Item = (&'static str, String)> {
    [("", "id"), (".vip_address", "vip_address"), (".address", "floating_ip_address")]
        .into_iter()
        .filter_map(|(what, key)| object[key].as_str().map(|identity| (what, identity.to_owned())))
        .filter(|(_, identity)| !identity.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
}

/// The object as far as it is the same in every run: for sorting.
fn without_ids(object: &Value) -> Value {
    match object {
        Value::Object(entries) => entries
            .iter()
            .filter(|(key, _)| !is_drawn(key))
            .map(|(key, value)| (key.clone(), without_ids(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_ids).collect(),
        other => other.clone(),
    }
}

fn is_drawn(key: &str) -> bool {
    key == "id"
        || key.ends_with("_id")
        || matches!(
            key,
            "vip_address" | "floating_ip_address" | "fixed_ip_address" | "fixed_ips" | "security_groups"
        )
}

fn rename(value: Value, names: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => {
            json!(names.iter().fold(text, |text, (identity, name)| {
                if is_whole(&text, identity) { text.replace(identity.as_str(), name) } else { text }
            }))
        }
        Value::Array(items) => {
            // Lists of children come in the order of their ids.
            let mut items: Vec<Value> = items.into_iter().map(|item| rename(item, names)).collect();
            items.sort_by_cached_key(Value::to_string);
            json!(items)
        }
        Value::Object(entries) => entries.into_iter().map(|(key, item)| (key, rename(item, names))).collect(),
        other => other,
    }
}

/// Whether an identity is in a text, and not only the beginning of another: 198.18.0.2 is not in 198.18.0.23.
fn is_whole(text: &str, identity: &str) -> bool {
    text.find(identity).is_some_and(|at| {
        let after = text[at + identity.len()..].chars().next();
        !after.is_some_and(|next| next.is_ascii_alphanumeric())
    })
}
