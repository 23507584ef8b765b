//! List and watch, with recovery and with what is never read left out.

use std::fmt::Debug;

use futures::{Stream, TryStreamExt};
use kube::Api;
use kube::api::{ListParams, Resource};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use serde::de::DeserializeOwned;

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Objects in one answer of a list. With all that is dropped on arrival a Node has 20 KB and a Service 5 KB, as text and
/// decoded at the same time: pages bound the memory that a start takes.
const PAGE: u32 = 100;

/// How long the server lets a watch last, in seconds; it sends a bookmark 2 seconds before the end. So a watch that is
/// silent for longer has lost its server: the client's read timeout for watches is a little above. kube asks for 290 seconds,
/// client-go pings its connections (HTTP/2) every 30.
const WATCH_SECONDS: u32 = 25;

/// Removes the two largest parts of an object's metadata that no controller reads.
pub fn strip<K: Resource>(object: &mut K) {
    let metadata = object.meta_mut();
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// Lists and watches for ever. After an error the stream pauses with growing delay and goes on where it was, or
/// lists again; a list is framed by `Init` and `InitDone`.
pub fn events<K>(api: Api<K>) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    whole(api).map_ok(|event| event.modify(strip))
}

/// The same, with whole objects.
pub fn whole<K>(api: Api<K>) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(api, watcher::Config::default().page_size(PAGE).timeout(WATCH_SECONDS)).default_backoff()
}

/// Lists once, in pages.
///
/// # Errors
/// Any page that cannot be read.
pub async fn list_all<K>(api: Api<K>) -> kube::Result<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let (mut all, mut next) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let mut page = api.list(&next).await?;
        page.items.iter_mut().for_each(strip);
        all.append(&mut page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => next = ListParams::default().limit(PAGE).continue_token(&token),
            None => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn what_is_never_read_is_not_kept() {
        let mut service: Service = from_value(json!({
            "metadata": {
                "name": "a",
                "annotations": {LAST_APPLIED: "{}", "kept": "yes"},
                "managedFields": [{"manager": "kubectl"}],
            },
        }))
        .unwrap();
        strip(&mut service);
        let stripped: Service =
            from_value(json!({"metadata": {"name": "a", "annotations": {"kept": "yes"}}})).unwrap();
        assert_eq!(service, stripped);
    }
}
