//! All objects with their history: one revision for everything, as in etcd.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use crate::object::{name, namespace, set_metadata};
use crate::version::ApiVersion;

/// Changes of one kind that are kept before the oldest half is forgotten. Then watches from there get 410.
const HISTORY_LIMIT: usize = 50_000;

/// Where an object lives within its kind. The order is that of lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn of(object: &Value) -> Self {
        Self::new(namespace(object), name(object))
    }
}

/// An object as it was written. Cheap to copy.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) object: Arc<Value>,
    /// The release that wrote it: another one may read it differently.
    pub(crate) written_by: ApiVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) kind: ChangeKind,
    /// The object afterwards; for a deletion its last state with the revision of the deletion.
    pub(crate) stored: Stored,
    /// The object before.
    pub(crate) previous: Option<Stored>,
}

#[derive(Debug, Default)]
struct Shelf {
    objects: BTreeMap<Key, Stored>,
    history: VecDeque<Change>,
    /// Changes up to this revision are forgotten.
    forgotten: u64,
}

/// The revision asked for is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Oldest revision that can still be asked for.
    pub(crate) oldest: u64,
}

/// Objects of all kinds.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    shelves: BTreeMap<&'static str, Shelf>,
    changed: watch::Sender<u64>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self { revision: 0, shelves: BTreeMap::new(), changed: watch::Sender::new(0) }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Tells the revision of each change as it happens.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn get(&self, kind: &str, key: &Key) -> Option<Stored> {
        self.shelves.get(kind)?.objects.get(key).cloned()
    }

    /// All objects of a kind, by namespace and name.
    pub(crate) fn all(&self, kind: &str) -> Vec<Stored> {
        self.shelves.get(kind).map(|shelf| shelf.objects.values().cloned().collect()).unwrap_or_default()
    }

    /// The objects of a kind as they were at a revision.
    pub(crate) fn all_at(&self, kind: &str, revision: u64) -> Result<Vec<Stored>, Compacted> {
        let Some(shelf) = self.shelves.get(kind) else { return Ok(Vec::new()) };
        shelf.check(revision)?;
        let mut objects = shelf.objects.clone();
        for change in shelf.history.iter().rev().take_while(|change| change.revision > revision) {
            let key = Key::of(&change.stored.object);
            match &change.previous {
                Some(previous) => objects.insert(key, previous.clone()),
                None => objects.remove(&key),
            };
        }
        Ok(objects.into_values().collect())
    }

    /// Changes of a kind after a revision, oldest first.
    pub(crate) fn changes_after(&self, kind: &str, revision: u64) -> Result<Vec<Change>, Compacted> {
        let Some(shelf) = self.shelves.get(kind) else { return Ok(Vec::new()) };
        shelf.check(revision)?;
        let first = shelf.history.partition_point(|change| change.revision <= revision);
        Ok(shelf.history.range(first..).cloned().collect())
    }

    /// Writes an object under the next revision and returns it with that.
    pub(crate) fn put(&mut self, kind: &'static str, mut object: Value, version: ApiVersion) -> Stored {
        let revision = self.next_revision();
        set_metadata(&mut object, "resourceVersion", revision.to_string());
        let key = Key::of(&object);
        let stored = Stored { object: Arc::new(object), written_by: version };
        let shelf = self.shelves.entry(kind).or_default();
        let previous = shelf.objects.insert(key, stored.clone());
        let change = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        shelf.remember(Change { revision, kind: change, stored: stored.clone(), previous });
        self.changed.send_replace(revision);
        stored
    }

    /// Removes an object; `last` is its state as the watchers see it. Returns what was removed.
    pub(crate) fn remove(
        &mut self,
        kind: &'static str,
        mut last: Value,
        version: ApiVersion,
    ) -> Option<Stored> {
        let key = Key::of(&last);
        let shelf = self.shelves.get_mut(kind)?;
        let previous = shelf.objects.remove(&key)?;
        let revision = self.next_revision();
        set_metadata(&mut last, "resourceVersion", revision.to_string());
        let stored = Stored { object: Arc::new(last), written_by: version };
        let shelf = self.shelves.entry(kind).or_default();
        let change = ChangeKind::Deleted;
        shelf.remember(Change { revision, kind: change, stored, previous: Some(previous.clone()) });
        self.changed.send_replace(revision);
        Some(previous)
    }

    /// Forgets all changes up to now.
    pub(crate) fn compact(&mut self) {
        for shelf in self.shelves.values_mut() {
            shelf.history.clear();
            shelf.forgotten = self.revision;
        }
    }

    /// Lets the revision pass without a change, as writes to kinds that are not simulated do.
    pub(crate) fn skip_revisions(&mut self, count: u64) {
        self.revision += count;
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}

impl Shelf {
    fn check(&self, revision: u64) -> Result<(), Compacted> {
        if revision < self.forgotten { Err(Compacted { oldest: self.forgotten }) } else { Ok(()) }
    }

    fn remember(&mut self, change: Change) {
        self.history.push_back(change);
        if self.history.len() > HISTORY_LIMIT {
            let mut oldest_half = self.history.drain(..HISTORY_LIMIT / 2);
            self.forgotten = oldest_half.next_back().map_or(self.forgotten, |change| change.revision);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, value: u32) -> Value {
        json!({"metadata": {"name": name}, "value": value})
    }

    fn names(stored: &[Stored]) -> Vec<&str> {
        stored.iter().map(|stored| name(&stored.object)).collect()
    }

    #[test]
    fn the_past_can_be_listed_until_it_is_compacted() {
        let mut store = Store::new();
        store.put("things", object("a", 1), ApiVersion::V1_36);
        store.put("things", object("b", 1), ApiVersion::V1_36);
        store.put("things", object("a", 2), ApiVersion::V1_36);
        store.remove("things", object("b", 1), ApiVersion::V1_36);
        assert_eq!(names(&store.all("things")), ["a"]);
        let past = store.all_at("things", 2).unwrap();
        assert_eq!(names(&past), ["a", "b"]);
        assert_eq!(past[0].object["value"], 1);
        assert_eq!(store.changes_after("things", 2).unwrap().len(), 2);
        store.compact();
        assert_eq!(store.all_at("things", 2).unwrap_err(), Compacted { oldest: 4 });
        assert!(store.changes_after("things", 4).unwrap().is_empty());
    }
}
