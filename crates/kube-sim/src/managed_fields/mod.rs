//! Who set which field: the entries of `metadata.managedFields`.

mod field_set;

pub(crate) use field_set::FieldSet;
use field_set::{changed_fields, fields_of};

use serde_json::{Value, json};

use crate::schema::Schema;

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    pub(crate) time: Value,
    pub(crate) fields: FieldSet,
}

impl Entry {
    pub(crate) fn is_same_writer(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.subresource == other.subresource
            && self.api_version == other.api_version
    }

    /// The order of writing.
    fn order(&self) -> (&str, &str, &str, &str) {
        let time = self.time.as_str().unwrap_or_default();
        (time, &self.manager, &self.api_version, &self.subresource)
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": "Update", "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": self.fields.to_json(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = self.subresource.as_str().into();
        }
        entry
    }

    fn from_json(value: &Value) -> Self {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        Self {
            manager: text("manager"),
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: value["time"].clone(),
            fields: FieldSet::from_json(&value["fieldsV1"]),
        }
    }
}

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

/// Accounts a write between two states in the form that the writer sees: what `writer` changed is its own now, what is
/// gone belongs to nobody.
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
