//! Server-side apply: a writer states the fields it cares for; the server finds conflicts with other writers and
//! removes what the writer no longer states.

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::managed_fields::{self, Entry, FieldSet, changed_fields, fields_of, list_element};
use crate::schema::{Schema, Topology};

/// The object after `config` was applied to `live` by `writer`, with its new managed fields.
///
/// # Errors
/// 409 that names each field of another writer with another value, unless `force` is set.
pub(crate) fn apply(
    schema: &Schema,
    live: &Value,
    config: &Value,
    mut writer: Entry,
    force: bool,
) -> Result<Value, Failure> {
    let stated = fields_of(schema, config).without_server_owned();
    let differing = changed_fields(schema, live, config).without_server_owned();
    let mut others = Vec::new();
    let mut before = FieldSet::default();
    for entry in managed_fields::read(live) {
        if entry.is_same_writer(&writer) {
            before = entry.fields;
            if before == stated {
                writer.time = entry.time;
            }
        } else {
            others.push(entry);
        }
    }
    let conflicts = conflicts(&others, &differing);
    if !conflicts.is_empty() && !force {
        return Err(Failure::apply_conflict(&conflicts));
    }
    let mut given_up = before.difference(&stated);
    for entry in &mut others {
        entry.fields = entry.fields.difference(&differing);
        given_up = given_up.difference(&entry.fields);
    }
    let mut merged = live.clone();
    merge(schema, &mut merged, config);
    remove(schema, &mut merged, &given_up);
    writer.fields = stated;
    others.push(writer);
    managed_fields::write(&mut merged, &others);
    Ok(merged)
}

fn conflicts(others: &[Entry], differing: &FieldSet) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in others {
        let paths = entry.fields.intersection(differing).leaf_paths();
        found.extend(paths.into_iter().map(|path| (entry.describe(), path)));
    }
    found
}

fn merge(schema: &Schema, live: &mut Value, config: &Value) {
    match (schema, config) {
        (Schema::Object(_) | Schema::Map, Value::Object(fields)) => {
            if !live.is_object() {
                *live = Value::Object(Map::new());
            }
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let inner = schema.field(name).map_or(&Schema::Anything, |field| &field.schema);
                let slot = match live {
                    Value::Object(live) => live.entry(name).or_insert(Value::Null),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                        return;
                    }
                };
                merge(inner, slot, value);
            }
        }
        (Schema::List(item, topology @ (Topology::Set | Topology::Keyed(_))), Value::Array(items)) => {
            merge_list(item, topology, live, items);
        }
        _ => *live = config.clone(),
    }
}

fn merge_list(item: &Schema, topology: &Topology, live: &mut Value, items: &[Value]) {
    let mut merged = live.as_array().cloned().unwrap_or_default();
    for value in items {
        let element = list_element(topology, value);
        match merged.iter_mut().find(|other| list_element(topology, other) == element) {
            Some(existing) => merge(item, existing, value),
            None => merged.push(value.clone()),
        }
    }
    *live = Value::Array(merged);
}

/// Removes the members of a set from a value; objects lose fields, lists lose entries.
fn remove(schema: &Schema, value: &mut Value, gone: &FieldSet) {
    match (schema, value) {
        (Schema::List(item, topology), Value::Array(items)) => {
            items.retain_mut(|entry| {
                let Some(set) = list_element(topology, entry).and_then(|element| gone.child(&element)) else {
                    return true;
                };
                remove(item, entry, set);
                !set.is_member()
            });
        }
        (_, Value::Object(fields)) => {
            fields.retain(|name, inner| {
                let Some(set) = gone.child(&format!("f:{name}")) else { return true };
                let field_schema = schema.field(name).map_or(&Schema::Anything, |field| &field.schema);
                remove(field_schema, inner, set);
                let emptied = match inner {
                    Value::Array(items) => {
                        items.is_empty() || matches!(field_schema, Schema::List(_, Topology::Atomic))
                    }
                    Value::Object(fields) => fields.is_empty(),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
                };
                !(set.is_member() && emptied)
            });
        }
        _ => {}
    }
}
