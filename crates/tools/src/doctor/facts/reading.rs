//! Lists of Kubernetes, and why one could not be read.

use std::fmt::Debug;

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource};
use openstack_ccm_doctor::facts::Looked;
use openstack_ccm_manager::error_text::said_once;
use serde::de::DeserializeOwned;

/// Objects in one answer.
const PAGE_SIZE: u32 = 500;

/// An error in one line.
pub(super) fn said(error: kube::Error) -> String {
    said_once(&anyhow::Error::new(error))
}

/// All objects, with the record of who wrote which field.
pub(super) async fn all<K>(api: &Api<K>) -> kube::Result<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let (mut objects, mut next) = (Vec::new(), ListParams::default().limit(PAGE_SIZE));
    loop {
        let mut page = api.list(&next).await?;
        objects.append(&mut page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => next = ListParams::default().limit(PAGE_SIZE).continue_token(&token),
            None => return Ok(objects),
        }
    }
}

/// Whether whoever asks has no right to it.
pub(super) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Whether an error says that there is no such object, or no such kind.
pub(super) fn is_not_there(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// All objects of a kind that the cluster may not know: none then.
pub(super) async fn all_of(
    client: &Client,
    kind: &GroupVersionKind,
    plural: &str,
) -> Looked<Vec<DynamicObject>> {
    let resource = ApiResource::from_gvk_with_plural(kind, plural);
    match all(&Api::<DynamicObject>::all_with(client.clone(), &resource)).await {
        Err(error) if is_not_there(&error) => Ok(Vec::new()),
        read => read.map_err(said),
    }
}
