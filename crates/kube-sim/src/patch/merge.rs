//! JSON merge patch, RFC 7386.

use serde_json::{Map, Value};

/// Changes `target` as a JSON merge patch says: null removes, objects are merged, everything else replaces.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_replaced_and_null_removes() {
        let mut target = json!({"a": {"x": 1, "y": 2}, "list": [1, 2], "gone": true});
        merge(&mut target, &json!({"a": {"y": null, "z": {"n": null}}, "list": [3], "gone": null}));
        assert_eq!(target, json!({"a": {"x": 1, "z": {}}, "list": [3]}));
    }
}
