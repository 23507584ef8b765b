//! `metadata`: what the server fills in and what it refuses.

use serde_json::Value;

use super::State;
use crate::failure::FieldError;
use crate::go_text;
use crate::names::{NameRule, label_value_problem, qualified_name_problem, subdomain_problem};
use crate::object::{is_terminating, metadata, text, texts};
use crate::version::ApiVersion;

/// Fields that only the server writes: an update carries them over.
const CARRIED_OVER: [&str; 7] = [
    "name",
    "namespace",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

impl State {
    /// Gives a new object its name, identity and birthday.
    pub(super) fn give_birth(&mut self, object: &mut Value, namespace: &str, name: &str) {
        let uid = self.new_uid();
        let stamp = self.clock.stamp();
        let metadata = metadata(object);
        for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"] {
            metadata.remove(field);
        }
        if !namespace.is_empty() {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), stamp);
    }
}

/// Carries over what an update cannot change.
pub(super) fn carry_over(new: &mut Value, old: &Value) {
    let fields = metadata(new);
    for name in CARRIED_OVER {
        match old["metadata"].get(name) {
            Some(value) => fields.insert(name.to_owned(), value.clone()),
            None => fields.remove(name),
        };
    }
    if !fields.contains_key("uid") {
        fields.insert("uid".to_owned(), old["metadata"]["uid"].clone());
    }
}

/// Problems of the metadata of a new object.
pub(super) fn creation_problems(object: &Value, rule: NameRule, version: ApiVersion) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let prefix = text(object, "/metadata/generateName");
    if !prefix.is_empty() && version.minor() >= 36 {
        // A dash at the end is fine: letters follow.
        let checked = prefix.strip_suffix('-').unwrap_or(prefix);
        if let Some(problem) = rule.problem(checked) {
            problems.push(FieldError::invalid("metadata.generateName", &prefix.into(), &problem));
        }
    }
    let name = text(object, "/metadata/name");
    if let Some(problem) = rule.problem(name) {
        problems.push(FieldError::invalid("metadata.name", &name.into(), &problem));
    }
    problems.extend(common_problems(object));
    problems
}

/// Problems of the metadata of an update.
pub(super) fn update_problems(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let uid = &new["metadata"]["uid"];
    if *uid != old["metadata"]["uid"] {
        problems.push(FieldError::invalid("metadata.uid", uid, "field is immutable"));
    }
    if is_terminating(old) {
        let before = texts(old, "/metadata/finalizers");
        let now = texts(new, "/metadata/finalizers");
        let added: Vec<&str> = now.into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
        if !added.is_empty() {
            let rule = "no new finalizers can be added if the object is being deleted, found new finalizers";
            let rule = format!("{rule} {}", go_text::string_list(&added));
            problems.push(FieldError::forbidden("metadata.finalizers", &rule));
        }
    }
    problems.extend(common_problems(new));
    problems
}

fn common_problems(object: &Value) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        if let Some(problem) = qualified_name_problem(key) {
            problems.push(FieldError::invalid("metadata.labels", &key.as_str().into(), &problem));
        }
        if let Some(problem) = label_value_problem(value.as_str().unwrap_or_default()) {
            problems.push(FieldError::invalid("metadata.labels", value, &problem));
        }
    }
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    for key in annotations.into_iter().flatten().map(|(key, _)| key) {
        if let Some(problem) = qualified_name_problem(&key.to_lowercase()) {
            problems.push(FieldError::invalid("metadata.annotations", &key.as_str().into(), &problem));
        }
    }
    for (index, finalizer) in texts(object, "/metadata/finalizers").into_iter().enumerate() {
        let field = format!("metadata.finalizers[{index}]");
        if let Some(problem) = qualified_name_problem(finalizer) {
            problems.push(FieldError::invalid(field, &finalizer.into(), &problem));
        } else if !finalizer.contains('/') && !is_standard_finalizer(finalizer) {
            let rule = "name is neither a standard finalizer name nor is it fully qualified";
            problems.push(FieldError::invalid(field, &finalizer.into(), rule));
        }
    }
    for (index, owner) in crate::object::list(object, "/metadata/ownerReferences").iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &format!("/{field}")).is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                problems.push(FieldError::required(path, "must not be empty"));
            }
        }
    }
    problems
}

fn is_standard_finalizer(name: &str) -> bool {
    matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") && subdomain_problem(name).is_none()
}
