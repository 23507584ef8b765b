//! What callers may do: some paths are open to all, about the others the API server is asked.

use std::time::Duration;

use kube::Client;
use moka::future::Cache;

use super::review::{self, ReviewError, Verdict};
use super::user::User;

/// Answers that are remembered at most, of each kind.
const MOST_ANSWERS: u64 = 1024;

/// Decides about requests.
pub(super) struct Authorization {
    client: Client,
    open: Vec<String>,
    allowed: Cache<String, Verdict>,
    refused: Cache<String, Verdict>,
}

impl Authorization {
    /// `open` are paths that are served to everybody; a `*` at the end matches everything that begins with the rest. The
    /// times say how long a permission and a refusal are remembered.
    pub(super) fn new(client: Client, open: Vec<String>, allowed: Duration, refused: Duration) -> Self {
        let cache = |time| Cache::builder().max_capacity(MOST_ANSWERS).time_to_live(time).build();
        Self { client, open, allowed: cache(allowed), refused: cache(refused) }
    }

    /// Whether the path is served to everybody.
    pub(super) fn is_open(&self, path: &str) -> bool {
        let path = path.trim_start_matches('/');
        self.open
            .iter()
            .map(|open| open.trim_start_matches('/'))
            .any(|open| open.strip_suffix('*').map_or(open == path, |beginning| path.starts_with(beginning)))
    }

    /// Whether the user may do `verb` (a method in small letters) with the path.
    ///
    /// # Errors
    /// The API server could not be asked; then nothing is allowed.
    pub(super) async fn decide(&self, user: &User, verb: &str, path: &str) -> Result<Verdict, ReviewError> {
        if user.is_master() {
            return Ok(Verdict { allowed: true, reason: String::new() });
        }
        let question = format!("{user:?} {verb} {path}");
        for answers in [&self.allowed, &self.refused] {
            if let Some(verdict) = answers.get(&question).await {
                return Ok(verdict);
            }
        }
        let verdict = review::permission(&self.client, user, verb, path).await?;
        let answers = if verdict.allowed { &self.allowed } else { &self.refused };
        answers.insert(question, verdict.clone()).await;
        Ok(verdict)
    }
}
