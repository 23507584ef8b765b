//! PATCH in its four formats.

use serde_json::Value;

use super::create::check_name;
use super::update::patch_options;
use super::{State, Target, WriteOptions, Written, judge_unknown};
use crate::failure::{Failure, FieldError, Subject};
use crate::go_text;
use crate::kinds::{Part, Resource};
use crate::managed_fields::{self, Operation};
use crate::object::section;
use crate::patch::{PatchKind, apply, json, merge, strategic};
use crate::schema::decode;
use crate::store::Stored;

impl State {
    /// Changes an object as a client asks.
    pub(crate) fn patch(
        &mut self,
        target: &Target,
        kind: PatchKind,
        patch: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        let stored = self.store.get(target.resource.storage, &target.key());
        if kind == PatchKind::Apply {
            return self.apply(target, stored, patch, options);
        }
        let stored = stored.ok_or_else(|| target.not_found())?;
        let current = self.show(target.resource, &stored);
        let mut patched = current.clone();
        match (kind, patch) {
            (PatchKind::Json, Value::Array(operations)) => {
                json::apply(&mut patched, operations).map_err(|_| Failure::unprocessable())?;
            }
            (PatchKind::Merge, Value::Object(_)) => merge::merge(&mut patched, patch),
            (PatchKind::Strategic, Value::Object(_)) => {
                strategic::merge(&target.resource.schema, &mut patched, patch);
            }
            (PatchKind::Json | PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply, _) => {
                return Err(Failure::bad_request(
                    "error decoding patch: json: cannot unmarshal the patch into the type that its format asks for",
                ));
            }
        }
        let quoted = || match kind {
            PatchKind::Strategic => go_text::print(patch),
            PatchKind::Json | PatchKind::Merge | PatchKind::Apply => patched.to_string(),
        };
        let (mut object, unknown) = self
            .decode_or_refuse(target.resource, &patched)
            .map_err(|complaint| refused_patch(quoted(), &complaint.0))?;
        // The refusal quotes the patched object, or the patch.
        let refusal = |wrong: &str| refused_patch(quoted(), wrong);
        let warnings = judge_unknown(&unknown, options.field_validation, refusal)?;
        check_name(target, &mut object)?;
        let object = self.update_decoded(target, &stored, object, options, None)?;
        Ok(Written { object, created: false, warnings })
    }

    fn apply(
        &mut self,
        target: &Target,
        stored: Option<Stored>,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        let resource = target.resource;
        if options.manager.is_empty() {
            let problem = FieldError::required("fieldManager", "is required for apply patch");
            return Err(Failure::invalid(patch_options(), &[problem]));
        }
        if config.pointer("/metadata/managedFields").is_some() {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        self.check_declared(target, config)?;
        let live = stored.as_ref().map(|stored| self.show(resource, stored));
        let mut base = live.clone().unwrap_or_else(|| serde_json::json!({"metadata": {}}));
        section(&mut base, "metadata");
        let writer = self.writer(target, options, Operation::Apply);
        let mut config = config.clone();
        if let Some(fields) = config.as_object_mut() {
            fields.remove(match target.part {
                Part::Main => "status",
                Part::Status => "spec",
            });
        }
        let merged = apply::apply(&resource.schema, &base, &config, writer, options.force)?;
        let entries = managed_fields::read(&merged);
        let (mut object, _) = self.decode_sent(resource, &merged)?;
        check_name(target, &mut object)?;
        let created = stored.is_none();
        let object = match stored {
            Some(stored) => self.update_decoded(target, &stored, object, options, Some(entries))?,
            None if target.part == Part::Main || resource.rules.creates_on_update() => {
                let main = Target { part: Part::Main, ..target.clone() };
                self.create_decoded(&main, object, options, Some(entries))?
            }
            None => return Err(target.not_found()),
        };
        Ok(Written { object, created, warnings: Vec::new() })
    }

    /// Apply refuses fields that the release's schema does not have, and only those.
    fn check_declared(&self, target: &Target, config: &Value) -> Result<(), Failure> {
        let mut unknown = Vec::new();
        let decoded = decode(&target.resource.schema, config, self.version.minor(), &mut unknown);
        decoded.map_err(|error| Failure::bad_request(error.0))?;
        let Some(field) = unknown.first() else { return Ok(()) };
        let Resource { group, version, kind, .. } = target.resource;
        let object = if target.namespace.is_empty() {
            target.name.clone()
        } else {
            format!("{}/{}", target.namespace, target.name)
        };
        Err(Failure::internal(format!(
            "failed to create typed patch object ({object}; {group}/{version}, Kind={kind}): .{field}: field not \
             declared in schema"
        )))
    }
}

/// A patch whose result is no object of the kind. `quoted` is the patched object, or the patch.
fn refused_patch(quoted: String, rule: &str) -> Failure {
    let problem = FieldError::invalid("patch", &quoted.into(), rule);
    Failure::invalid(Subject { group: "", kind: "", name: "" }, &[problem])
}
