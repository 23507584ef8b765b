//! The version document of Octavia's root.

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::service::Service;
use crate::world::World;

/// The newest API version 2.x.
pub(crate) const NEWEST_MINOR: u8 = 30;

/// When each version 2.0, 2.1, ... came.
const UPDATED: [&str; NEWEST_MINOR as usize + 1] = [
    "2016-12-11T00:00:00Z",
    "2018-04-20T00:00:00Z",
    "2018-07-31T00:00:00Z",
    "2018-12-18T00:00:00Z",
    "2018-12-19T00:00:00Z",
    "2019-01-21T00:00:00Z",
    "2019-01-25T00:00:00Z",
    "2018-01-25T12:00:00Z",
    "2019-02-12T00:00:00Z",
    "2019-03-04T00:00:00Z",
    "2019-03-05T00:00:00Z",
    "2019-06-24T00:00:00Z",
    "2019-09-11T00:00:00Z",
    "2019-09-13T00:00:00Z",
    "2019-11-10T00:00:00Z",
    "2020-03-10T00:00:00Z",
    "2020-03-15T00:00:00Z",
    "2020-04-29T00:00:00Z",
    "2020-04-29T01:00:00Z",
    "2020-05-12T00:00:00Z",
    "2020-08-02T00:00:00Z",
    "2020-09-03T00:00:00Z",
    "2020-09-04T00:00:00Z",
    "2020-09-07T00:00:00Z",
    "2020-10-15T00:00:00Z",
    "2021-10-02T00:00:00Z",
    "2022-08-29T00:00:00Z",
    "2023-05-05T00:00:00Z",
    "2023-11-08T00:00:00Z",
    "2024-10-15T00:00:00Z",
    "2025-02-26T00:00:00Z",
];

/// All versions up to the one that this deployment has, all with one URL.
pub(crate) fn document(world: &World) -> Reply {
    let newest = world.load_balancing.api_minor;
    let href = format!("{}/v2", world.endpoint(Service::LoadBalancer));
    let versions: Vec<Value> = (0..=newest)
        .zip(UPDATED)
        .map(|(minor, updated)| {
            json!({
                "id": format!("v2.{minor}"),
                "status": if minor == newest { "CURRENT" } else { "SUPPORTED" },
                "updated": updated,
                "links": [{"href": href, "rel": "self"}],
            })
        })
        .collect();
    Reply::ok(json!({"versions": versions}))
}
