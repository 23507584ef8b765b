//! `/v2.1/flavors`.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{fault, views};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::world::World;

pub(crate) fn answer(world: &World, request: &Request, path: &[&str]) -> Answer {
    match (request.method.clone(), path) {
        (Method::GET, ["detail"]) => {
            let flavors: Vec<Value> =
                world.compute.flavors.values().map(|flavor| views::flavor(world, flavor)).collect();
            Ok(Reply::ok(json!({"flavors": flavors})))
        }
        (Method::GET, []) => {
            let flavors: Vec<Value> = world
                .compute
                .flavors
                .values()
                .map(|flavor| {
                    let view = views::flavor(world, flavor);
                    json!({"id": view["id"], "name": view["name"], "links": view["links"]})
                })
                .collect();
            Ok(Reply::ok(json!({"flavors": flavors})))
        }
        (Method::GET, [id]) => match world.compute.flavors.get(*id) {
            Some(flavor) => Ok(Reply::ok(json!({"flavor": views::flavor(world, flavor)}))),
            None => Err(fault(StatusCode::NOT_FOUND, &format!("Flavor {id} could not be found."))),
        },
        _ => Err(fault(StatusCode::NOT_FOUND, "The resource could not be found.")),
    }
}
