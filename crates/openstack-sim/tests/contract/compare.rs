//! Comparing a recorded body with a simulated one.

use serde_json::Value;

use crate::names::Names;

/// Keys whose values depend on time, chance or history; whether they are null is compared.
const VOLATILE: &[(&str, &str)] = &[
    ("created_at", "time"),
    ("updated_at", "time"),
    ("created", "time"),
    ("updated", "time"),
    ("expires_at", "time"),
    ("issued_at", "time"),
    ("cert_expiration", "time"),
    ("OS-SRV-USG:launched_at", "time"),
    ("operating_status", "in the recordings it follows heartbeats that come when they come"),
    ("revision_number", "counts steps inside Neutron; the one that matters is in the text of the 412"),
    ("standard_attr_id", "counts everything that the lab ever had"),
    ("audit_ids", "chance"),
    ("hostId", "chance"),
    ("adminPass", "chance"),
];

/// Differences between two bodies; names are bound on the way.
pub(crate) fn differences(recorded: &Value, simulated: &Value, names: &mut Names) -> Vec<String> {
    let mut found = Vec::new();
    compare(recorded, simulated, "", names, &mut found);
    found
}

/// Differences between the keys of two bodies, values left out.
pub(crate) fn shape_differences(recorded: &Value, simulated: &Value) -> Vec<String> {
    let mut found = Vec::new();
    shape(recorded, simulated, "", &mut found);
    found
}

fn compare(recorded: &Value, simulated: &Value, path: &str, names: &mut Names, found: &mut Vec<String>) {
    match (recorded, simulated) {
        (Value::Object(one), Value::Object(other)) => {
            keys(recorded, simulated, path, found);
            for (key, value) in one {
                let Some(counterpart) = other.get(key) else { continue };
                let path = format!("{path}.{key}");
                if VOLATILE.iter().any(|(volatile, _)| volatile == key) {
                    if value.is_null() != counterpart.is_null() {
                        found.push(format!("{path}: recorded {value}, simulated {counterpart}"));
                    }
                } else {
                    compare(value, counterpart, &path, names, found);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => compare_lists(one, other, path, names, found),
        (Value::String(one), Value::String(other)) if names.unify(one, other) => {}
        (one, other) if one == other => {}
        // JSON numbers: 1.0 and 1 are the same.
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
        (one, other) => {
            let expected = names.translate(&one.to_string());
            found.push(format!("{path}: recorded {expected}, simulated {other}"));
        }
    }
}

fn keys(recorded: &Value, simulated: &Value, path: &str, found: &mut Vec<String>) {
    let of = |value: &Value| {
        value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    let (one, other) = (of(recorded), of(simulated));
    let missing: Vec<&String> = one.iter().filter(|key| !other.contains(key)).collect();
    let extra: Vec<&String> = other.iter().filter(|key| !one.contains(key)).collect();
    if !missing.is_empty() || !extra.is_empty() {
        found.push(format!("{path}: missing {missing:?}, extra {extra:?}"));
    }
}

/// Lists have no fixed order: each recorded entry must have its own counterpart.
fn compare_lists(one: &[Value], other: &[Value], path: &str, names: &mut Names, found: &mut Vec<String>) {
    if one.len() != other.len() {
        found.push(format!("{path}: recorded {} entries, simulated {}: {other:?}", one.len(), other.len()));
        return;
    }
    let mut left: Vec<&Value> = other.iter().collect();
    for (index, entry) in one.iter().enumerate() {
        let fitting = left.iter().position(|candidate| {
            let mut tried = names.clone();
            differences(entry, candidate, &mut tried).is_empty()
        });
        match fitting {
            Some(at) => {
                let counterpart = left.remove(at);
                compare(entry, counterpart, &format!("{path}[{index}]"), names, found);
            }
            None => {
                let counterpart = left.remove(0);
                compare(entry, counterpart, &format!("{path}[{index}]"), names, found);
            }
        }
    }
}

fn shape(recorded: &Value, simulated: &Value, path: &str, found: &mut Vec<String>) {
    match (recorded, simulated) {
        (Value::Object(one), Value::Object(other)) => {
            keys(recorded, simulated, path, found);
            for (key, value) in one {
                if let Some(counterpart) = other.get(key) {
                    shape(value, counterpart, &format!("{path}.{key}"), found);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            if let (Some(one), Some(other)) = (one.first(), other.first()) {
                shape(one, other, &format!("{path}[0]"), found);
            }
        }
        (one, other) if std::mem::discriminant(one) == std::mem::discriminant(other) => {}
        (one, other) => found.push(format!("{path}: recorded {one}, simulated {other}")),
    }
}
