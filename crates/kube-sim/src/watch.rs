//! WATCH: a line for each change, at once.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;
use crate::schema::decode;
use crate::selector::Selectors;
use crate::shared::Shared;
use crate::store::{Change, ChangeKind, Stored};
use crate::table::{self, IncludeObject};
use crate::verbs::{State, Target, is_listed};

/// How long a watch lasts that names no time.
const DEFAULT_DURATION: Duration = Duration::from_secs(1800);
/// Time between bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Default)]
pub(crate) struct WatchOptions {
    pub(crate) selectors: Selectors,
    /// Changes after this revision; 0 for all objects that are there, then changes.
    pub(crate) after: u64,
    /// A list first, closed by a bookmark.
    pub(crate) send_initial_events: bool,
    pub(crate) bookmarks: bool,
    pub(crate) duration: Option<Duration>,
    /// Objects as rows of a table, with this much of each.
    pub(crate) as_table: Option<IncludeObject>,
}

/// One open watch.
struct Watch {
    shared: Arc<Shared>,
    target: Target,
    options: WatchOptions,
    changed: watch::Receiver<u64>,
    broken: watch::Receiver<()>,
    /// Everything up to this revision was sent.
    revision: u64,
    lines: VecDeque<Bytes>,
    ends_at: Instant,
    next_bookmark: Instant,
    is_over: bool,
}

/// Opens a watch. Dropping the stream closes it.
pub(crate) fn open(
    shared: &Arc<Shared>,
    target: Target,
    options: WatchOptions,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let now = Instant::now();
    let ends_at = now + options.duration.unwrap_or(DEFAULT_DURATION);
    let mut watch = Watch {
        changed: shared.state().store.subscribe(),
        broken: shared.broken(),
        shared: Arc::clone(shared),
        revision: options.after,
        lines: VecDeque::new(),
        ends_at,
        next_bookmark: next_bookmark(now, ends_at),
        is_over: false,
        target,
        options,
    };
    watch.begin();
    futures::stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((line, watch))
    })
}

/// In a minute, or shortly before the end if that is sooner. Past the end there is none.
fn next_bookmark(now: Instant, ends_at: Instant) -> Instant {
    let regular = now + BOOKMARK_INTERVAL;
    match ends_at.checked_sub(LAST_BOOKMARK) {
        Some(last) if last > now => regular.min(last),
        Some(_) | None => ends_at + BOOKMARK_INTERVAL,
    }
}

impl Watch {
    fn begin(&mut self) {
        let shared = Arc::clone(&self.shared);
        let state = shared.state();
        self.changed.mark_unchanged();
        self.broken.mark_unchanged();
        if self.revision > 0 && !self.options.send_initial_events {
            return;
        }
        self.revision = state.store.revision();
        for stored in state.store.all(self.target.resource.storage) {
            if self.is_selected(&stored) {
                self.send(&state, "ADDED", &stored);
            }
        }
        if self.options.send_initial_events {
            self.send_bookmark(&state, true);
        }
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(line));
            }
            if self.is_over {
                return None;
            }
            // What happens after the connection failed is not sent, even if this is polled late.
            if self.broken.has_changed().unwrap_or(true) {
                return Some(self.fail());
            }
            self.changed.mark_unchanged();
            self.collect_changes();
            if !self.lines.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                _ = self.broken.changed() => return Some(self.fail()),
                changed = self.changed.changed() => self.is_over = changed.is_err(),
                () = sleep_until(self.ends_at) => self.is_over = true,
                () = sleep_until(self.next_bookmark), if self.options.bookmarks => {
                    let shared = Arc::clone(&self.shared);
                    self.send_bookmark(&shared.state(), false);
                    self.next_bookmark = next_bookmark(Instant::now(), self.ends_at);
                }
            }
        }
    }

    fn fail(&mut self) -> io::Result<Bytes> {
        self.is_over = true;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    }

    fn is_selected(&self, stored: &Stored) -> bool {
        is_listed(&self.target, &self.options.selectors, &stored.object)
    }

    fn collect_changes(&mut self) {
        let shared = Arc::clone(&self.shared);
        let state = shared.state();
        let changes = match state.store.changes_after(self.target.resource.storage, self.revision) {
            Ok(changes) => changes,
            Err(compacted) => {
                let text = format!("too old resource version: {} ({})", self.revision, compacted.oldest);
                let mut status = Failure::expired(text).to_status();
                status["metadata"] = json!({});
                self.push("ERROR", &status);
                self.is_over = true;
                return;
            }
        };
        for change in changes {
            self.revision = self.revision.max(change.revision);
            self.send_change(&state, &change);
        }
    }

    /// A change can move an object into or out of the selection.
    fn send_change(&mut self, state: &State, change: &Change) {
        let before = change.previous.as_ref().is_some_and(|previous| self.is_selected(previous));
        let now = change.kind != ChangeKind::Deleted && self.is_selected(&change.stored);
        let kind = match (before, now) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return,
        };
        self.send(state, kind, &change.stored);
    }

    fn send(&mut self, state: &State, kind: &str, stored: &Stored) {
        let object = state.show(self.target.resource, stored);
        if let Some(include) = self.options.as_table {
            let objects = std::slice::from_ref(&object);
            let table = table::render(self.target.resource, objects, include, state.clock.now());
            self.push(kind, &table);
        } else {
            self.push(kind, &object);
        }
    }

    /// An otherwise empty object that carries the revision.
    fn send_bookmark(&mut self, state: &State, ends_initial_events: bool) {
        let resource = self.target.resource;
        let mut metadata = json!({"resourceVersion": state.store.revision().to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let empty =
            json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata});
        let minor = state.version.minor();
        let bookmark = decode(&resource.schema, &empty, minor, &mut Vec::new()).unwrap_or(empty);
        self.push("BOOKMARK", &bookmark);
    }

    fn push(&mut self, kind: &str, object: &Value) {
        let mut line = json!({"type": kind, "object": object}).to_string();
        line.push('\n');
        self.lines.push_back(line.into());
    }
}
