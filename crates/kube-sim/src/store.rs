//! All objects with their history: one revision for everything, as in etcd.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::object::{name, namespace, set_metadata, text};
use crate::version::ApiVersion;

/// Changes are kept for this long, as by the watch cache of the API server (`eventFreshDuration` in its
/// `storage/cacher/watch_cache.go`); watches and lists from before get 410.
const FRESH: Duration = Duration::from_secs(75);
/// The newest changes of a kind are kept however old they are (`defaultLowerBoundCapacity` there).
const LEAST: usize = 100;
/// More changes of a kind are not kept however new they are. The real server has room for 102,400.
const MOST: usize = 20_000;

/// The kind whose objects the server itself removes.
const EVENTS: &str = "events";
/// Events go this long after they were last written (`--event-ttl` of the API server).
const EVENT_LIFETIME: Duration = Duration::from_secs(3600);

/// How far the revision is moved by a restoration. The documentation of etcd recommends a number beyond all that was ever given out.
const RESTORED: u64 = 1_000_000;

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
    at: Instant,
}

#[derive(Debug, Default, Clone)]
struct Shelf {
    objects: BTreeMap<Key, Stored>,
    history: VecDeque<Change>,
    /// Writes of objects with a lifetime, oldest first: when, what, and the revision.
    expiring: VecDeque<(Instant, Key, u64)>,
    /// Changes up to this revision are forgotten.
    forgotten: u64,
}

/// The revision asked for is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Oldest revision that can still be asked for.
    pub(crate) oldest: u64,
}

/// The objects of one moment.
#[derive(Debug, Clone)]
pub(crate) struct Backup {
    objects: BTreeMap<&'static str, BTreeMap<Key, Stored>>,
}

/// All objects with their history.
#[derive(Debug)]
pub(crate) struct Contents {
    revision: u64,
    shelves: BTreeMap<&'static str, Shelf>,
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

    /// Sends the revision of each change as it happens.
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
        self.expire(kind, version);
        let (revision, at) = (self.next_revision(), Instant::now());
        set_metadata(&mut object, "resourceVersion", revision.to_string());
        let key = Key::of(&object);
        let stored = Stored { object: Arc::new(object), written_by: version };
        let shelf = self.shelves.entry(kind).or_default();
        if kind == EVENTS {
            shelf.expiring.push_back((at, key.clone(), revision));
        }
        let previous = shelf.objects.insert(key, stored.clone());
        let change = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        shelf.remember(Change { revision, kind: change, stored: stored.clone(), previous, at });
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
        let (revision, at) = (self.next_revision(), Instant::now());
        set_metadata(&mut last, "resourceVersion", revision.to_string());
        let stored = Stored { object: Arc::new(last), written_by: version };
        let shelf = self.shelves.entry(kind).or_default();
        let change = ChangeKind::Deleted;
        shelf.remember(Change { revision, kind: change, stored, previous: Some(previous.clone()), at });
        self.changed.send_replace(revision);
        Some(previous)
    }

    /// Removes the objects of a kind whose lifetime is over. The server does so by the clock; here it happens at the next
    /// write of the kind.
    fn expire(&mut self, kind: &'static str, version: ApiVersion) {
        while let Some(expired) = self.shelves.get_mut(kind).and_then(Shelf::next_expired) {
            self.remove(kind, Value::clone(&expired.object), version);
        }
    }

    /// What is stored now.
    pub(crate) fn backup(&self) -> Backup {
        let objects = self.shelves.iter().map(|(kind, shelf)| (*kind, shelf.objects.clone())).collect();
        Backup { objects }
    }

    /// Puts what was stored then in place of all that is there. Objects have the revisions that they had; the store goes on far
    /// above them and knows no past, as after `etcdutl snapshot restore --bump-revision --mark-compacted`.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        for (kind, shelf) in &mut self.shelves {
            shelf.objects = backup.objects.get(kind).cloned().unwrap_or_default();
            shelf.expiring.clear();
        }
        self.forget_past();
    }

    /// Loses an object, as a restored backup lacks what was made after it.
    pub(crate) fn lose(&mut self, kind: &str, key: &Key) {
        if let Some(shelf) = self.shelves.get_mut(kind) {
            shelf.objects.remove(key);
        }
        self.forget_past();
    }

    /// Puts one object back as it was stored then.
    pub(crate) fn bring_back(&mut self, backup: &Backup, kind: &'static str, key: &Key) {
        let stored = backup.objects.get(kind).and_then(|objects| objects.get(key));
        if let Some((shelf, stored)) = self.shelves.get_mut(kind).zip(stored) {
            shelf.objects.insert(key.clone(), stored.clone());
        }
        self.forget_past();
    }

    /// All that is stored, with its history.
    pub(crate) fn contents(&self) -> Contents {
        Contents { revision: self.revision, shelves: self.shelves.clone() }
    }

    /// Has the objects and the history of another store from here on.
    pub(crate) fn become_other(&mut self, Contents { revision, shelves }: Contents) {
        (self.revision, self.shelves) = (revision, shelves);
        self.changed.send_replace(self.revision);
    }

    /// Gives an object another uid, as the same object of another cluster has.
    pub(crate) fn set_uid(&mut self, kind: &str, key: &Key, uid: &str) {
        let stored = self.shelves.get_mut(kind).and_then(|shelf| shelf.objects.get_mut(key));
        if let Some(stored) = stored {
            set_metadata(Arc::make_mut(&mut stored.object), "uid", uid.to_owned());
        }
    }

    fn forget_past(&mut self) {
        self.revision += RESTORED;
        self.compact();
        self.changed.send_replace(self.revision);
    }

    /// Forgets all changes up to now.
    pub(crate) fn compact(&mut self) {
        for shelf in self.shelves.values_mut() {
            shelf.history.clear();
            shelf.forgotten = self.revision;
        }
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
        let now = change.at;
        self.history.push_back(change);
        while self.history.len() > LEAST {
            let is_old = |oldest: &Change| now.duration_since(oldest.at) > FRESH || self.history.len() > MOST;
            if !self.history.front().is_some_and(is_old) {
                break;
            }
            self.forgotten = self.history.pop_front().map_or(self.forgotten, |oldest| oldest.revision);
        }
    }

    /// The next object whose lifetime is over and that was not written again.
    fn next_expired(&mut self) -> Option<Stored> {
        while self.expiring.front().is_some_and(|(at, ..)| at.elapsed() > EVENT_LIFETIME) {
            let (_, key, revision) = self.expiring.pop_front()?;
            let object = self.objects.get(&key);
            if let Some(stored) = object.filter(|stored| resource_version(&stored.object) == revision) {
                return Some(stored.clone());
            }
        }
        None
    }
}

fn resource_version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or_default()
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

    /// The watch cache of the real server: what is young, and the newest 100 of what is not.
    #[tokio::test(start_paused = true)]
    async fn old_changes_are_forgotten_but_for_the_newest() {
        let mut store = Store::new();
        let write = |store: &mut Store, count: u32| {
            for value in 0..count {
                store.put("things", object("a", value), ApiVersion::V1_36);
            }
        };
        write(&mut store, 300);
        assert_eq!(store.changes_after("things", 0).unwrap().len(), 300, "they are young");
        tokio::time::advance(FRESH + Duration::from_secs(1)).await;
        write(&mut store, 1);
        assert_eq!(store.changes_after("things", 200).unwrap_err(), Compacted { oldest: 201 });
        assert_eq!(store.changes_after("things", 201).unwrap().len(), LEAST);
        assert_eq!(store.all_at("things", 200).unwrap_err(), Compacted { oldest: 201 });
        assert_eq!(store.all_at("things", 201).unwrap().len(), 1);
        write(&mut store, 150);
        assert_eq!(store.changes_after("things", 301).unwrap().len(), 150);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_changes_takes_no_more_room_than_there_is() {
        let mut store = Store::new();
        for value in 0..=u32::try_from(MOST).unwrap() {
            store.put("things", object("a", value), ApiVersion::V1_36);
        }
        assert_eq!(store.changes_after("things", 0).unwrap_err(), Compacted { oldest: 1 });
        assert_eq!(store.changes_after("things", 1).unwrap().len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn events_go_an_hour_after_they_were_last_written() {
        let mut store = Store::new();
        let minutes = |count: u64| tokio::time::advance(Duration::from_secs(60 * count));
        for kind in [EVENTS, "things"] {
            store.put(kind, object("once", 1), ApiVersion::V1_36);
        }
        store.put(EVENTS, object("again", 1), ApiVersion::V1_36);
        minutes(40).await;
        store.put(EVENTS, object("again", 2), ApiVersion::V1_36);
        minutes(40).await;
        for kind in [EVENTS, "things"] {
            store.put(kind, object("late", 1), ApiVersion::V1_36);
        }
        assert_eq!(names(&store.all(EVENTS)), ["again", "late"]);
        assert_eq!(names(&store.all("things")), ["late", "once"]);
        let kinds: Vec<ChangeKind> =
            store.changes_after(EVENTS, 4).unwrap().iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Deleted, ChangeKind::Added], "watchers get both");
    }
}
