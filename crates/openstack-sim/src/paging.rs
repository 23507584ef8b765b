//! Sorting lists and cutting pages out of them.

use std::cmp::Ordering;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortKey {
    /// The attribute.
    pub(crate) name: String,
    /// Whether the greatest comes first.
    pub(crate) descending: bool,
}

impl SortKey {
    /// Ascending by an attribute.
    pub(crate) fn ascending(name: &str) -> Self {
        Self { name: name.to_owned(), descending: false }
    }

    /// Reads `name` or `name:desc`.
    pub(crate) fn parse(text: &str) -> Self {
        let (name, direction) = text.split_once(':').unwrap_or((text, "asc"));
        Self { name: name.to_owned(), descending: direction == "desc" }
    }
}

/// Sorts views; later keys decide between equals.
pub(crate) fn sort(views: &mut [Value], keys: &[SortKey]) {
    views.sort_by(|one, other| {
        keys.iter()
            .map(|key| {
                let order = compare(&one[&key.name], &other[&key.name]);
                if key.descending { order.reverse() } else { order }
            })
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    });
}

fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (one, other) => one.to_string().cmp(&other.to_string()),
    }
}

/// The page after (or before, when `reverse`) the entry with the id `marker`; `None` when there is no such entry.
pub(crate) fn page(
    mut views: Vec<Value>,
    marker: Option<&str>,
    limit: Option<usize>,
    reverse: bool,
) -> Option<Vec<Value>> {
    if reverse {
        views.reverse();
    }
    if let Some(marker) = marker {
        let at = views.iter().position(|view| view["id"] == marker)?;
        views.drain(..=at);
    }
    if let Some(limit) = limit {
        views.truncate(limit);
    }
    if reverse {
        views.reverse();
    }
    Some(views)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn views() -> Vec<Value> {
        ["a", "b", "c", "d"].iter().map(|id| json!({"id": id})).collect()
    }

    #[test]
    fn pages_follow_each_other_in_both_directions() {
        let ids = |page: Option<Vec<Value>>| {
            page.map(|views| views.iter().map(|view| view["id"].to_string()).collect::<String>())
        };
        assert_eq!(ids(page(views(), None, Some(2), false)).as_deref(), Some("\"a\"\"b\""));
        assert_eq!(ids(page(views(), Some("b"), Some(2), false)).as_deref(), Some("\"c\"\"d\""));
        assert_eq!(ids(page(views(), Some("d"), Some(2), true)).as_deref(), Some("\"b\"\"c\""));
        assert_eq!(ids(page(views(), Some("x"), None, false)), None);
    }
}
