//! Label and field selectors.

use serde_json::Value;

use crate::failure::Failure;
use crate::kinds::Resource;
use crate::version::ApiVersion;

/// One requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    /// The label is there and has one of these values.
    In(String, Vec<String>),
    /// The label is absent or has none of these values.
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// Which objects a list or a watch is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selectors {
    labels: Vec<Requirement>,
    /// JSON pointer, value, and whether they must be equal.
    fields: Vec<(&'static str, String, bool)>,
}

impl Selectors {
    /// Reads both selectors of a request.
    pub(crate) fn parse(
        resource: &Resource,
        version: ApiVersion,
        labels: &str,
        fields: &str,
    ) -> Result<Self, Failure> {
        let labels = split_outside_parentheses(labels)
            .into_iter()
            .map(|part| {
                requirement(part).ok_or_else(|| {
                    Failure::bad_request(format!("unable to parse requirement: invalid selector {part:?}"))
                })
            })
            .collect::<Result<_, _>>()?;
        let fields = fields
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| field_requirement(resource, version, part))
            .collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether a stored object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let has = |values: &[String], value: &str| values.iter().any(|one| one == value);
        let labels_match = self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|value| has(values, value)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|value| !has(values, value)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        });
        labels_match
            && self.fields.iter().all(|(pointer, wanted, equal)| {
                let shown = match object.pointer(pointer) {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Null) | None => String::new(),
                    Some(other) => other.to_string(),
                };
                // A flag that is not set reads "false".
                let same = shown == *wanted || (shown.is_empty() && wanted == "false");
                same == *equal
            })
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let mut start = 0;
    let mut parts = Vec::new();
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(text.get(start..index));
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn requirement(part: &str) -> Option<Requirement> {
    let listed = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(key.trim().to_owned(), vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(key.trim().to_owned(), vec![value.trim().to_owned()]));
    }
    if let Some((key, values)) = part.split_once(" notin ") {
        return Some(Requirement::NotIn(key.trim().to_owned(), listed(values)?));
    }
    if let Some((key, values)) = part.split_once(" in ") {
        return Some(Requirement::In(key.trim().to_owned(), listed(values)?));
    }
    if part.contains(char::is_whitespace) {
        return None;
    }
    Some(match part.strip_prefix('!') {
        Some(key) => Requirement::Absent(key.to_owned()),
        None => Requirement::Exists(part.to_owned()),
    })
}

fn field_requirement(
    resource: &Resource,
    version: ApiVersion,
    part: &str,
) -> Result<(&'static str, String, bool), Failure> {
    let (name, value, equal) = if let Some((name, value)) = part.split_once("!=") {
        (name, value, false)
    } else if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (name, value, true)
    } else {
        return Err(Failure::bad_request(format!("invalid selector: '{part}'; can't understand '{part}'")));
    };
    let own = resource.rules.selectable_fields(version);
    let pointer = match name {
        "metadata.name" => Some("/metadata/name"),
        "metadata.namespace" => Some("/metadata/namespace"),
        _ => own.iter().find(|(known, _)| *known == name).map(|(_, pointer)| *pointer),
    };
    let pointer = pointer.ok_or_else(|| {
        if !own.is_empty() {
            // Kinds with fields of their own refuse in their own words.
            return Failure::bad_request(format!("field label not supported: {name}"));
        }
        let known: Vec<String> =
            ["metadata.name", "metadata.namespace"].iter().map(|name| format!("\"{name}\"")).collect();
        Failure::bad_request(format!("\"{name}\" is not a known field selector: only {}", known.join(", ")))
    })?;
    Ok((pointer, value.to_owned(), equal))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[rstest]
    #[case("app=web", true)]
    #[case("app==web,tier", true)]
    #[case("app!=web", false)]
    #[case("app in (web, db),tier notin (back)", true)]
    #[case("!missing", true)]
    #[case("missing", false)]
    fn label_selectors_select(#[case] selector: &str, #[case] expected: bool) {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        let services = kinds::find("", "v1", "services").unwrap();
        assert_eq!(
            Selectors::parse(services, ApiVersion::V1_36, selector, "").unwrap().matches(&object),
            expected
        );
    }

    #[test]
    fn field_selectors_know_the_fields_of_their_kind_only() {
        let services = kinds::find("", "v1", "services").unwrap();
        let object = json!({"metadata": {"name": "web"}, "spec": {"type": "LoadBalancer"}});
        let selectors =
            Selectors::parse(services, ApiVersion::V1_36, "", "metadata.name=web,spec.type!=ClusterIP")
                .unwrap();
        assert!(selectors.matches(&object));
        assert_eq!(Selectors::parse(services, ApiVersion::V1_36, "", "spec.ports=1").unwrap_err().code, 400);
    }
}
