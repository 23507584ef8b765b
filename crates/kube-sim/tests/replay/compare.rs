//! Compares a recorded answer with the simulator's, without the values that differ from run to run.

use serde_json::{Map, Value, json};

/// Fields whose value differs from run to run: they must be there, with any value.
const ANY_VALUE: [&str; 9] = [
    "uid",
    "resourceVersion",
    "continue",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "deletionTimestamp",
    "expirationTimestamp",
    "token",
];
/// Fields that depend on the time, or that older servers show as null in objects that are otherwise empty.
const LEFT_OUT: [&str; 2] = ["creationTimestamp", "time"];
/// Starts a quoted object within a message.
const QUOTED_OBJECT: &str = "Invalid value: \"{";

/// What is different, or nothing.
pub(crate) fn difference(expected: &Value, answer: &Value) -> Option<String> {
    let text = answer["text"].as_str().unwrap();
    let document = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
    let (wanted, got) = if let Some(lines) = expected["lines"].as_array() {
        let own: Vec<Value> = text.lines().map(document).collect();
        (lines.clone(), shortened(own, lines))
    } else if let Some(body) = expected.get("body") {
        (vec![body.clone()], vec![document(text)])
    } else {
        (vec![expected["text"].clone()], vec![text.into()])
    };
    let wanted = json!({"status": expected["status"], "headers": expected["headers"], "documents": masked(&wanted.into())});
    let got =
        json!({"status": answer["status"], "headers": answer["headers"], "documents": masked(&got.into())});
    let mut differences = Vec::new();
    compare("", &wanted, &got, &mut differences);
    (!differences.is_empty()).then(|| differences.join("\n"))
}

/// Leaves out as many lines as the recording did.
fn shortened(lines: Vec<Value>, recorded: &[Value]) -> Vec<Value> {
    let Some(gap) = recorded.iter().position(|line| line.get("left out").is_some()) else { return lines };
    let tail = recorded.len() - gap - 1;
    if lines.len() < gap + tail {
        return lines;
    }
    let mut short = lines[..gap].to_vec();
    short.push(json!({"left out": lines.len() - gap - tail}));
    short.extend_from_slice(&lines[lines.len() - tail..]);
    short
}

fn masked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            // Who asked is of no interest to anyone afterwards.
            let is_answer = matches!(
                fields.get("kind").and_then(Value::as_str),
                Some("TokenRequest" | "SelfSubjectAccessReview")
            );
            let is_generated = fields.contains_key("generateName");
            let mut kept = Map::new();
            for (key, field) in fields {
                let masked = match key.as_str() {
                    name if LEFT_OUT.contains(&name) => continue,
                    name if ANY_VALUE.contains(&name) && !field.is_null() => "any".into(),
                    "name" if is_generated => "any".into(),
                    "metadata" if is_answer => {
                        let mut metadata = field.clone();
                        metadata.as_object_mut().unwrap().remove("managedFields");
                        masked(&metadata)
                    }
                    "managedFields" => sorted(&masked(field)),
                    _ => masked(field),
                };
                kept.insert(key.clone(), masked);
            }
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::String(text) => masked_text(text).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Entries of writers in an order that does not depend on the time of writing, without those of server-side apply.
fn sorted(entries: &Value) -> Value {
    let mut entries = entries.as_array().unwrap().clone();
    entries.retain(|entry| entry["operation"] != "Apply");
    entries
        .sort_by_key(|entry| format!("{}{}{}", entry["manager"], entry["operation"], entry["subresource"]));
    entries.into()
}

/// A text without the uids, revisions and generated names that it repeats.
fn masked_text(text: &str) -> String {
    if let Some(start) = text.find(QUOTED_OBJECT) {
        let quote = start + QUOTED_OBJECT.len() - 2;
        let mut quoted = serde_json::Deserializer::from_str(&text[quote..]).into_iter::<String>();
        let object: Value = serde_json::from_str(&quoted.next().unwrap().unwrap()).unwrap();
        let rest = &text[quote + quoted.byte_offset()..];
        return format!("{}{}{rest}", &text[..quote], masked(&object));
    }
    for marker in ["too old resource version: 2 (", ", current: "] {
        if let Some((before, _)) = text.split_once(marker) {
            return format!("{before}{marker}any");
        }
    }
    let words: Vec<String> = text.split(' ').map(masked_word).collect();
    words.join(" ")
}

fn masked_word(word: &str) -> String {
    let inner = word.trim_matches(|mark: char| !mark.is_ascii_alphanumeric());
    let is_uid = inner.len() == 36 && inner.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let is_generated = inner.strip_prefix("kubernetes.").is_some_and(|suffix| suffix.len() == 5);
    if is_uid && !inner.starts_with("00000000") || is_generated {
        word.replace(inner, "any")
    } else {
        word.to_owned()
    }
}

fn compare(path: &str, wanted: &Value, got: &Value, differences: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            for key in wanted.keys().chain(got.keys().filter(|key| !wanted.contains_key(*key))) {
                let field = |fields: &Map<String, Value>| fields.get(key).cloned();
                match (field(wanted), field(got)) {
                    (Some(wanted), Some(got)) => {
                        compare(&format!("{path}/{key}"), &wanted, &got, differences);
                    }
                    (wanted, got) => differences.push(format!("  {path}/{key}: {wanted:?} is {got:?}")),
                }
            }
        }
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                compare(&format!("{path}/{index}"), wanted, got, differences);
            }
        }
        _ if wanted == got => {}
        _ => differences.push(format!("  {path}:\n    wanted {wanted}\n    got    {got}")),
    }
}
