//! The service catalog: every service in RegionOne with three interfaces, network and load-balancer in RegionTwo as well.

use serde_json::{Value, json};

use crate::service::Service;
use crate::world::World;

/// The region that has everything.
pub(crate) const REGION_ONE: &str = "RegionOne";
/// The region that has only public endpoints of two services.
pub(crate) const REGION_TWO: &str = "RegionTwo";

const INTERFACES: [&str; 3] = ["public", "internal", "admin"];

/// The catalog in a token.
pub(crate) fn catalog(world: &mut World) -> Value {
    Service::ALL
        .into_iter()
        .map(|service| {
            let endpoints: Vec<Value> = places(service)
                .map(|(region, interface)| endpoint(world, service, region, interface))
                .collect();
            json!({
                "id": stable_id(world, service.catalog_type().to_owned()),
                "type": service.catalog_type(),
                "name": service.project_name(),
                "endpoints": endpoints,
            })
        })
        .collect()
}

fn places(service: Service) -> impl Iterator<Item = (&'static str, &'static str)> {
    let second =
        matches!(service, Service::Network | Service::LoadBalancer).then_some((REGION_TWO, "public"));
    INTERFACES.into_iter().map(|interface| (REGION_ONE, interface)).chain(second)
}

fn endpoint(world: &mut World, service: Service, region: &str, interface: &str) -> Value {
    let url = format!("{}{}", world.endpoint(service), service.catalog_suffix());
    let id = stable_id(world, format!("{service} {region} {interface}"));
    json!({"id": id, "interface": interface, "region_id": region, "region": region, "url": url})
}

fn stable_id(world: &mut World, key: String) -> String {
    if let Some(id) = world.identity.catalog_ids.get(&key) {
        return id.clone();
    }
    let id = world.new_hex_id();
    world.identity.catalog_ids.insert(key, id.clone());
    id
}
