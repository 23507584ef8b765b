//! Reading and changing parts of untyped API objects.

use serde_json::{Map, Value};

/// The text at a JSON pointer; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a JSON pointer; 0 where there is none.
pub(crate) fn integer(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether the flag at a JSON pointer is set.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

/// The list at a JSON pointer; empty where there is none.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of the list at a JSON pointer.
pub(crate) fn texts<'a>(object: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(object, pointer).iter().filter_map(Value::as_str).collect()
}

/// The fields of the object at a key, made if it is missing or no object.
pub(crate) fn section<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let slot = &mut object[key];
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(fields) => fields,
        // The lines above made it an object.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("made an object above")
        }
    }
}

pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    section(object, "metadata")
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// Sets a field of `metadata`.
pub(crate) fn set_metadata(object: &mut Value, key: &str, value: impl Into<Value>) {
    metadata(object).insert(key.to_owned(), value.into());
}

/// Copies a top-level section from one object to another, or removes it where the source has none.
pub(crate) fn carry_over(section: &str, from: &Value, to: &mut Value) {
    if let Some(fields) = to.as_object_mut() {
        match from.get(section) {
            Some(value) => fields.insert(section.to_owned(), value.clone()),
            None => fields.remove(section),
        };
    }
}

/// Whether deletion was asked for and finalizers hold the object.
pub(crate) fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// Equal but for what the server itself stamps on a write.
pub(crate) fn is_same_content(left: &Value, right: &Value) -> bool {
    fn content(object: &Value) -> Value {
        let mut copy = object.clone();
        let metadata = metadata(&mut copy);
        metadata.remove("resourceVersion");
        if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
            for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                entry.remove("time");
            }
        }
        copy
    }
    content(left) == content(right)
}
