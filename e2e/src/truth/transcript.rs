//! What was answered, without what differs from run to run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine::answer::Answer;

/// The answers of one conversation in their order.
pub(crate) type Transcript = Vec<Entry>;

/// Who wrote what is looked at in the simulators' own tests.
const LEFT_OUT: &str = "managedFields";

/// An object that a refusal quotes: its keys have another order on each side.
static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?s)Invalid value: "\{.*\}""#).ok());

/// How often an object of the world was changed depends on what ran there before.
static REVISION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"current revision is \d+").ok());

static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        r"|\b[0-9a-f]{32}\b",
        r"|\b198\.1[89]\.0\.\d{1,3}\b",
        r"|https?://[^/\s]+",
    ))
    .ok()
});

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    call: String,
    status: u16,
    /// What a refusal says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text: Option<String>,
    /// Paths of all keys of the body, `[]` for the entries of a list.
    keys: Vec<String>,
    /// Values that are compared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    shown: BTreeMap<String, Value>,
}

impl Entry {
    /// An answer to a call; `known` are values that have names in the conversation.
    pub(crate) fn new(
        call: &str,
        answer: &Answer,
        shown: BTreeMap<String, Value>,
        known: &BTreeMap<String, String>,
    ) -> Self {
        let mut paths = BTreeSet::new();
        keys(&answer.body, "", &mut paths);
        let text = (answer.status >= 400).then(|| nameless(&refusal(&answer.body), known));
        let shown = shown.into_iter().map(|(pointer, value)| (pointer, nameless_value(&value, known)));
        Self {
            call: call.to_owned(),
            status: answer.status,
            text,
            keys: paths.into_iter().collect(),
            shown: shown.collect(),
        }
    }

    /// What is different in the answer of the simulator.
    pub(crate) fn difference(&self, simulated: &Self) -> Option<String> {
        if self == simulated {
            return None;
        }
        let mut found = vec![format!("  {}:", self.call)];
        if (self.status, &self.text) != (simulated.status, &simulated.text) {
            let text =
                |entry: &Self| format!("{} {}", entry.status, entry.text.as_deref().unwrap_or_default());
            found.push(format!("    real {}; simulated {}", text(self), text(simulated)));
        }
        let without = |one: &Self, other: &Self| -> Vec<String> {
            one.keys.iter().filter(|key| !other.keys.contains(key)).cloned().collect()
        };
        let (missing, extra) = (without(self, simulated), without(simulated, self));
        if !missing.is_empty() || !extra.is_empty() {
            found.push(format!("    the simulator lacks {missing:?} and adds {extra:?}"));
        }
        for (pointer, value) in &self.shown {
            let other = simulated.shown.get(pointer);
            if other != Some(value) {
                found.push(format!(
                    "    {pointer}: real {value}; simulated {}",
                    other.unwrap_or(&Value::Null)
                ));
            }
        }
        Some(found.join("\n"))
    }
}

fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if key != LEFT_OUT {
                    keys(field, &path, found);
                    found.insert(path);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{path}[]"), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The message of any of the services.
fn refusal(body: &Value) -> String {
    const PLACES: [&str; 8] = [
        "/faultstring",
        "/NeutronError/message",
        "/error/message",
        "/description",
        "/message",
        "/itemNotFound/message",
        "/badRequest/message",
        "/object/message",
    ];
    let found = PLACES.iter().find_map(|place| body.pointer(place)?.as_str());
    found.map_or_else(|| body.as_str().map_or_else(|| body.to_string(), str::to_owned), str::to_owned)
}

fn nameless(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut names: Vec<(&String, &String)> = known.iter().filter(|(_, value)| value.len() > 3).collect();
    // The longest first: one may be part of another.
    names.sort_by_key(|(name, value)| (std::cmp::Reverse(value.len()), (*name).clone()));
    let text = names
        .into_iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(value.as_str(), &format!("{{{name}}}")));
    let replaced = |text: String, pattern: &Option<Regex>, by: &str| {
        pattern.as_ref().map_or(text.clone(), |pattern| pattern.replace_all(&text, by).into_owned())
    };
    let text = replaced(text, &QUOTED, "Invalid value: {object}");
    replaced(replaced(text, &REVISION, "current revision is {any}"), &NAME, "{any}")
}

fn nameless_value(value: &Value, known: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(nameless(text, known)),
        Value::Array(items) => items.iter().map(|item| nameless_value(item, known)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| (key.clone(), nameless_value(field, known))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(status: u16, body: Value) -> Entry {
        let known = BTreeMap::from([("lb".to_owned(), "5ad2e1a3-0000-4000-8000-000000000001".to_owned())]);
        Entry::new("GET x", &Answer { request: String::new(), status, body }, BTreeMap::new(), &known)
    }

    #[test]
    fn ids_have_the_names_of_the_conversation() {
        let refused = entry(
            404,
            json!({"faultstring": "5ad2e1a3-0000-4000-8000-000000000001 not found on 198.18.0.7"}),
        );
        assert_eq!(refused.text.as_deref(), Some("{lb} not found on {any}"));
    }

    #[test]
    fn a_revision_is_whatever_earlier_changes_made_it() {
        let refused =
            entry(412, json!({"NeutronError": {"message": "Constrained to 0, but current revision is 8"}}));
        assert_eq!(refused.text.as_deref(), Some("Constrained to 0, but current revision is {any}"));
    }

    #[test]
    fn a_missing_key_is_reported() {
        let real = entry(200, json!({"port": {"id": "x", "tags": []}}));
        let simulated = entry(200, json!({"port": {"id": "y"}}));
        assert!(real.difference(&simulated).unwrap().contains("lacks [\"port.tags\"]"));
        assert_eq!(real.difference(&entry(200, json!({"port": {"id": "y", "tags": []}}))), None);
    }
}
