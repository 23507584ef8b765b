//! Who set which field: sets of field paths, and the entries of `metadata.managedFields`.

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

    /// Paths of the members that have nothing below them, as conflicts name them: `.spec.ports[port=80].name`.
    pub(crate) fn leaf_paths(&self) -> Vec<String> {
        fn walk(set: &FieldSet, path: &str, paths: &mut Vec<String>) {
            if set.children.is_empty() {
                if set.member {
                    paths.push(path.to_owned());
                }
                return;
            }
            for (element, child) in &set.children {
                walk(child, &format!("{path}{}", shown(element)), paths);
            }
        }
        let mut paths = Vec::new();
        walk(self, "", &mut paths);
        paths
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

    pub(crate) fn child(&self, element: &str) -> Option<&Self> {
        self.children.get(element)
    }

    pub(crate) fn is_member(&self) -> bool {
        self.member
    }
}

fn shown(element: &str) -> String {
    match element.split_once(':') {
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        Some((_, name)) => format!(".{name}"),
        None => element.to_owned(),
    }
}

/// The path element of an entry of a list; `None` for lists that are one value.
pub(crate) fn list_element(topology: &Topology, item: &Value) -> Option<String> {
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

/// All fields that are set in a value.
pub(crate) fn fields_of(schema: &Schema, value: &Value) -> FieldSet {
    changed_fields(schema, &Value::Null, value)
}

/// Fields that are set in `new` and were not set, or set to something else, in `old`.
pub(crate) fn changed_fields(schema: &Schema, old: &Value, new: &Value) -> FieldSet {
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

/// How a manager wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Update,
    Apply,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Update => "Update",
            Self::Apply => "Apply",
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    pub(crate) time: Value,
    pub(crate) fields: FieldSet,
}

impl Entry {
    pub(crate) fn is_same_writer(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && self.api_version == other.api_version
    }

    /// Appliers first, then the order of writing.
    fn order(&self) -> (&'static str, &str, &str, &str, &str) {
        let time = self.time.as_str().unwrap_or_default();
        (self.operation.name(), time, &self.manager, &self.api_version, &self.subresource)
    }

    /// The writer as a conflict names it.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("\"{}\"", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource \"{}\"", self.subresource);
        }
        match (self.operation, self.time.as_str()) {
            (Operation::Apply, _) => text,
            (Operation::Update, None) => format!("{text} using {}", self.api_version),
            (Operation::Update, Some(time)) => format!("{text} using {} at {time}", self.api_version),
        }
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation.name(), "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": self.fields.to_json(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = self.subresource.as_str().into();
        }
        entry
    }

    fn from_json(value: &Value) -> Self {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let operation = if value["operation"] == "Apply" { Operation::Apply } else { Operation::Update };
        Self {
            manager: text("manager"),
            operation,
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: value["time"].clone(),
            fields: FieldSet::from_json(&value["fieldsV1"]),
        }
    }
}

/// The entries of an object.
pub(crate) fn read(object: &Value) -> Vec<Entry> {
    crate::object::list(object, "/metadata/managedFields").iter().map(Entry::from_json).collect()
}

/// Replaces the entries of an object; entries without fields are left out.
pub(crate) fn write(object: &mut Value, entries: &[Entry]) {
    let mut entries: Vec<&Entry> = entries.iter().filter(|entry| !entry.fields.is_empty()).collect();
    entries.sort_by_key(|entry| entry.order());
    let entries: Vec<Value> = entries.into_iter().map(Entry::to_json).collect();
    let metadata = crate::object::metadata(object);
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// Accounts a write that was no apply, between two states in the form that the writer sees: what `writer` changed is its own now, what is gone belongs to nobody.
pub(crate) fn account(schema: &Schema, old: &Value, new: &Value, mut writer: Entry) -> Vec<Entry> {
    let mut changed = changed_fields(schema, old, new).without_server_owned();
    // The other part of the object cannot have been meant.
    changed = changed.without(if writer.subresource == "status" { "spec" } else { "status" });
    let present = fields_of(schema, new);
    let mut entries = Vec::new();
    for mut entry in read(old) {
        if entry.api_version != writer.api_version {
            // Another view of the object, with names of its own.
            entries.push(entry);
        } else if entry.is_same_writer(&writer) {
            let mut fields = entry.fields.clone();
            fields.union(&changed);
            entry.fields = fields.intersection(&present);
            if !changed.is_empty() {
                entry.time = writer.time.clone();
            }
            writer = entry;
        } else {
            entry.fields = entry.fields.difference(&changed).intersection(&present);
            entries.push(entry);
        }
    }
    writer.fields.union(&changed);
    entries.push(writer);
    entries
}
