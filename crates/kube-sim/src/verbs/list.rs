//! LIST: selectors, chunks, and lists of the past.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{State, Target};
use crate::failure::Failure;
use crate::go_text;
use crate::object::namespace;
use crate::selector::Selectors;
use crate::store::{Key, Stored};
use crate::version::ApiVersion;

const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const TOKEN_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// How `resourceVersion` of a list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum VersionMatch {
    /// At least as new.
    #[default]
    NotOlderThan,
    Exact,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    pub(crate) selectors: Selectors,
    /// Empty and `0` mean the newest.
    pub(crate) resource_version: String,
    pub(crate) version_match: VersionMatch,
    /// Most items of one answer; 0 is all.
    pub(crate) limit: usize,
    /// Token of the answer before.
    pub(crate) continue_token: String,
}

/// Reads a resourceVersion; empty is 0.
///
/// # Errors
/// What the server says of one that is no number.
pub(crate) fn parse_resource_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: invalid syntax",
            go_text::quote(text)
        )
    })
}

/// The same for a list; a watch says it the old way in every release.
fn listed_resource_version(text: &str, version: ApiVersion) -> Result<u64, Failure> {
    parse_resource_version(text).map_err(|problem| {
        if version.malformed_resource_version_is_bad_request() {
            Failure::bad_request(format!("invalid resource version: {problem}"))
        } else {
            Failure::internal(problem)
        }
    })
}

/// Whether an object is in the namespace of a list and selected by it.
pub(crate) fn is_listed(target: &Target, selectors: &Selectors, object: &Value) -> bool {
    (target.namespace.is_empty() || namespace(object) == target.namespace) && selectors.matches(object)
}

/// Where a chunked list goes on.
struct Continuation {
    /// `None`: at the newest revision, consistent or not.
    revision: Option<u64>,
    after: Key,
}

impl State {
    /// The objects of a collection as a `List` object.
    pub(crate) fn list(&self, target: &Target, options: &ListOptions) -> Result<Value, Failure> {
        let resource = target.resource;
        let current = self.store.revision();
        let continuation = self.continuation(target, &options.continue_token)?;
        let asked_for = listed_resource_version(&options.resource_version, self.version)?;
        if asked_for > current {
            return Err(Failure::too_large_resource_version(asked_for, current));
        }
        let revision = match &continuation {
            Some(Continuation { revision, .. }) => revision.unwrap_or(current),
            None if options.version_match == VersionMatch::Exact && asked_for > 0 => asked_for,
            None => current,
        };
        let stored = if revision == current {
            self.store.all(resource.storage)
        } else {
            self.store.all_at(resource.storage, revision).map_err(|_| match &continuation {
                Some(continuation) => expired_token(target, &continuation.after),
                None => Failure::expired(TOO_OLD),
            })?
        };
        let selected: Vec<&Stored> = stored
            .iter()
            .filter(|one| is_listed(target, &options.selectors, &one.object))
            .filter(|one| continuation.as_ref().is_none_or(|chunk| Key::of(&one.object) > chunk.after))
            .collect();
        Ok(self.chunk(target, options, &selected, revision))
    }

    fn chunk(&self, target: &Target, options: &ListOptions, selected: &[&Stored], revision: u64) -> Value {
        let limit = if options.limit == 0 { selected.len() } else { options.limit };
        let shown = selected.get(..limit).unwrap_or(selected);
        let items: Vec<Value> = shown
            .iter()
            .map(|stored| {
                let mut item = self.show(target.resource, stored);
                if let Some(fields) = item.as_object_mut() {
                    fields.remove("apiVersion");
                    fields.remove("kind");
                }
                item
            })
            .collect();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some(last) = shown.last().filter(|_| shown.len() < selected.len()) {
            metadata["continue"] = token(target, &Key::of(&last.object), i128::from(revision)).into();
            // With selectors the server does not know how many are left.
            if options.selectors.is_everything() {
                metadata["remainingItemCount"] = (selected.len() - shown.len()).into();
            }
        }
        let mut list = json!({
            "kind": format!("{}List", target.resource.kind), "apiVersion": target.resource.api_version(),
            "metadata": metadata,
        });
        // The macro would copy them.
        list["items"] = Value::Array(items);
        list
    }

    fn continuation(&self, target: &Target, token: &str) -> Result<Option<Continuation>, Failure> {
        if token.is_empty() {
            return Ok(None);
        }
        let invalid = |why: String| {
            Failure::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(token)
            .map_err(|_| invalid("illegal base64 data at input byte 0".to_owned()))?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some(complaint) = go_text::json_complaint(&bytes) {
            return Err(invalid(complaint));
        }
        let parsed: Value = serde_json::from_str(&text).unwrap_or_default();
        if parsed["v"] != "meta.k8s.io/v1" {
            return Err(invalid("server does not recognize this encoded version \"\"".to_owned()));
        }
        let start = parsed["start"].as_str().unwrap_or_default();
        let path = start.trim_start_matches('/').trim_end_matches('\0');
        let after = match path.split_once('/') {
            Some((namespace, name)) => Key::new(namespace, name),
            None => Key::new(&target.namespace, path),
        };
        Ok(Some(Continuation { revision: parsed["rv"].as_u64(), after }))
    }
}

/// The token to go on after a key: at a revision, or at the newest for -1.
fn token(target: &Target, after: &Key, revision: i128) -> String {
    let start = if target.namespace.is_empty() && target.resource.namespaced {
        format!("/{}/{}\0", after.namespace, after.name)
    } else {
        format!("/{}\0", after.name)
    };
    let revision = i64::try_from(revision).unwrap_or(-1);
    BASE64_URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
}

fn expired_token(target: &Target, after: &Key) -> Failure {
    let mut failure = Failure::expired(TOKEN_TOO_OLD);
    failure.continue_token = Some(token(target, after, -1));
    failure
}
