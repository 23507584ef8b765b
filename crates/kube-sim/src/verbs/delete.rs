//! DELETE.

use serde_json::Value;

use super::{State, Target, Written, deleted_status};
use crate::failure::Failure;
use crate::object::{is_terminating, set_metadata, text, texts};

#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    /// The object must have this uid.
    pub(crate) uid: Option<String>,
    /// The object must have this resourceVersion.
    pub(crate) resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads a `DeleteOptions` object. There is no garbage collector: how to treat dependents is of no effect.
    pub(crate) fn from_body(body: &Value) -> Self {
        let precondition = |field: &str| match text(body, &format!("/preconditions/{field}")) {
            "" => None,
            value => Some(value.to_owned()),
        };
        Self {
            dry_run: texts(body, "/dryRun").contains(&"All"),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
        }
    }

    fn check(&self, target: &Target, object: &Value) -> Result<(), Failure> {
        let (uid, version) = (text(object, "/metadata/uid"), text(object, "/metadata/resourceVersion"));
        if let Some(asked_for) = self.uid.as_deref().filter(|asked_for| *asked_for != uid) {
            let detail = format!(
                "the UID in the precondition ({asked_for}) does not match the UID in record ({uid}). The object \
                 might have been deleted and then recreated"
            );
            return Err(Failure::conflict(target.kind_subject(&target.name), &detail));
        }
        if let Some(asked_for) = self.resource_version.as_deref().filter(|asked_for| *asked_for != version) {
            let detail = format!(
                "the ResourceVersion in the precondition ({asked_for}) does not match the ResourceVersion in \
                 record ({version}). The object might have been modified"
            );
            return Err(Failure::conflict(target.kind_subject(&target.name), &detail));
        }
        Ok(())
    }
}

impl State {
    /// Deletes an object, or marks it where finalizers hold it.
    pub(crate) fn delete(&mut self, target: &Target, options: &DeleteOptions) -> Result<Written, Failure> {
        let resource = target.resource;
        let stored = self.store.get(resource.storage, &target.key()).ok_or_else(|| target.not_found())?;
        options.check(target, &stored.object)?;
        let mut object = Value::clone(&self.read(resource, &stored));
        let is_held = !texts(&object, "/metadata/finalizers").is_empty();
        let written = |object: Value| Written { object, created: false, warnings: Vec::new() };
        if is_terminating(&object) && (is_held || self.holds_content(target, &object)) {
            return Ok(written(self.show(resource, &stored)));
        }
        if is_held || resource.plural == "namespaces" {
            set_metadata(&mut object, "deletionTimestamp", self.clock.stamp());
            set_metadata(&mut object, "deletionGracePeriodSeconds", 0);
            if resource.plural == "namespaces" {
                object["status"]["phase"] = "Terminating".into();
            }
            if options.dry_run {
                return Ok(written(self.show_unstored(resource, object)));
            }
            let old = stored.object;
            let stored = self.store_object(resource, Some(&old), object);
            let answer = self.show(resource, &stored);
            if resource.plural == "namespaces" {
                self.empty_namespace(&target.name);
            }
            return Ok(written(answer));
        }
        let answer = if resource.rules.returns_deleted_object() {
            self.show_unstored(resource, object.clone())
        } else {
            deleted_status(target, &object)
        };
        if !options.dry_run {
            self.remove_object(resource, object);
            self.finish_namespace(&target.namespace);
        }
        Ok(written(answer))
    }
}
