//! Sets of field paths.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::schema::{Schema, Topology};

/// Fields that belong to the server, so that nobody manages them.
const SERVER_OWNED: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
    "managedFields",
];

/// A set of field paths as a tree. Keys are path elements: `f:name`, `k:{"port":80}`, `v:"value"`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Whether the path up to here is in the set.
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    fn leaf() -> Self {
        Self { member: true, children: BTreeMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    fn insert(&mut self, element: String, set: Self) {
        if !set.is_empty() {
            self.children.insert(element, set);
        }
    }

    /// The set without what the server owns.
    pub(crate) fn without_server_owned(mut self) -> Self {
        self.children.remove("f:apiVersion");
        self.children.remove("f:kind");
        if let Some(metadata) = self.children.get_mut("f:metadata") {
            metadata.member = false;
            for name in SERVER_OWNED {
                metadata.children.remove(&format!("f:{name}"));
            }
            if metadata.is_empty() {
                self.children.remove("f:metadata");
            }
        }
        self
    }

    /// The set without a top-level field.
    pub(crate) fn without(mut self, field: &str) -> Self {
        self.children.remove(&format!("f:{field}"));
        self
    }

    pub(crate) fn union(&mut self, other: &Self) {
        self.member |= other.member;
        for (element, set) in &other.children {
            self.children.entry(element.clone()).or_default().union(set);
        }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |own, theirs| own && theirs, false)
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(other, |own, theirs| own && !theirs, true)
    }

    fn combine(&self, other: &Self, keep: fn(bool, bool) -> bool, keep_unmatched: bool) -> Self {
        let mut combined = Self { member: keep(self.member, other.member), children: BTreeMap::new() };
        for (element, set) in &self.children {
            match other.children.get(element) {
                Some(theirs) => combined.insert(element.clone(), set.combine(theirs, keep, keep_unmatched)),
                None if keep_unmatched => combined.insert(element.clone(), set.clone()),
                None => {}
            }
        }
        combined
    }

    /// `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.children.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        fields.extend(self.children.iter().map(|(element, set)| (element.clone(), set.to_json())));
        Value::Object(fields)
    }

    /// The set that `fieldsV1` describes.
    pub(crate) fn from_json(value: &Value) -> Self {
        let Value::Object(fields) = value else { return Self::leaf() };
        let children: BTreeMap<String, Self> = fields
            .iter()
            .filter(|(element, _)| *element != ".")
            .map(|(element, set)| (element.clone(), Self::from_json(set)))
            .collect();
        Self { member: children.is_empty() || fields.contains_key("."), children }
    }
}

/// The path element of an entry of a list; `None` for lists that are one value.
fn list_element(topology: &Topology, item: &Value) -> Option<String> {
    match topology {
        Topology::Atomic => None,
        Topology::Set => Some(format!("v:{item}")),
        Topology::Keyed(keys) => {
            let keys: Map<String, Value> = keys
                .iter()
                .filter_map(|key| {
                    let default = || key.default.as_deref().map(Value::from);
                    Some((key.name.clone(), item.get(&key.name).cloned().or_else(default)?))
                })
                .collect();
            Some(format!("k:{}", Value::Object(keys)))
        }
    }
}

pub(super) fn fields_of(schema: &Schema, value: &Value) -> FieldSet {
    changed_fields(schema, &Value::Null, value)
}

/// Fields that are set in `new` and were not set, or set to something else, in `old`.
pub(super) fn changed_fields(schema: &Schema, old: &Value, new: &Value) -> FieldSet {
    if old == new {
        return FieldSet::default();
    }
    match (schema, new) {
        (Schema::Object(_), Value::Object(fields)) => {
            // An empty object counts where it was stated, not where something was taken out of it.
            let mut set = FieldSet { member: fields.is_empty() && old.is_null(), children: BTreeMap::new() };
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let inner = schema.field(name).map_or(&Schema::Anything, |field| &field.schema);
                let before = old.get(name).unwrap_or(&Value::Null);
                set.insert(format!("f:{name}"), changed_fields(inner, before, value));
            }
            set
        }
        (Schema::Map, Value::Object(entries)) => {
            let mut set = FieldSet { member: old.is_null(), children: BTreeMap::new() };
            for (key, value) in entries {
                if old.get(key) != Some(value) {
                    set.insert(format!("f:{key}"), FieldSet::leaf());
                }
            }
            set
        }
        (Schema::List(item, topology), Value::Array(items)) if *topology != Topology::Atomic => {
            let mut set = FieldSet { member: old.is_null(), children: BTreeMap::new() };
            let old_items = old.as_array().map_or(&[][..], Vec::as_slice);
            for value in items {
                let Some(element) = list_element(topology, value) else { continue };
                let before =
                    old_items.iter().find(|other| list_element(topology, other).as_ref() == Some(&element));
                let mut inner = changed_fields(item, before.unwrap_or(&Value::Null), value);
                inner.member |= before.is_none();
                set.insert(element, inner);
            }
            set
        }
        (_, Value::Null) => FieldSet::default(),
        _ => FieldSet::leaf(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::parse;

    proptest! {
        #[test]
        fn a_set_survives_the_way_through_an_object(
            labels in proptest::collection::btree_map("[a-z]{1,4}", "[a-z]{0,3}", 0..4),
            finalizers in proptest::collection::vec("[a-z]{1,4}", 0..4),
            ports in proptest::collection::vec(1_u16..5, 0..4),
        ) {
            let schema = parse("labels:map finalizers[=] ports[port,protocol=TCP]{port:int protocol}").unwrap();
            let ports: Vec<Value> = ports.iter().map(|port| json!({"port": port})).collect();
            let object = json!({"labels": labels, "finalizers": finalizers, "ports": ports});
            let set = fields_of(&schema, &object);
            prop_assert_eq!(&FieldSet::from_json(&set.to_json()), &set);
            prop_assert!(set.difference(&set).is_empty());
            prop_assert_eq!(&set.intersection(&set), &set);
        }
    }
}
