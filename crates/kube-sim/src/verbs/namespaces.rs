//! Namespaces hold other objects: nothing is created without one, and one that is deleted is emptied first, as the
//! namespace controller of a real cluster does.

use serde_json::Value;

use super::{DeleteOptions, State, Target};
use crate::failure::Failure;
use crate::kinds::{self, Part};
use crate::object::{self, is_terminating, texts};
use crate::store::Key;

impl State {
    /// Refuses a creation in a namespace that is absent or on its way out.
    pub(super) fn require_namespace(
        &self,
        target: &Target,
        namespace: &str,
        object: &Value,
    ) -> Result<(), Failure> {
        if !target.resource.namespaced {
            return Ok(());
        }
        let Some(stored) = self.store.get("namespaces", &Key::new("", namespace)) else {
            let subject = crate::failure::Subject { group: "", kind: "namespaces", name: namespace };
            return Err(Failure::not_found(subject));
        };
        if is_terminating(&stored.object) {
            let name = object::name(object);
            let detail = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            return Err(Failure::forbidden(target.subject(name), &detail));
        }
        Ok(())
    }

    /// Whether an object is a namespace with something left in it.
    pub(super) fn holds_content(&self, target: &Target, object: &Value) -> bool {
        target.resource.plural == "namespaces" && !self.content_of(object::name(object)).is_empty()
    }

    fn content_of(&self, namespace: &str) -> Vec<Target> {
        let namespaced = kinds::all().iter().filter(|one| one.namespaced && one.view == kinds::View::Stored);
        namespaced
            .flat_map(|resource| {
                self.store.all(resource.storage).into_iter().map(move |stored| (resource, stored))
            })
            .filter(|(_, stored)| object::namespace(&stored.object) == namespace)
            .map(|(resource, stored)| Target {
                resource,
                namespace: namespace.to_owned(),
                name: object::name(&stored.object).to_owned(),
                part: Part::Main,
            })
            .collect()
    }

    /// Deletes everything in a namespace, then the namespace itself, unless finalizers hold something back.
    pub(super) fn empty_namespace(&mut self, namespace: &str) {
        for target in self.content_of(namespace) {
            // Objects with finalizers stay marked; there is nothing else that can be refused.
            let _ = self.delete(&target, &DeleteOptions::default());
        }
        self.finish_namespace(namespace);
    }

    /// Removes a namespace that is on its way out once nothing is left in it.
    pub(super) fn finish_namespace(&mut self, namespace: &str) {
        let key = Key::new("", namespace);
        let Some(stored) = self.store.get("namespaces", &key).filter(|_| !namespace.is_empty()) else {
            return;
        };
        let is_done = is_terminating(&stored.object)
            && texts(&stored.object, "/metadata/finalizers").is_empty()
            && self.content_of(namespace).is_empty();
        if is_done {
            self.store.remove("namespaces", Value::clone(&stored.object), self.version);
        }
    }
}
