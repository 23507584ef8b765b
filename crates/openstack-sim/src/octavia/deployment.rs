//! What a deployment offers: providers, flavors, availability zones; and the amphorae that only administrators see.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::fault::OctaviaFault;
use super::listing::{self, Listing};
use super::schema::{parse, root_object};
use super::{method_not_allowed, not_found, ovn, require_admin};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::load_balancing::{LoadBalancer, Provisioning};

pub(crate) fn answer(world: &mut World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    let state = &world.load_balancing;
    match (request.method.clone(), path) {
        (Method::GET, ["providers"]) => {
            let providers: Vec<Value> = state
                .providers
                .iter()
                .map(|(name, description)| json!({"name": name, "description": description}))
                .collect();
            Ok(Reply::ok(json!({"providers": providers})))
        }
        (Method::GET, ["providers", provider, "flavor_capabilities"]) => {
            require_admin(caller)?;
            ovn::check_capabilities(provider)?;
            Ok(Reply::ok(json!({"flavor_capabilities": flavor_capabilities()})))
        }
        (Method::GET, ["flavors"]) => list(world, request, "flavors", state.flavors.values()),
        (Method::GET, ["flavors", id]) => one("flavor", "Flavor", id, state.flavors.get(*id)),
        (Method::GET, ["flavorprofiles", id]) => {
            require_admin(caller)?;
            one("flavorprofile", "Flavorprofile", id, state.flavor_profiles.get(*id))
        }
        (Method::GET, ["availabilityzones"]) => {
            list(world, request, "availability_zones", state.availability_zones.values())
        }
        (Method::GET, ["availabilityzones", name]) => {
            one("availability_zone", "Availability Zone", name, state.availability_zones.get(*name))
        }
        (Method::POST, ["flavorprofiles"]) => create_flavor_profile(world, caller, request),
        (Method::POST, ["flavors"]) => create_flavor(world, caller, request),
        (_, [_] | [_, _]) => Err(method_not_allowed()),
        _ => Err(not_found()),
    }
}

fn list<'a>(
    world: &World,
    request: &Request,
    collection: &str,
    views: impl Iterator<Item = &'a Value>,
) -> Answer {
    let listing =
        Listing { collection, names: None, base_url: world.endpoint(Service::LoadBalancer), has_tags: false };
    listing::list(request, views.cloned().collect(), &listing)
}

fn one(root: &str, kind: &'static str, id: &str, found: Option<&Value>) -> Answer {
    let view = found.ok_or_else(|| OctaviaFault::NotFound { kind, id: id.to_owned() })?;
    Ok(Reply::ok(json!({root: view})))
}

fn create_flavor_profile(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    require_admin(caller)?;
    let body = parse(request)?;
    let given = root_object(&body, "flavor_profile", "flavorprofile")?;
    let id = world.new_id();
    let view = json!({
        "id": id,
        "name": given["name"],
        "provider_name": given["provider_name"],
        "flavor_data": given["flavor_data"],
    });
    world.load_balancing.flavor_profiles.insert(id, view.clone());
    Ok(Reply::created(json!({"flavorprofile": view})))
}

fn create_flavor(world: &mut World, caller: &Caller, request: &Request) -> Answer {
    require_admin(caller)?;
    let body = parse(request)?;
    let given = root_object(&body, "flavor_", "flavor")?;
    let profile = given["flavor_profile_id"].as_str().unwrap_or_default();
    if !world.load_balancing.flavor_profiles.contains_key(profile) {
        return Err(OctaviaFault::NotFound { kind: "Flavorprofile", id: profile.to_owned() }.into());
    }
    let id = world.new_id();
    let view = json!({
        "id": id,
        "name": given["name"],
        "description": given["description"].as_str().unwrap_or_default(),
        "enabled": given["enabled"].as_bool().unwrap_or(true),
        "flavor_profile_id": profile,
    });
    world.load_balancing.flavors.insert(id, view.clone());
    Ok(Reply::created(json!({"flavor": view})))
}

fn flavor_capabilities() -> Value {
    let capabilities = [
        (
            "loadbalancer_topology",
            "The load balancer topology. One of: SINGLE - One amphora per load balancer. \
             ACTIVE_STANDBY - Two amphora per load balancer.",
        ),
        ("compute_flavor", "The compute driver flavor ID."),
        ("amp_image_tag", "The amphora image tag."),
        ("sriov_vip", "When true, the VIP port will be created using an SR-IOV VF port."),
        (
            "allow_member_sriov",
            "When true, users can request a member port be SR-IOV enabled at member creation time.",
        ),
    ];
    capabilities.iter().map(|(name, description)| json!({"name": name, "description": description})).collect()
}

/// `/v2.0/octavia/amphorae`: one for each load balancer that has been built.
pub(crate) fn amphorae(world: &World, caller: &Caller, request: &Request, path: &[&str]) -> Answer {
    require_admin(caller)?;
    let lbs = world.load_balancing.load_balancers.values();
    let views: Vec<Value> = lbs
        .filter(|lb| lb.entity.provisioning != Provisioning::PendingCreate)
        .map(|lb| amphora(world, lb))
        .collect();
    match (request.method.clone(), path) {
        (Method::GET, []) => list(world, request, "amphorae", views.iter()),
        (Method::GET, [id]) => one("amphora", "Amphora", id, views.iter().find(|view| view["id"] == **id)),
        (_, [] | [_]) => Err(method_not_allowed()),
        _ => Err(not_found()),
    }
}

/// The lifetime of an amphora's certificate.
const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// The amphora's ids are derived from the load balancer's: nothing else refers to them. One that was never plugged in has no
/// addresses.
fn amphora(world: &World, lb: &LoadBalancer) -> Value {
    let derived = |what: &str| {
        uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, format!("{what} {}", lb.entity.id).as_bytes())
            .to_string()
    };
    let plugged = lb.built;
    json!({
        "id": derived("amphora"),
        "loadbalancer_id": lb.entity.id,
        "compute_id": derived("compute"),
        "lb_network_ip": "192.0.2.1",
        "vrrp_ip": plugged.then_some(&lb.vip.address),
        "ha_ip": plugged.then_some(&lb.vip.address),
        "vrrp_port_id": plugged.then_some(&lb.vip.port_id),
        "ha_port_id": plugged.then_some(&lb.vip.port_id),
        "cert_expiration": world.calendar(world.now() + CERTIFICATE_LIFETIME).strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        "cert_busy": false,
        "role": "STANDALONE",
        "status": "ALLOCATED",
        "vrrp_interface": null,
        "vrrp_id": null,
        "vrrp_priority": null,
        "cached_zone": null,
        "created_at": lb.entity.created_at,
        "updated_at": lb.entity.updated_at,
        "image_id": null,
        "compute_flavor": null,
    })
}
