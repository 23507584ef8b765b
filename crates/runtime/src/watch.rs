//! List and watch, with recovery and without fields that are never read.

use std::fmt::Debug;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{ListParams, Resource};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;

use crate::listed::{Interest, InterestedStream};

/// How long the server lets a watch last, in seconds; it sends a bookmark 2 seconds before the end. So a watch that is
/// silent for longer has lost its server: the client's read timeout for watches is a little above. kube asks for 290 seconds,
/// client-go pings its connections (HTTP/2) every 30.
const WATCH_TIMEOUT_SECONDS: u32 = 25;

/// Settings for reading lists.
///
/// The text of a page is in memory twice before it is decoded, which is 3 MiB for each of the largest objects that an API server takes.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Maximum of objects in an answer.
    pub page: u32,
    /// Which metadata of the objects is read.
    pub interest: Interest,
}

/// Lists and watches objects as `L`, and passes them on as `K`, for ever. After an error the stream pauses with growing delay and goes on
/// where it was, or lists again; a list is framed by `Init` and `InitDone`.
pub fn events<L, K>(api: Api<L>, reading: Reading) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    L: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K: From<L>,
{
    let config = watcher::Config::default().page_size(reading.page).timeout(WATCH_TIMEOUT_SECONDS);
    let events = watcher(api, config).default_backoff().boxed();
    InterestedStream::new(reading.interest, events).map_ok(|event| match event {
        Event::Init => Event::Init,
        Event::InitApply(listed) => Event::InitApply(listed.into()),
        Event::InitDone => Event::InitDone,
        Event::Apply(listed) => Event::Apply(listed.into()),
        Event::Delete(listed) => Event::Delete(listed.into()),
    })
}

/// Lists objects once as `L`, in pages, and returns them as `K`.
///
/// # Errors
/// A page could not be read.
pub async fn list_all<L, K>(api: Api<L>, reading: Reading) -> kube::Result<Vec<K>>
where
    L: Resource + Clone + DeserializeOwned + Debug,
    K: From<L>,
{
    let (mut all, mut next) = (Vec::new(), ListParams::default().limit(reading.page));
    loop {
        let page = reading.interest.clone().during(api.list(&next)).await?;
        all.extend(page.items.into_iter().map(K::from));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => next = ListParams::default().limit(reading.page).continue_token(&token),
            None => return Ok(all),
        }
    }
}
