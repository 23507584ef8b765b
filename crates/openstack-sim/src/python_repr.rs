//! Values as Python prints them: the services quote what they refuse in that form.

use serde_json::Value;

/// `repr()` of a JSON value after Python has read it.
pub(crate) fn python_repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(python_repr))),
        Value::Object(entries) => {
            let pairs = entries.iter().map(|(key, value)| format!("{}: {}", quoted(key), python_repr(value)));
            format!("{{{}}}", joined(pairs))
        }
    }
}

/// `str()` of a JSON value: text without quotes, everything else as `repr()`.
pub(crate) fn python_str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => python_repr(other),
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\");
    if escaped.contains('\'') && !escaped.contains('"') {
        format!("\"{escaped}\"")
    } else {
        format!("'{}'", escaped.replace('\'', "\\'"))
    }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!(null), "None")]
    #[case(json!(true), "True")]
    #[case(json!("it's"), "\"it's\"")]
    #[case(json!({"a": [1, "b"]}), "{'a': [1, 'b']}")]
    fn values_look_as_in_the_messages_of_the_services(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(python_repr(&value), expected);
    }
}
