//! `/v2.0/<resources>/ID/tags`.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fault::{NeutronFault, check_policy};
use super::kind::ResourceKind;
use super::resource::{change, visible};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;
use crate::world::identity::Caller;

pub(crate) fn answer(
    world: &mut World,
    caller: &Caller,
    request: &Request,
    kind: ResourceKind,
    id: &str,
    path: &[&str],
) -> Answer {
    let tags = visible(world, caller, kind, id)?.tags.clone();
    if request.is_write() {
        check_policy(caller, "update", kind)?;
    }
    match (request.method.clone(), path) {
        (Method::GET, []) => Ok(Reply::ok(json!({"tags": tags}))),
        (Method::PUT, []) => {
            let body = request.json().unwrap_or_default();
            let tags =
                body["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            change(world, kind, id, |resource| resource.tags = tags.collect());
            Ok(Reply::ok(json!({"tags": visible(world, caller, kind, id)?.tags})))
        }
        (Method::DELETE, []) => {
            change(world, kind, id, |resource| resource.tags.clear());
            Ok(Reply::empty(StatusCode::NO_CONTENT))
        }
        (Method::GET, [tag]) if tags.contains(*tag) => Ok(Reply::empty(StatusCode::NO_CONTENT)),
        (Method::PUT, [tag]) => {
            change(world, kind, id, |resource| {
                resource.tags.insert((*tag).to_owned());
            });
            // The real service answers with a body that is the JSON null.
            Ok(Reply::created(Value::Null))
        }
        (Method::DELETE, [tag]) if tags.contains(*tag) => {
            change(world, kind, id, |resource| {
                resource.tags.remove(*tag);
            });
            Ok(Reply::empty(StatusCode::NO_CONTENT))
        }
        (Method::GET | Method::DELETE, [tag]) => {
            let message = format!("Tag {tag} could not be found.");
            Err(NeutronFault::new(StatusCode::NOT_FOUND, "TagNotFound", message).into())
        }
        _ => Err(NeutronFault::no_such_path().into()),
    }
}
