//! PUT, and the second half of every PATCH.

use serde_json::Value;

use super::create::{check_name, check_type};
use super::metadata;
use super::{State, Target, WriteOptions, Written, judge_unknown_sent, storage_of};
use crate::failure::{Failure, FieldError};
use crate::kinds::Part;
use crate::managed_fields;
use crate::object::{is_same_content, is_terminating, set_metadata, text, texts};
use crate::store::Stored;

impl State {
    /// Replaces an object with what a client sent.
    pub(crate) fn update(
        &mut self,
        target: &Target,
        sent: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        check_type(target, sent)?;
        let (mut object, unknown) = self.decode_sent(target.resource, sent)?;
        let warnings = judge_unknown_sent(target.resource, &unknown, options.field_validation)?;
        check_name(target, &mut object)?;
        let version = text(&object, "/metadata/resourceVersion").to_owned();
        let Some(stored) = self.store.get(target.resource.storage, &target.key()) else {
            if !(target.resource.rules.creates_on_update() && target.part == Part::Main && version.is_empty())
            {
                return Err(target.not_found());
            }
            let object = self.create_decoded(target, object, options)?;
            return Ok(Written { object, created: true, warnings });
        };
        if version.is_empty() && !target.resource.rules.allows_unconditional_update() {
            let zero = self.version.zero_resource_version();
            let problem = FieldError::invalid_as_written(
                "metadata.resourceVersion",
                zero,
                "must be specified for an update",
            );
            return Err(Failure::invalid(target.subject(&target.name), &[problem]));
        }
        let (uid, own_uid) = (text(&object, "/metadata/uid"), text(&stored.object, "/metadata/uid"));
        if !uid.is_empty() && uid != own_uid {
            let detail =
                format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own_uid}");
            return Err(Failure::conflict(target.subject(&target.name), &detail));
        }
        let object = self.update_decoded(target, &stored, object, options)?;
        Ok(Written { object, created: false, warnings })
    }

    /// Replaces a stored object with a decoded one.
    pub(super) fn update_decoded(
        &mut self,
        target: &Target,
        stored: &Stored,
        mut new: Value,
        options: &WriteOptions,
    ) -> Result<Value, Failure> {
        let resource = target.resource;
        let storage = storage_of(resource);
        let old = self.read(resource, stored);
        let asked_for = text(&new, "/metadata/resourceVersion").to_owned();
        if !asked_for.is_empty() && asked_for != text(&old, "/metadata/resourceVersion") {
            return Err(Failure::modified(target.subject(&target.name)));
        }
        set_metadata(&mut new, "resourceVersion", old["metadata"]["resourceVersion"].clone());
        metadata::carry_over(&mut new, &old);
        storage.rules.before_update(&mut new, &old, target.part, self.version);
        self.refuse_invalid(target, &new, Some(&old))?;
        set_metadata(&mut new, "managedFields", old["metadata"]["managedFields"].clone());
        let entries = self.account(target, Some(&old), &new, options);
        storage
            .rules
            .allocate(&mut new, Some(&old), &self.allocations)
            .map_err(|problem| Failure::invalid(target.kind_subject(&target.name), &[problem]))?;
        managed_fields::write(&mut new, &entries);
        if is_same_content(&new, &stored.object) {
            return Ok(self.show(resource, stored));
        }
        let finished = is_terminating(&new) && texts(&new, "/metadata/finalizers").is_empty();
        if options.dry_run {
            return Ok(self.show_unstored(resource, new));
        }
        if finished && !self.holds_content(target, &new) {
            let answer = self.show_unstored(resource, new.clone());
            self.remove_object(resource, new);
            self.finish_namespace(&target.namespace);
            return Ok(answer);
        }
        let stored = self.store_object(resource, Some(&old), new);
        Ok(self.show(resource, &stored))
    }
}
