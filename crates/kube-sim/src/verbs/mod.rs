//! What the server does with an object on each verb.

mod create;
mod delete;
mod list;
mod metadata;
mod namespaces;
mod patch;
mod update;

pub(crate) use delete::DeleteOptions;
pub(crate) use list::{ListOptions, VersionMatch, is_listed, parse_resource_version};

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::failure::{Failure, FieldError, Subject};
use crate::go_text;
use crate::kinds::{self, Allocations, Part, Resource, View, Write};
use crate::managed_fields::{self, Entry, FieldSet};
use crate::object::{name, section};
use crate::schema::{DecodeError, decode};
use crate::store::{Key, Store, Stored};
use crate::version::ApiVersion;

/// What a request addresses.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) resource: &'static Resource,
    /// Empty for cluster-scoped resources, and for a list of all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) part: Part,
}

impl Target {
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// The object as refusals name it: `services "web"`. Both views of events are the core group's here.
    pub(crate) fn subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: storage_of(self.resource).group, kind: self.resource.plural, name }
    }

    /// The object as validation names it: `Service "web"`.
    pub(crate) fn kind_subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: storage_of(self.resource).group, kind: self.resource.kind, name }
    }

    fn not_found(&self) -> Failure {
        Failure::not_found(self.subject(&self.name))
    }
}

/// What to do about fields that the server does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Strict,
    #[default]
    Warn,
    Ignore,
}

/// How a write is to be made.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_validation: FieldValidation,
    /// Name of the writer in `managedFields`.
    pub(crate) manager: String,
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    /// The object, or a `Status` for some deletions.
    pub(crate) object: Value,
    /// Whether the object is new: HTTP 201 instead of 200.
    pub(crate) created: bool,
    /// Texts for `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

/// Everything that the simulated server remembers.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) version: ApiVersion,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) allocations: Allocations,
    /// Counts generated names and identities, so that each run generates the same ones.
    generated: u64,
}

/// Name space of the identities, so that each run gives the same object the same uid.
const IDENTITIES: uuid::Uuid = uuid::Uuid::from_u128(0x6b75_6265_2d73_696d_8000_0000_0000_0001);
/// The letters of generated names.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Letters that are added to `generateName`.
const SUFFIX_LENGTH: usize = 5;

impl State {
    pub(crate) fn new(version: ApiVersion, clock: Clock) -> Self {
        Self { version, clock, store: Store::new(), allocations: Allocations::default(), generated: 0 }
    }

    /// Has identities differ from those of a cluster with another number.
    pub(crate) fn number_identities(&mut self, number: u16) {
        self.generated = u64::from(number) << 32;
    }

    /// The object that a target names.
    pub(crate) fn get(&self, target: &Target) -> Result<Value, Failure> {
        let stored = self.store.get(target.resource.storage, &target.key());
        Ok(self.show(target.resource, &stored.ok_or_else(|| target.not_found())?))
    }

    /// A stored object as this release shows it: fields it does not know are gone, defaults it sets are there.
    pub(crate) fn show(&self, resource: &Resource, stored: &Stored) -> Value {
        let object = self.read(resource, stored);
        match resource.view {
            View::Stored => Arc::unwrap_or_clone(object),
            View::EventsGroup => self.in_view(resource, &object).into_owned(),
        }
    }

    /// An object of this release, from its stored form to the form of a resource.
    fn in_view<'a>(&self, resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
        match resource.view {
            View::Stored => Cow::Borrowed(object),
            View::EventsGroup => {
                let renamed = kinds::events_group_form(object);
                let mut shown = self.decode_leniently(resource, &renamed).unwrap_or(renamed);
                stamp_type(&mut shown, resource);
                Cow::Owned(shown)
            }
        }
    }

    /// `managedFields` after a write by `options.manager`. `old` is absent on creation.
    fn account(
        &self,
        target: &Target,
        old: Option<&Value>,
        new: &Value,
        options: &WriteOptions,
    ) -> Vec<Entry> {
        let resource = target.resource;
        let writer = self.writer(target, options);
        let old = match old {
            Some(old) => self.in_view(resource, old),
            // Fields that are always shown were not set by anyone.
            None => Cow::Owned(self.decode_leniently(resource, &json!({})).unwrap_or_default()),
        };
        managed_fields::account(&resource.schema, &old, &self.in_view(resource, new), writer)
    }

    /// A stored object in its stored form, as this release reads it.
    fn read(&self, resource: &Resource, stored: &Stored) -> Arc<Value> {
        if stored.written_by == self.version {
            return Arc::clone(&stored.object);
        }
        let storage = storage_of(resource);
        match self.decode_leniently(storage, &stored.object) {
            Ok(mut object) => {
                storage.rules.set_defaults(&mut object, self.version);
                stamp_type(&mut object, storage);
                Arc::new(object)
            }
            Err(_) => Arc::clone(&stored.object),
        }
    }

    fn decode_leniently(&self, resource: &Resource, object: &Value) -> Result<Value, DecodeError> {
        decode(&resource.schema, object, self.version.minor(), &mut Vec::new())
    }

    /// Decodes what a client sent into the stored form. Unknown fields are returned.
    fn decode_sent(&self, resource: &Resource, sent: &Value) -> Result<(Value, Vec<String>), Failure> {
        self.decode_or_refuse(resource, sent).map_err(|error| {
            let (kind, version) = (resource.kind, resource.version);
            Failure::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: {}",
                error.0
            ))
        })
    }

    /// The same with the bare complaint about what cannot be decoded.
    fn decode_or_refuse(
        &self,
        resource: &Resource,
        sent: &Value,
    ) -> Result<(Value, Vec<String>), DecodeError> {
        let mut unknown = Vec::new();
        let minor = self.version.minor();
        let mut object = decode(&resource.schema, sent, minor, &mut unknown)?;
        let storage = storage_of(resource);
        if resource.view == View::EventsGroup {
            let renamed = kinds::core_form(&object);
            object = decode(&storage.schema, &renamed, minor, &mut Vec::new())?;
        }
        storage.rules.set_defaults(&mut object, self.version);
        stamp_type(&mut object, storage);
        Ok((object, unknown))
    }

    /// What the rules say against a write.
    fn problems(&self, target: &Target, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let rules = target.resource.rules;
        let own = rules.validate(&Write { new, old, part: target.part, version: self.version });
        let common = match old {
            None => metadata::creation_problems(new, rules.name_rule(self.version), self.version),
            Some(old) => metadata::update_problems(new, old),
        };
        // The server checks the metadata of an update twice, and of an event after everything else.
        if target.resource.plural == "events" {
            own.into_iter().chain(common).collect()
        } else if old.is_some() {
            common.iter().cloned().chain(common.clone()).chain(own).collect()
        } else {
            common.into_iter().chain(own).collect()
        }
    }

    fn refuse_invalid(&self, target: &Target, new: &Value, old: Option<&Value>) -> Result<(), Failure> {
        let problems = self.problems(target, new, old);
        if problems.is_empty() {
            return Ok(());
        }
        Err(Failure::invalid(target.kind_subject(name(new)), &problems))
    }

    pub(crate) fn store_object(&mut self, resource: &Resource, old: Option<&Value>, new: Value) -> Stored {
        if resource.storage == "services" {
            self.allocations.replace(old, Some(&new));
        }
        self.store.put(resource.storage, new, self.version)
    }

    /// Takes an object out of the store; `last` is the state that watchers get.
    fn remove_object(&mut self, resource: &Resource, last: Value) {
        if resource.storage == "services" {
            self.allocations.replace(Some(&last), None);
        }
        self.store.remove(resource.storage, last, self.version);
    }

    fn writer(&self, target: &Target, options: &WriteOptions) -> Entry {
        Entry {
            manager: options.manager.clone(),
            api_version: target.resource.api_version(),
            subresource: match target.part {
                Part::Main => String::new(),
                Part::Status => "status".to_owned(),
            },
            time: self.clock.stamp(),
            fields: FieldSet::default(),
        }
    }

    pub(crate) fn new_uid(&mut self) -> String {
        self.generated += 1;
        uuid::Uuid::new_v5(&IDENTITIES, &self.generated.to_be_bytes()).to_string()
    }

    fn name_suffix(&mut self) -> String {
        self.generated += 1;
        let seed = uuid::Uuid::new_v5(&IDENTITIES, &self.generated.to_be_bytes());
        let letters = seed.as_bytes().iter().take(SUFFIX_LENGTH).map(|byte| {
            let index = usize::from(*byte) % ALPHABET.len();
            ALPHABET.get(index).map_or('x', |letter| char::from(*letter))
        });
        letters.collect()
    }
}

/// The resource in whose form the objects are stored.
fn storage_of(resource: &Resource) -> &Resource {
    match resource.view {
        View::Stored => resource,
        View::EventsGroup => kinds::find("", "v1", resource.storage).unwrap_or(resource),
    }
}

/// Sets `apiVersion` and `kind`.
fn stamp_type(object: &mut Value, resource: &Resource) {
    object["kind"] = resource.kind.into();
    object["apiVersion"] = resource.api_version().into();
}

/// Refuses or warns about unknown fields; `refusal` is made of what is wrong.
fn judge_unknown(
    unknown: &[String],
    validation: FieldValidation,
    refusal: impl FnOnce(&str) -> Failure,
) -> Result<Vec<String>, Failure> {
    let texts: Vec<String> =
        unknown.iter().map(|path| format!("unknown field {}", go_text::quote(path))).collect();
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(texts),
        FieldValidation::Strict if texts.is_empty() => Ok(Vec::new()),
        FieldValidation::Strict => Err(refusal(&format!("strict decoding error: {}", texts.join(", ")))),
    }
}

/// The same for a whole object that was sent.
fn judge_unknown_sent(
    resource: &Resource,
    unknown: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, Failure> {
    let (kind, version) = (resource.kind, resource.version);
    judge_unknown(unknown, validation, |wrong| {
        Failure::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {wrong}"
        ))
    })
}

/// The answer to a deletion of a kind that does not return the object.
fn deleted_status(target: &Target, object: &Value) -> Value {
    let mut details = section(&mut json!({}), "details").clone();
    details.insert("name".to_owned(), name(object).into());
    if !target.resource.group.is_empty() {
        details.insert("group".to_owned(), target.resource.group.into());
    }
    details.insert("kind".to_owned(), target.resource.plural.into());
    details.insert("uid".to_owned(), object["metadata"]["uid"].clone());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
