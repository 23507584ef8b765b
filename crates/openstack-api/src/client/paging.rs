//! Lists in pages.

use std::collections::HashSet;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Call, Client, Filters};
use crate::error::{ApiError, DecodeError};
use crate::optional::{refuses_a_filter, unknown_names};

/// The most pages of a list: no project has so many, but a server that ignores the marker would send pages for ever.
const MAX_PAGES: usize = 1000;

impl Client {
    /// Reads every page of the list named `root`. Returns either the whole list or an error, never a part of the list, and never
    /// objects that the call did not ask for.
    ///
    /// Boxed, as a single request is.
    pub(crate) fn list<'a, T: DeserializeOwned + Send + 'a>(
        &'a self,
        call: Call,
        root: &'static str,
    ) -> BoxFuture<'a, Result<Vec<T>, ApiError>> {
        Box::pin(self.collect::<T, _>(call, root, Vec::new()))
    }

    /// Reads the list into the caller's collection, which gets each item as soon as the item is read. A filter that the cloud refuses
    /// is left out: the answer is filtered here in any case.
    pub(crate) async fn collect<T: DeserializeOwned, C: Extend<T>>(
        &self,
        mut call: Call,
        root: &str,
        mut items: C,
    ) -> Result<C, ApiError> {
        let (filters, parts) = (call.filters(), &self.shared.parts);
        let name = call.name();
        call.query.retain(|(key, _)| !parts.refuses_filter(name, key));
        let mut asked = call.query.clone();
        let mut seen = HashSet::new();
        loop {
            let page = self.fetch_page::<T, C>(&call, root, &filters, &mut items).await;
            let (unmet, links) = match page {
                Err(error) => {
                    let refused = refused_filters(&error, &Filters::of(&asked));
                    if refused.is_empty() || !seen.is_empty() {
                        return Err(error);
                    }
                    asked.retain(|(key, _)| !refused.contains(key));
                    call.query.clone_from(&asked);
                    parts.note_refused_filters(&call, refused);
                    continue;
                }
                Ok(page) => page,
            };
            if let Some(unmet) = unmet {
                parts.note_ignored_filter(&call, &unmet);
            }
            let Some(next) = next_page(&links, &asked) else { return Ok(items) };
            if seen.len() >= MAX_PAGES || !seen.insert(next.clone()) {
                return Err(call.undecodable(DecodeError::EndlessPages(seen.len() + 1)));
            }
            call.query = next;
        }
    }
}

/// Returns the filters of a list that the cloud refuses. Where it names none, it may be any but the project, which each list knows.
fn refused_filters(error: &ApiError, filters: &Filters) -> Vec<String> {
    let (named, any) = (unknown_names(error), refuses_a_filter(error));
    let refused = filters.keys().filter(|key| named.contains(key) || (any && *key != "project_id"));
    refused.map(str::to_owned).collect()
}

type Query = Vec<(String, String)>;

/// Returns the query of the next page of a list that was requested with `asked`; absent after the last page.
fn next_page(links: &Value, asked: &[(String, String)]) -> Option<Query> {
    next_query(links).map(|next| with_filters(next, asked))
}

/// Restores the filters that the link has lost. Octavia's links keep only limit, sort order and marker: without the filters the
/// second page of a project's load balancers, or of those with a name, would be a page of all load balancers. Of a repeated key a
/// link may keep only one value.
fn with_filters(mut link: Query, asked: &[(String, String)]) -> Query {
    let count =
        |query: &[(String, String)], key: &str| query.iter().filter(|(other, _)| other == key).count();
    link.retain(|(key, _)| count(asked, key) < 2);
    let lost: Query = asked.iter().filter(|(key, _)| count(&link, key) == 0).cloned().collect();
    link.extend(lost);
    link
}

/// Returns the query of the link with `rel` next. Behind a proxy, scheme, host and path of the link are often wrong, so they are ignored.
///
/// Octavia without a page size adds a link with `limit=None` to every list, even a complete one, and then refuses that link.
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
