//! Nova: servers and flavors, microversions 2.1 to 2.104.

mod flavors;
mod microversion;
pub(crate) mod servers;
mod views;

use http::header::{HeaderName, VARY};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use microversion::Microversion;

const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");
const NOVA_API_VERSION: HeaderName = HeaderName::from_static("x-openstack-nova-api-version");

/// Answers a request to Nova.
pub(crate) fn answer(world: &mut World, request: &Request) -> Reply {
    let segments = request.segments();
    if segments.is_empty() {
        return Reply::ok(versions(world));
    }
    let version = match Microversion::of(world, request) {
        Ok(version) => version,
        Err(refusal) => return refusal,
    };
    let reply = route(world, request, version).unwrap_or_else(|refusal| refusal);
    if reply.status == StatusCode::UNAUTHORIZED {
        return reply;
    }
    reply
        .with_header(API_VERSION, format!("compute {version}"))
        .with_header(NOVA_API_VERSION, version.to_string())
        .with_header(VARY, "OpenStack-API-Version, X-OpenStack-Nova-API-Version")
}

fn route(world: &mut World, request: &Request, version: Microversion) -> Answer {
    let segments = request.segments();
    if segments == ["v2.1"] {
        return Ok(Reply::ok(json!({"version": version_2_1(world, true)})));
    }
    let caller = request.caller(world)?;
    match segments.as_slice() {
        ["v2.1", "servers", rest @ ..] => servers::answer(world, &caller, request, version, rest),
        ["v2.1", "flavors", rest @ ..] => flavors::answer(world, request, rest),
        ["v2.1", "os-availability-zone", ..] if request.method == Method::GET => {
            let zones: Vec<Value> = world
                .compute
                .availability_zones
                .iter()
                .map(|name| json!({"zoneName": name, "zoneState": {"available": true}, "hosts": null}))
                .collect();
            Ok(Reply::ok(json!({"availabilityZoneInfo": zones})))
        }
        _ => Err(fault(StatusCode::NOT_FOUND, "The resource could not be found.")),
    }
}

/// Nova's error body: the key says what kind it is.
fn fault(status: StatusCode, message: &str) -> Reply {
    let key = match status {
        StatusCode::BAD_REQUEST => "badRequest",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::CONFLICT => "conflictingRequest",
        StatusCode::NOT_FOUND => "itemNotFound",
        _ => "computeFault",
    };
    Reply::json(status, json!({key: {"code": status.as_u16(), "message": message}}))
}

fn versions(world: &World) -> Value {
    let href = format!("{}/v2/", world.endpoint(Service::Compute));
    json!({"versions": [
        {"id": "v2.0", "status": "DEPRECATED", "version": "", "min_version": "", "updated": "2025-07-04T12:00:00Z",
         "links": [{"rel": "self", "href": href}]},
        version_2_1(world, false),
    ]})
}

fn version_2_1(world: &World, detailed: bool) -> Value {
    let href = format!("{}/v2.1/", world.endpoint(Service::Compute));
    let mut version = json!({
        "id": "v2.1",
        "status": "CURRENT",
        "version": Microversion::newest(world).to_string(),
        "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": href}],
    });
    if detailed {
        version["links"] = json!([
            {"rel": "self", "href": href},
            {"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"},
        ]);
        version["media-types"] = json!([{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}]);
    }
    version
}
