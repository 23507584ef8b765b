//! Lists that come in pages.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Call, Client};
use crate::error::{ApiError, DecodeError};

/// No project has so many pages; a server that ignores the marker would be asked for ever.
const MOST_PAGES: usize = 1000;

impl Client {
    /// Reads every page of the list named `root`. Either the whole list comes back or an error, never a part of it.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        mut call: Call,
        root: &str,
    ) -> Result<Vec<T>, ApiError> {
        let fields: Vec<_> = call.query.iter().filter(|(key, _)| key == "fields").cloned().collect();
        let mut seen = HashSet::new();
        let mut items = Vec::new();
        loop {
            let mut page: Map<String, Value> = self.fetch_all(&call).await?;
            let next = next_query(&page, root);
            let value = page
                .remove(root)
                .ok_or_else(|| call.undecodable(DecodeError::MissingRoot(root.to_owned())))?;
            let decoded: Vec<T> =
                serde_json::from_value(value).map_err(|error| call.undecodable(error.into()))?;
            items.extend(decoded);
            let Some(mut query) = next else { return Ok(items) };
            // Octavia drops `fields` from its links.
            if !query.iter().any(|(key, _)| key == "fields") {
                query.extend(fields.iter().cloned());
            }
            if seen.len() >= MOST_PAGES || !seen.insert(query.clone()) {
                return Err(call.undecodable(DecodeError::EndlessPages(seen.len() + 1)));
            }
            call.query = query;
        }
    }
}

/// The query of the next page: from `<root>_links` with `rel` next (Octavia, Neutron, Nova) or from `next` (Barbican). Only the
/// query is taken: behind a proxy, scheme, host and path of the link are often wrong.
fn next_query(page: &Map<String, Value>, root: &str) -> Option<Vec<(String, String)>> {
    let links = page.get(&format!("{root}_links")).and_then(Value::as_array);
    let next = links
        .and_then(|links| links.iter().find(|link| link.get("rel").and_then(Value::as_str) == Some("next")))
        .and_then(|link| link.get("href"))
        .or_else(|| page.get("next"))
        .and_then(Value::as_str)?;
    let query = next.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    Some(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}
