//! The real cloud with the picture over it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::kind::Kind;
use super::reads::{Ahead, ReadOnly, all_pages, parsed, read};
use super::{Reading, Stop, filter, id_of, not_found, placeholder};
use crate::transport::{Request, Response, Transport};

/// The view.
#[derive(Debug)]
pub(super) struct View {
    cloud: ReadOnly,
    ahead: Ahead,
    picture: Mutex<Picture>,
    pub(super) project_id: Option<String>,
}

/// What would be other than it is.
#[derive(Debug, Default)]
struct Picture {
    /// Objects as they would be; absent where they would be gone.
    objects: HashMap<(Kind, String), Option<Value>>,
    /// Members of pools whose members would be others, by id of the pool.
    members: HashMap<String, Vec<Value>>,
    /// Objects as they were shown last, which is enough to say what a write changes.
    shown: HashMap<(Kind, String), Value>,
    /// Number of the last placeholder.
    last: u32,
}

impl View {
    pub(super) fn new(cloud: ReadOnly, reading: Reading) -> Self {
        let Reading { ahead, project_id } = reading;
        let ahead = Ahead::new(ahead, project_id.clone());
        Self { cloud, ahead, picture: Mutex::default(), project_id }
    }

    fn picture(&self) -> MutexGuard<'_, Picture> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the cloud for what the picture has nothing of.
    pub(super) async fn ask(&self, request: Request) -> Result<Response, Stop> {
        Ok(self.cloud.send(request).await?)
    }

    /// A number that no placeholder has yet.
    pub(super) fn next(&self) -> u32 {
        let mut picture = self.picture();
        picture.last += 1;
        picture.last
    }

    /// One object.
    pub(super) async fn get(&self, kind: Kind, id: &str) -> Result<Value, Stop> {
        if let Some(known) = self.picture().objects.get(&(kind, id.to_owned())) {
            return known.clone().ok_or_else(|| not_found(kind, id));
        }
        if placeholder::is_placeholder(id) {
            return Err(not_found(kind, id));
        }
        if let Some(listed) = self.ahead.object(&self.cloud, kind, id).await? {
            self.show(kind, &listed);
            return Ok(listed);
        }
        let response = self.cloud.send(read(kind, &format!("{}/{id}", kind.path()), Vec::new())).await?;
        let mut body = parsed(response)?;
        let object = body[kind.root()].take();
        self.show(kind, &object);
        Ok(object)
    }

    /// The object as it was shown last, or as it is: enough to say what a write to it changes.
    pub(super) async fn last_shown(&self, kind: Kind, id: &str) -> Result<Value, Stop> {
        let key = (kind, id.to_owned());
        let shown = {
            let picture = self.picture();
            picture.shown.get(&key).filter(|_| !picture.objects.contains_key(&key)).cloned()
        };
        match shown {
            Some(shown) => Ok(shown),
            None => self.get(kind, id).await,
        }
    }

    fn show(&self, kind: Kind, object: &Value) {
        self.picture().shown.insert((kind, id_of(object)), object.clone());
    }

    /// All objects that a list request asks for.
    pub(super) async fn list(&self, kind: Kind, request: &Request) -> Result<Vec<Value>, Stop> {
        let query = &request.query;
        let mut real = if query.iter().any(|(_, value)| placeholder::is_placeholder(value)) {
            Vec::new()
        } else {
            match self.ahead.list(&self.cloud, kind, query).await? {
                Some(listed) => listed,
                None => all_pages(&self.cloud, request.clone(), kind).await?,
            }
        };
        let whole = query.iter().all(|(key, _)| key != "fields");
        let mut picture = self.picture();
        real.retain(|object| !picture.objects.contains_key(&(kind, id_of(object))));
        if whole {
            for object in &real {
                picture.shown.insert((kind, id_of(object)), object.clone());
            }
        }
        let others = picture.objects.iter().filter(|((other, _), _)| *other == kind);
        let mut others: Vec<&Value> = others.filter_map(|(_, object)| object.as_ref()).collect();
        others.retain(|object| filter::matches(kind, object, query));
        // A map has no order, and a plan has to be the same each time.
        others.sort_by_key(|object| id_of(object));
        real.extend(others.into_iter().cloned());
        Ok(real)
    }

    /// All objects below another one, or with another attribute of this value.
    pub(super) async fn list_by(&self, kind: Kind, key: &str, value: &str) -> Result<Vec<Value>, Stop> {
        self.list(kind, &read(kind, &kind.path(), vec![(key.to_owned(), value.to_owned())])).await
    }

    /// The members of a pool.
    pub(super) async fn members(&self, pool_id: &str) -> Result<Vec<Value>, Stop> {
        if let Some(members) = self.picture().members.get(pool_id) {
            return Ok(members.clone());
        }
        if matches!(self.picture().objects.get(&(Kind::Pool, pool_id.to_owned())), Some(None)) {
            return Err(not_found(Kind::Pool, pool_id));
        }
        let path = format!("{}/{pool_id}/members", Kind::Pool.path());
        all_pages(&self.cloud, read(Kind::Member, &path, Vec::new()), Kind::Member).await
    }

    /// Notes how an object would be.
    pub(super) fn put(&self, kind: Kind, object: Value) {
        self.picture().objects.insert((kind, id_of(&object)), Some(object));
    }

    /// Notes a change of an object, from how it was shown last.
    pub(super) async fn edit(&self, kind: Kind, id: &str, edit: impl FnOnce(&mut Value)) -> Result<(), Stop> {
        let mut object = self.last_shown(kind, id).await?;
        edit(&mut object);
        self.put(kind, object);
        Ok(())
    }

    /// Notes that an object would be gone.
    pub(super) fn remove(&self, kind: Kind, id: &str) {
        self.picture().objects.insert((kind, id.to_owned()), None);
    }

    /// Notes which members a pool would have.
    pub(super) fn put_members(&self, pool_id: &str, members: Vec<Value>) {
        self.picture().members.insert(pool_id.to_owned(), members);
    }
}
