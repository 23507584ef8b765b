//! Adding and removing our finalizer without ever touching another's.
//!
//! A merge patch replaces the list of finalizers as a whole. So it is sent with the resourceVersion of the list that was
//! read: after a write in between, the API server answers 409, and the list is read again.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use serde_json::{Map, Value, json};

use super::intent::{FINALIZER, Ours, Wanted, has_finalizer, key, uid};
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_runtime::call::CallError;
use openstack_ccm_runtime::listed::MAX_METADATA_ENTRIES;

/// Maximum of attempts if other clients write in between.
const MAX_ATTEMPTS: usize = 5;

/// How an edit ended.
#[derive(Clone, Debug)]
pub(crate) enum Edited {
    /// The object as it is now.
    Done(Arc<Service>),
    /// The object is gone.
    Gone,
    /// The object asks for something else by now: decide again.
    Stale,
}

/// Adds our finalizer. Nothing may be created in the cloud before that.
pub(crate) async fn add(
    writer: &StatusWriter,
    ours: &Ours,
    service: Arc<Service>,
) -> Result<Edited, CallError> {
    let still = |service: &Service| ours.wanted(service, false) == Wanted::Serve;
    edit(writer, service, still, |service| {
        (!has_finalizer(service)).then(|| with_finalizers(service, Value::Object(Map::new()), true))
    })
    .await
}

/// Removes our finalizer together with the other final changes; `rest` builds their part of the merge patch from the newest
/// state, or returns `None` if nothing else has to change.
pub(crate) async fn remove(
    writer: &StatusWriter,
    ours: &Ours,
    service: Arc<Service>,
    rest: impl Fn(&Service) -> Option<Value>,
) -> Result<Edited, CallError> {
    let still = |service: &Service| ours.wanted(service, true) == Wanted::Release;
    edit(writer, service, still, |service| match (has_finalizer(service), rest(service)) {
        (false, rest) => rest,
        (true, rest) => {
            Some(with_finalizers(service, rest.unwrap_or_else(|| Value::Object(Map::new())), false))
        }
    })
    .await
}

/// Puts the list of finalizers, with or without ours, and the precondition into a patch.
fn with_finalizers(service: &Service, mut patch: Value, ours: bool) -> Value {
    let others = service.metadata.finalizers.iter().flatten().filter(|name| *name != FINALIZER);
    let list: Vec<&str> = others.map(String::as_str).chain(ours.then_some(FINALIZER)).collect();
    let metadata = &mut patch["metadata"];
    metadata["finalizers"] = json!(list);
    metadata["resourceVersion"] = json!(service.metadata.resource_version);
    patch
}

/// Whether the object may have more finalizers than were read of it.
fn may_lack_finalizers(service: &Service) -> bool {
    service.metadata.finalizers.as_ref().is_some_and(|names| names.len() >= MAX_METADATA_ENTRIES)
}

async fn edit(
    writer: &StatusWriter,
    mut service: Arc<Service>,
    still: impl Fn(&Service) -> bool,
    patch: impl Fn(&Service) -> Option<Value>,
) -> Result<Edited, CallError> {
    let key = key(&service);
    let mut attempt = 1;
    if patch(&service).is_some() && may_lack_finalizers(&service) {
        let Some(whole) = writer.get(&key).await? else { return Ok(Edited::Gone) };
        if uid(&whole) != uid(&service) {
            return Ok(Edited::Gone);
        }
        if !still(&whole) {
            return Ok(Edited::Stale);
        }
        service = whole;
    }
    loop {
        let Some(patch) = patch(&service) else { return Ok(Edited::Done(service)) };
        let error = match writer.patch_status(&key, &patch).await {
            Ok(answer) => return Ok(Edited::Done(answer)),
            Err(error) if error.is_not_found() => return Ok(Edited::Gone),
            Err(error) if error.is_conflict() || error.is_invalid() => error,
            Err(error) => return Err(error),
        };
        let Some(newest) = writer.get(&key).await? else { return Ok(Edited::Gone) };
        if uid(&newest) != uid(&service) {
            return Ok(Edited::Gone);
        }
        if !still(&newest) {
            return Ok(Edited::Stale);
        }
        let unchanged = newest.metadata.resource_version == service.metadata.resource_version;
        if attempt == MAX_ATTEMPTS || (error.is_invalid() && unchanged) {
            return Err(error);
        }
        attempt += 1;
        service = newest;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    fn service(finalizers: &[&str]) -> Service {
        from_value(json!({
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7", "finalizers": finalizers},
        }))
        .unwrap()
    }

    /// Adding and removing our finalizer leaves those of others, and is refused when they changed meanwhile.
    ///
    /// Framework: S24, same.
    /// Framework: S27, same.
    #[test]
    fn framework_s24_s27_other_finalizers_stay() {
        let patch = with_finalizers(&service(&["example.org/first"]), json!({}), true);
        assert_eq!(
            patch,
            json!({"metadata": {"resourceVersion": "7", "finalizers": ["example.org/first", FINALIZER]}})
        );
        let patch = with_finalizers(
            &service(&[FINALIZER, "example.org/last"]),
            json!({"metadata": {"annotations": {"a": null}}, "status": {}}),
            false,
        );
        assert_eq!(
            patch,
            json!({
                "metadata": {
                    "resourceVersion": "7",
                    "finalizers": ["example.org/last"],
                    "annotations": {"a": null},
                },
                "status": {},
            })
        );
    }
}
