//! Strategic merge patch: a merge patch that knows how the lists of a kind are keyed.

use serde_json::{Map, Value};

use crate::schema::{Schema, Topology};

const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Changes `target` as `patch` says.
pub(crate) fn merge(schema: &Schema, target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    match changes.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            *target = without_directives(changes);
            return;
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return;
        }
        Some(_) | None => {}
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if let Some(list) = key.strip_prefix(DELETE_FROM_LIST) {
            delete_from_list(fields, list, change);
        }
    }
    for (key, change) in changes.iter().filter(|(key, _)| !key.starts_with('$')) {
        merge_field(schema, fields, key, change);
    }
    for (key, order) in changes {
        if let Some(list) = key.strip_prefix(SET_ORDER) {
            put_in_order(schema, fields, list, order);
        }
    }
    if let Some(Value::Array(kept)) = changes.get("$retainKeys") {
        fields.retain(|key, _| kept.iter().any(|name| name == key));
    }
}

fn without_directives(changes: &Map<String, Value>) -> Value {
    let kept = changes.iter().filter(|(key, _)| !key.starts_with('$'));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<String, Value>>().into()
}

fn delete_from_list(fields: &mut Map<String, Value>, list: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (fields.get_mut(list), gone) {
        items.retain(|item| !gone.contains(item));
    }
}

fn merge_field(schema: &Schema, fields: &mut Map<String, Value>, key: &str, change: &Value) {
    if change.is_null() {
        fields.remove(key);
        return;
    }
    let inner = schema.field(key).map_or(&Schema::Anything, |field| &field.schema);
    let slot = fields.entry(key).or_insert(Value::Null);
    match (inner, change) {
        (Schema::List(_, Topology::Set), Value::Array(added)) => add_to_set(slot, added),
        (Schema::List(item, Topology::Keyed(keys)), Value::Array(changes)) => match keys.first() {
            Some(merge_key) => merge_keyed(item, &merge_key.name, slot, changes),
            None => *slot = change.clone(),
        },
        (_, Value::Object(_)) => merge(inner, slot, change),
        _ => *slot = change.clone(),
    }
}

fn items_of(slot: &mut Value) -> &mut Vec<Value> {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    match slot {
        Value::Array(items) => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            unreachable!("made a list above")
        }
    }
}

fn add_to_set(slot: &mut Value, added: &[Value]) {
    let items = items_of(slot);
    for value in added {
        if !items.contains(value) {
            items.push(value.clone());
        }
    }
}

fn merge_keyed(item: &Schema, merge_key: &str, slot: &mut Value, changes: &[Value]) {
    let items = items_of(slot);
    if changes.iter().any(|change| change["$patch"] == "replace") {
        let given = changes.iter().filter(|change| change["$patch"] != "replace");
        *items = given.cloned().collect();
        return;
    }
    for change in changes {
        let position = items.iter().position(|item| item[merge_key] == change[merge_key]);
        let deletes = change["$patch"] == "delete";
        match position.and_then(|position| items.get_mut(position)) {
            Some(_) if deletes => items.retain(|item| item[merge_key] != change[merge_key]),
            Some(existing) => merge(item, existing, change),
            None if deletes => {}
            None => {
                let mut added = Value::Null;
                merge(item, &mut added, change);
                items.push(added);
            }
        }
    }
}

/// Sorts a list as the client sees it; entries that the client did not know stay behind the ones it knew.
fn put_in_order(schema: &Schema, fields: &mut Map<String, Value>, list: &str, order: &Value) {
    let (Some(Value::Array(items)), Value::Array(order)) = (fields.get_mut(list), order) else { return };
    let merge_key = match schema.field(list).map(|field| &field.schema) {
        Some(Schema::List(_, Topology::Keyed(keys))) => keys.first(),
        Some(_) | None => None,
    };
    let rank = |item: &Value| {
        order.iter().position(|wanted| match merge_key {
            Some(key) => wanted[&key.name] == item[&key.name],
            None => wanted == item,
        })
    };
    items.sort_by_key(|item| rank(item).unwrap_or(usize::MAX));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::parse;

    fn patched(mut target: Value, patch: &Value) -> Value {
        let schema = parse("finalizers[=] conditions[type]{type status} taints[]{key} m:map").unwrap();
        merge(&schema, &mut target, patch);
        target
    }

    #[test]
    fn a_finalizer_is_added_and_removed_without_touching_the_others() {
        let both = patched(
            json!({"finalizers": ["theirs"]}),
            &json!({"finalizers": ["ours"], "$setElementOrder/finalizers": ["theirs", "ours"]}),
        );
        assert_eq!(both, json!({"finalizers": ["theirs", "ours"]}));
        let removed = patched(
            both,
            &json!({"$deleteFromPrimitiveList/finalizers": ["ours"], "$setElementOrder/finalizers": ["theirs"]}),
        );
        assert_eq!(removed, json!({"finalizers": ["theirs"]}));
    }

    #[test]
    fn keyed_entries_are_merged_and_deleted_one_by_one() {
        let target = json!({"conditions": [{"type": "A", "status": "x"}, {"type": "B", "status": "x"}]});
        let patch = json!({"conditions": [{"type": "B", "status": "y"}, {"type": "C", "status": "z"},
            {"type": "A", "$patch": "delete"}]});
        let expected = json!({"conditions": [{"type": "B", "status": "y"}, {"type": "C", "status": "z"}]});
        assert_eq!(patched(target, &patch), expected);
    }

    #[test]
    fn atomic_lists_are_replaced_and_objects_can_be() {
        assert_eq!(
            patched(
                json!({"taints": [{"key": "a"}], "m": {"a": "1", "b": "2"}}),
                &json!({"taints": [{"key": "b"}], "m": {"$patch": "replace", "c": "3"}})
            ),
            json!({"taints": [{"key": "b"}], "m": {"c": "3"}})
        );
    }
}
