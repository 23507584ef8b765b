//! `[Metadata]`.

use std::time::Duration;

use super::key::{Field, Key, Parsed, defaulting_key};
use crate::config::error::ValueFault;

/// Settings that share a section with the instance metadata for historical reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Longest time for one call to OpenStack; zero stands for the default.
    request_timeout: Duration,
    /// Whether `search-order` was given. It is checked and has no effect.
    search_order_given: bool,
}

impl Default for Metadata {
    fn default() -> Self {
        Self { request_timeout: Self::DEFAULT_REQUEST_TIMEOUT, search_order_given: false }
    }
}

impl Metadata {
    /// Time for a call without `request-timeout`.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[
        defaulting_key(
            "request-timeout",
            Field::Duration(|metadata| &mut metadata.request_timeout),
            "60s",
            "Longest time for one call to any OpenStack service, whatever the name of the section says. `0` stands for the default.",
        ),
        defaulting_key(
            "search-order",
            Field::Form { form: "list of words", set: search_order },
            "configDrive,metadataService",
            "One or two of `configDrive` and `metadataService`, separated by commas. Checked and without effect: instance metadata is never read.",
        ),
    ];

    /// Longest time for one call to any OpenStack service.
    pub fn request_timeout(&self) -> Duration {
        if self.request_timeout.is_zero() { Self::DEFAULT_REQUEST_TIMEOUT } else { self.request_timeout }
    }

    /// Whether `search-order` was given, so that its lack of effect can be named.
    pub(crate) fn search_order_given(&self) -> bool {
        self.search_order_given
    }
}

fn search_order(metadata: &mut Metadata, text: &str) -> Parsed {
    const WORDS: [&str; 2] = ["configDrive", "metadataService"];
    if text.is_empty() {
        return Ok(None);
    }
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > WORDS.len() || !parts.iter().all(|part| WORDS.contains(part)) {
        return Err(ValueFault::new(
            "it is not a search order",
            "remove the key, which has no effect, or use one or two of `configDrive` and `metadataService`",
        ));
    }
    metadata.search_order_given = true;
    Ok(None)
}
