//! JSON patch, RFC 6902.

use serde_json::Value;

/// A patch that cannot be applied: a failed test, a path that does not exist, an operation that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rejected;

/// Changes `target` as the list of operations says. On an error `target` may be half changed.
pub(crate) fn apply(target: &mut Value, operations: &[Value]) -> Result<(), Rejected> {
    operations.iter().try_for_each(|operation| perform(target, operation))
}

fn perform(target: &mut Value, operation: &Value) -> Result<(), Rejected> {
    let path = pointer(operation, "path")?;
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match operation["op"].as_str().unwrap_or_default() {
        "add" => add(target, path, value()),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            *target.pointer_mut(path).ok_or(Rejected)? = value();
            Ok(())
        }
        "move" => {
            let moved = remove(target, pointer(operation, "from")?)?;
            add(target, path, moved)
        }
        "copy" => {
            let copied = target.pointer(pointer(operation, "from")?).cloned().ok_or(Rejected)?;
            add(target, path, copied)
        }
        // A test of an absent path against null holds, as in the server's library.
        "test" if target.pointer(path).unwrap_or(&Value::Null) == &value() => Ok(()),
        _ => Err(Rejected),
    }
}

fn pointer<'a>(operation: &'a Value, field: &str) -> Result<&'a str, Rejected> {
    let path = operation[field].as_str().ok_or(Rejected)?;
    if path.is_empty() || path.starts_with('/') { Ok(path) } else { Err(Rejected) }
}

fn split(path: &str) -> Result<(&str, String), Rejected> {
    let (parent, last) = path.rsplit_once('/').ok_or(Rejected)?;
    Ok((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), Rejected> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent).ok_or(Rejected)? {
        Value::Object(fields) => {
            fields.insert(last, value);
            Ok(())
        }
        Value::Array(items) if last == "-" => {
            items.push(value);
            Ok(())
        }
        Value::Array(items) => {
            let index = last.parse().ok().filter(|index| *index <= items.len()).ok_or(Rejected)?;
            items.insert(index, value);
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(Rejected),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, Rejected> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent).ok_or(Rejected)? {
        Value::Object(fields) => fields.remove(&last).ok_or(Rejected),
        Value::Array(items) => {
            let index = last.parse().ok().filter(|index| *index < items.len()).ok_or(Rejected)?;
            Ok(items.remove(index))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(Rejected),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!([{"op": "add", "path": "/list/-", "value": 3}]), Some(json!({"list": [1, 2, 3], "a/b": 1})))]
    #[case(json!([{"op": "add", "path": "/list/0", "value": 0}]), Some(json!({"list": [0, 1, 2], "a/b": 1})))]
    #[case(json!([{"op": "remove", "path": "/a~1b"}]), Some(json!({"list": [1, 2]})))]
    #[case(json!([{"op": "move", "from": "/list/1", "path": "/last"}]), Some(json!({"list": [1], "a/b": 1, "last": 2})))]
    #[case(json!([{"op": "test", "path": "/absent", "value": null}]), Some(json!({"list": [1, 2], "a/b": 1})))]
    #[case(json!([{"op": "test", "path": "/list/0", "value": 7}]), None)]
    #[case(json!([{"op": "remove", "path": "/absent"}]), None)]
    #[case(json!([{"op": "add", "path": "/absent/child", "value": 1}]), None)]
    fn operations_change_or_reject(#[case] patch: Value, #[case] expected: Option<Value>) {
        let mut target = json!({"list": [1, 2], "a/b": 1});
        let outcome = apply(&mut target, patch.as_array().unwrap());
        assert_eq!(outcome.is_ok().then_some(target), expected);
    }
}
