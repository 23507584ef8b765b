//! Lists that come in pages.

use std::collections::HashSet;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Call, Client};
use crate::error::{ApiError, DecodeError};

/// No project has so many pages; a server that ignores the marker would be asked for ever.
const MAX_PAGES: usize = 1000;

impl Client {
    /// Reads every page of the list named `root`. Either the whole list comes back or an error, never a part of it, and never
    /// anything that the call did not ask for.
    ///
    /// Boxed, as a single request is.
    pub(crate) fn list<'a, T: DeserializeOwned + Send + 'a>(
        &'a self,
        call: Call,
        root: &'static str,
    ) -> BoxFuture<'a, Result<Vec<T>, ApiError>> {
        Box::pin(self.collect::<T, _>(call, root, Vec::new()))
    }

    /// The same into a collection of the caller's, which gets each item as soon as that is read.
    pub(crate) async fn collect<T: DeserializeOwned, C: Extend<T>>(
        &self,
        mut call: Call,
        root: &str,
        mut items: C,
    ) -> Result<C, ApiError> {
        let asked = call.query.clone();
        let mut seen = HashSet::new();
        loop {
            let links = self.fetch_page::<T, C>(&call, root, &mut items).await?;
            let Some(next) = next_page(&links, &asked) else { return Ok(items) };
            if seen.len() >= MAX_PAGES || !seen.insert(next.clone()) {
                return Err(call.undecodable(DecodeError::EndlessPages(seen.len() + 1)));
            }
            call.query = next;
        }
    }
}

type Query = Vec<(String, String)>;

/// The query of the next page of a list that was asked for with `asked`; absent after the last one.
fn next_page(links: &Value, asked: &[(String, String)]) -> Option<Query> {
    next_query(links).map(|next| with_filters(next, asked))
}

/// Puts back what was asked for and the link has lost. Octavia's links keep limit, sort order and marker only: followed as they are,
/// the second page of a project's or of a name's load balancers would be a page of everybody's. Of a key that was given several
/// times, a link may keep one value.
fn with_filters(mut link: Query, asked: &[(String, String)]) -> Query {
    let count =
        |query: &[(String, String)], key: &str| query.iter().filter(|(other, _)| other == key).count();
    link.retain(|(key, _)| count(asked, key) < 2);
    let lost: Query = asked.iter().filter(|(key, _)| count(&link, key) == 0).cloned().collect();
    link.extend(lost);
    link
}

/// The query of the link with `rel` next. Only the query is taken: behind a proxy, scheme, host and path of the link are often wrong.
///
/// An Octavia without a page size writes `limit=None` into a link that it adds to every list, whole as it is, and refuses to follow it.
fn next_query(links: &Value) -> Option<Query> {
    let mut links = links.as_array()?.iter();
    let next = links.find(|link| link.get("rel").and_then(Value::as_str) == Some("next"))?;
    let next = next.get("href")?.as_str()?;
    let query = next.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let query: Query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let is_whole = query.iter().any(|(key, value)| key == "limit" && value == "None");
    (!is_whole).then_some(query)
}
