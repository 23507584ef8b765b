//! Who set which field: the entries of `metadata.managedFields`.

mod field_set;

pub(crate) use field_set::{FieldSet, changed_fields, fields_of, list_element};

use serde_json::{Value, json};

use crate::schema::Schema;

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
