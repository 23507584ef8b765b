//! Choosing list entries by query parameters: what Octavia, Neutron and Nova do alike.

use serde_json::{Map, Value};

use crate::request::Request;

/// The parameters that filter by tags.
pub(crate) const TAG_PARAMETERS: [&str; 4] = ["tags", "tags-any", "not-tags", "not-tags-any"];

/// A filter by tags, as the query has it.
#[derive(Debug, Default)]
pub(crate) struct TagFilter {
    all: Vec<String>,
    any: Vec<String>,
    not_all: Vec<String>,
    not_any: Vec<String>,
}

impl TagFilter {
    /// Reads the four parameters; each is a list with commas.
    pub(crate) fn from_request(request: &Request) -> Self {
        let list = |name: &str| {
            let values = request.parameters(name).join(",");
            values.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        };
        Self {
            all: list("tags"),
            any: list("tags-any"),
            not_all: list("not-tags"),
            not_any: list("not-tags-any"),
        }
    }

    /// Whether an object with these tags is wanted.
    pub(crate) fn accepts(&self, tags: &Value) -> bool {
        let tags: Vec<&str> = tags.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let has = |tag: &String| tags.contains(&tag.as_str());
        self.all.iter().all(has)
            && (self.any.is_empty() || self.any.iter().any(has))
            && (self.not_all.is_empty() || !self.not_all.iter().all(has))
            && !self.not_any.iter().any(has)
    }
}

/// Whether a value is the one that the query asks for; text is compared exactly, Booleans in any case.
pub(crate) fn scalar_matches(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Bool(flag) => match wanted.to_ascii_lowercase().as_str() {
            "true" | "1" => *flag,
            "false" | "0" => !*flag,
            _ => false,
        },
        Value::Number(number) => number.to_string() == wanted,
        Value::Null => wanted.is_empty(),
        Value::Array(items) => items.iter().any(|item| scalar_matches(item, wanted)),
        Value::Object(_) => false,
    }
}

/// Keeps the named fields; all when none is named.
pub(crate) fn select_fields(view: Value, fields: &[&str]) -> Value {
    match view {
        Value::Object(entries) if !fields.is_empty() => {
            let kept: Map<String, Value> =
                entries.into_iter().filter(|(name, _)| fields.contains(&name.as_str())).collect();
            Value::Object(kept)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::service::Service;

    #[rstest]
    #[case("tags=a,b", true)]
    #[case("tags=a,c", false)]
    #[case("tags-any=c,a", true)]
    #[case("not-tags=a,b", false)]
    #[case("not-tags=a,c", true)]
    #[case("not-tags-any=a,c", false)]
    #[case("", true)]
    fn tag_filters_choose_as_neutron_documents(#[case] query: &str, #[case] accepted: bool) {
        let request = http::Request::builder().uri(format!("/x?{query}")).body(Bytes::new()).unwrap();
        let filter = TagFilter::from_request(&Request::new(Service::Network, request));
        assert_eq!(filter.accepts(&json!(["a", "b"])), accepted);
    }
}
