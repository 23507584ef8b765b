//! POST.

use std::sync::Arc;

use serde_json::Value;

use super::{State, Target, WriteOptions, Written, judge_unknown_sent, storage_of};
use crate::failure::{Failure, FieldError};
use crate::kinds::Resource;
use crate::managed_fields;
use crate::object::{self, text};
use crate::store::{Key, Stored};

impl State {
    /// Creates what a client sent.
    pub(crate) fn create(
        &mut self,
        target: &Target,
        sent: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        check_type(target, sent)?;
        let (object, unknown) = self.decode_sent(target.resource, sent)?;
        let warnings = judge_unknown_sent(target.resource, &unknown, options.field_validation)?;
        if !text(&object, "/metadata/resourceVersion").is_empty() {
            return Err(Failure::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let object = self.create_decoded(target, object, options)?;
        Ok(Written { object, created: true, warnings })
    }

    /// Creates a decoded object in stored form.
    pub(super) fn create_decoded(
        &mut self,
        target: &Target,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Value, Failure> {
        let resource = target.resource;
        let namespace = self.namespace_of(target, &object)?;
        self.require_namespace(target, &namespace, &object)?;
        let given = object::name(&object).to_owned();
        let name = match text(&object, "/metadata/generateName") {
            prefix if given.is_empty() && !prefix.is_empty() => format!("{prefix}{}", self.name_suffix()),
            "" if given.is_empty() => {
                let subject = target.kind_subject("");
                let problem = FieldError::required("metadata.name", "name or generateName is required");
                return Err(Failure::invalid(subject, &[problem]));
            }
            _ => given,
        };
        self.give_birth(&mut object, &namespace, &name);
        let storage = storage_of(resource);
        let as_sent = object.clone();
        storage.rules.before_create(&mut object);
        storage.rules.set_defaults(&mut object, self.version);
        self.refuse_invalid(target, &object, None)?;
        let key = Key::new(&namespace, &name);
        if self.store.get(resource.storage, &key).is_some() {
            return Err(Failure::already_exists(target.subject(&name)));
        }
        let entries = self.account(target, None, &as_sent, options);
        managed_fields::write(&mut object, &entries);
        storage
            .rules
            .allocate(&mut object, None, &self.allocations)
            .map_err(|problem| Failure::invalid(target.kind_subject(&name), &[problem]))?;
        if options.dry_run {
            return Ok(self.show_unstored(resource, object));
        }
        let stored = self.store_object(resource, None, object);
        Ok(self.show(resource, &stored))
    }

    /// The namespace of a new object: the URL's, which the object may repeat.
    fn namespace_of(&self, target: &Target, object: &Value) -> Result<String, Failure> {
        let given = object::namespace(object);
        if target.resource.namespaced && !given.is_empty() && given != target.namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(target.namespace.clone())
    }

    /// A written object that is not stored, as it is shown.
    pub(super) fn show_unstored(&self, resource: &Resource, object: Value) -> Value {
        let stored = Stored { object: Arc::new(object), written_by: self.version };
        self.show(resource, &stored)
    }
}

/// Refuses an object of another kind than the URL says.
pub(super) fn check_type(target: &Target, sent: &Value) -> Result<(), Failure> {
    let resource = target.resource;
    let (kind, api_version) = (text(sent, "/kind"), text(sent, "/apiVersion"));
    let fits = (kind.is_empty() || kind == resource.kind)
        && (api_version.is_empty() || api_version == resource.api_version());
    if fits && sent.is_object() {
        return Ok(());
    }
    let group_version = |api_version: &str| match api_version.split_once('/') {
        Some((group, version)) => format!("{group}/{version}"),
        None => format!("/{api_version}"),
    };
    Err(Failure::bad_request(format!(
        "{kind} in version \"{}\" cannot be handled as a {}: no kind \"{kind}\" is registered for version \
         \"{}\"",
        api_version.rsplit('/').next().unwrap_or_default(),
        resource.kind,
        group_version(api_version).trim_start_matches('/')
    )))
}

/// Refuses an object whose name is not the URL's.
pub(super) fn check_name(target: &Target, object: &mut Value) -> Result<(), Failure> {
    let given = object::name(object).to_owned();
    if given.is_empty() {
        object::set_metadata(object, "name", target.name.as_str());
    } else if given != target.name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({})",
            target.name
        )));
    }
    let namespace = object::namespace(object).to_owned();
    if target.resource.namespaced && namespace.is_empty() {
        object::set_metadata(object, "namespace", target.namespace.as_str());
    } else if namespace != target.namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
