//! JSON patch, RFC 6902, as the server's library reads it.

use json_patch::PatchOperation;
use serde_json::Value;

/// A patch that cannot be applied: a failed test, a path that does not exist, an operation that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rejected;

/// Changes `target` as the list of operations says. On an error `target` may be half changed.
pub(crate) fn apply(target: &mut Value, operations: &[Value]) -> Result<(), Rejected> {
    operations.iter().try_for_each(|operation| perform(target, parse(operation)?))
}

fn parse(operation: &Value) -> Result<PatchOperation, Rejected> {
    let mut operation = operation.clone();
    // An absent value is null.
    operation.as_object_mut().ok_or(Rejected)?.entry("value").or_insert(Value::Null);
    serde_json::from_value(operation).map_err(|_| Rejected)
}

fn perform(target: &mut Value, operation: PatchOperation) -> Result<(), Rejected> {
    match operation {
        // A test of an absent path against null holds.
        PatchOperation::Test(test)
            if test.value.is_null() && target.pointer(test.path.as_str()).is_none() =>
        {
            Ok(())
        }
        operation => json_patch::patch_unsafe(target, &[operation]).map_err(|_| Rejected),
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
    #[case(json!([{"op": "test", "path": "/absent"}]), Some(json!({"list": [1, 2], "a/b": 1})))]
    #[case(json!([{"op": "add", "path": "/last"}]), Some(json!({"list": [1, 2], "a/b": 1, "last": null})))]
    #[case(json!([{"op": "test", "path": "/list/0", "value": 7}]), None)]
    #[case(json!([{"op": "remove", "path": "/absent"}]), None)]
    #[case(json!([{"op": "add", "path": "/absent/child", "value": 1}]), None)]
    fn operations_change_or_reject(#[case] patch: Value, #[case] expected: Option<Value>) {
        let mut target = json!({"list": [1, 2], "a/b": 1});
        let outcome = apply(&mut target, patch.as_array().unwrap());
        assert_eq!(outcome.is_ok().then_some(target), expected);
    }
}
