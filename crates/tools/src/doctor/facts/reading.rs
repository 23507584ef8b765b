//! Lists objects of Kubernetes, and reports why a list could not be read.

use std::fmt::Debug;

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource};
use openstack_ccm_doctor::facts::Looked;
use openstack_ccm_manager::error_text::said_once;
use serde::de::DeserializeOwned;

/// Objects per page.
const PAGE_SIZE: u32 = 500;

/// Returns an error as one line.
pub(super) fn said(error: kube::Error) -> String {
    said_once(&anyhow::Error::new(error))
}

/// Lists all objects, including their `managedFields`.
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

/// Returns whether the user lacks the right.
pub(super) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Returns whether an error says that the object or the kind does not exist.
pub(super) fn is_not_there(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// A kind: group, version, kind, plural.
pub(super) type Named = (&'static str, &'static str, &'static str, &'static str);

/// Lists all objects of a kind; none where the cluster does not know the kind.
pub(super) async fn all_of(client: &Client, of: Named) -> Looked<Vec<DynamicObject>> {
    let (group, version, kind, plural) = of;
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match all(&Api::<DynamicObject>::all_with(client.clone(), &resource)).await {
        Err(error) if is_not_there(&error) => Ok(Vec::new()),
        read => read.map_err(said),
    }
}
