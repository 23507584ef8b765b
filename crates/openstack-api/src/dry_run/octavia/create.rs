//! What is created in Octavia: one object, or a tree.

use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

use super::{PLANNED, members, touch, use_pool, with};
use crate::dry_run::kind::Kind;
use crate::dry_run::view::View;
use crate::dry_run::{ObjectChange, Stop, created, id_of, merged, placeholder};
use crate::transport::{Request, Service};

type Attributes = Map<String, Value>;

/// Notes a new object and what hangs on it; answers it and all that it brings.
pub(super) async fn create(
    view: &View,
    kind: Kind,
    mut attributes: Attributes,
) -> Result<(Value, Vec<ObjectChange>), Stop> {
    let mut changes = Vec::new();
    let object = match kind {
        Kind::LoadBalancer => return load_balancer(view, attributes).await,
        Kind::Listener => {
            let parent = take_text(&mut attributes, "loadbalancer_id").unwrap_or_default();
            listener(view, &parent, attributes, &mut changes).await?
        }
        Kind::Pool => {
            let user = take_text(&mut attributes, "listener_id");
            let mut parent = take_text(&mut attributes, "loadbalancer_id");
            if let Some(user) = &user {
                let listener = view.last_shown(Kind::Listener, user).await?;
                parent = super::references(&listener, "loadbalancers").pop();
            }
            let mut object = pool(view, &parent.unwrap_or_default(), attributes, &mut changes).await?;
            if let Some(user) = user {
                let id = object["id"].clone();
                view.edit(Kind::Listener, &user, |listener| listener["default_pool_id"] = id).await?;
                with(&mut object, "listeners", &user);
                view.put(Kind::Pool, object.clone());
            }
            object
        }
        _ => {
            let pool = take_text(&mut attributes, "pool_id").unwrap_or_default();
            let monitor = monitor(view, &pool, &attributes, &mut changes);
            let id = monitor["id"].clone();
            view.edit(Kind::Pool, &pool, |pool| pool["healthmonitor_id"] = id).await?;
            monitor
        }
    };
    touch(view, kind, &object).await?;
    Ok((object, changes))
}

async fn load_balancer(view: &View, mut attributes: Attributes) -> Result<(Value, Vec<ObjectChange>), Stop> {
    let listeners = take_list(&mut attributes, "listeners");
    let id = placeholder::id(view.next());
    let mut object = new(&id, view, &json!({"vip_network_id": null, "vip_subnet_id": null}), &attributes);
    address(view, &mut object).await?;
    view.put(Kind::LoadBalancer, object.clone());
    let mut changes = vec![created(Kind::LoadBalancer, &object)];
    for attributes in listeners {
        listener(view, &id, attributes, &mut changes).await?;
    }
    Ok((object, changes))
}

/// Gives the load balancer its VIP: a port of its own, and the addresses that are not asked for.
async fn address(view: &View, object: &mut Value) -> Result<(), Stop> {
    if object["vip_subnet_id"].is_null() && object["vip_port_id"].is_null() {
        // Octavia chooses one of the network's, an IPv4 one where there is one.
        let mut subnets = subnets(view, "network_id", &object["vip_network_id"]).await?;
        subnets.sort_by_key(|subnet| subnet["ip_version"] != 4);
        object["vip_subnet_id"] = subnets.first().map(|subnet| subnet["id"].clone()).unwrap_or_default();
    }
    if object["vip_address"].is_null() {
        let v6 = is_v6(view, &object["vip_subnet_id"]).await?;
        object["vip_address"] = json!(placeholder::address(view.next(), v6));
    }
    let mut additional = object["additional_vips"].as_array().cloned().unwrap_or_default();
    for vip in &mut additional {
        if vip["ip_address"].is_null() {
            let v6 = is_v6(view, &vip["subnet_id"]).await?;
            vip["ip_address"] = json!(placeholder::address(view.next(), v6));
        }
    }
    let fixed_ips: Vec<Value> =
        std::iter::once(json!({"subnet_id": object["vip_subnet_id"], "ip_address": object["vip_address"]}))
            .chain(additional.iter().cloned())
            .filter(|fixed_ip| fixed_ip["subnet_id"].is_string())
            .collect();
    object["additional_vips"] = json!(additional);
    if object["vip_port_id"].is_null() {
        object["vip_port_id"] = json!(placeholder::id(view.next()));
        let network = object["vip_network_id"].as_str().unwrap_or_default();
        let name = format!("octavia-lb-{}", id_of(object));
        view.put(
            Kind::Port,
            json!({"id": object["vip_port_id"], "name": name, "network_id": network, "status": "DOWN",
                "device_owner": "Octavia", "device_id": format!("lb-{}", id_of(object)), "fixed_ips": fixed_ips,
                "project_id": object["project_id"], "security_groups": [], "tags": []}),
        );
    }
    Ok(())
}

/// Whether the addresses of a subnet are of IPv6. Of one that cannot be read they are taken for IPv4 ones.
async fn is_v6(view: &View, subnet: &Value) -> Result<bool, Stop> {
    Ok(subnets(view, "id", subnet).await?.first().is_some_and(|subnet| subnet["ip_version"] == 6))
}

/// The subnets that have this; none where there is nothing to have.
async fn subnets(view: &View, key: &str, value: &Value) -> Result<Vec<Value>, Stop> {
    let Some(value) = value.as_str() else { return Ok(Vec::new()) };
    let request = Request {
        service: Service::Network,
        method: Method::GET,
        path: "/v2.0/subnets".to_owned(),
        query: vec![(key.to_owned(), value.to_owned())],
        headers: HeaderMap::new(),
        body: None,
    };
    let response = view.ask(request).await?;
    let mut body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    Ok(match body["subnets"].take() {
        Value::Array(subnets) => subnets,
        _ => Vec::new(),
    })
}

async fn listener(
    view: &View,
    parent: &str,
    mut attributes: Attributes,
    changes: &mut Vec<ObjectChange>,
) -> Result<Value, Stop> {
    let default_pool = attributes.remove("default_pool").and_then(into_attributes);
    let defaults = json!({"connection_limit": -1, "timeout_client_data": 50_000, "timeout_member_connect": 5_000,
        "timeout_member_data": 50_000, "timeout_tcp_inspect": 0, "insert_headers": {}, "allowed_cidrs": null,
        "sni_container_refs": [], "default_tls_container_ref": null, "default_pool_id": null,
        "loadbalancers": [{"id": parent}]});
    let id = placeholder::id(view.next());
    let mut object = new(&id, view, &defaults, &attributes);
    view.put(Kind::Listener, object.clone());
    changes.push(created(Kind::Listener, &object));
    if let Some(attributes) = default_pool {
        let pool = pool(view, parent, attributes, changes).await?;
        object["default_pool_id"] = pool["id"].clone();
        view.put(Kind::Listener, object.clone());
    }
    use_pool(view, &id, None, object["default_pool_id"].as_str()).await?;
    Ok(object)
}

async fn pool(
    view: &View,
    parent: &str,
    mut attributes: Attributes,
    changes: &mut Vec<ObjectChange>,
) -> Result<Value, Stop> {
    let wanted = take_list(&mut attributes, "members");
    let health_monitor = attributes.remove("healthmonitor").and_then(into_attributes);
    let defaults = json!({"session_persistence": null, "listeners": [], "healthmonitor_id": null,
        "loadbalancers": [{"id": parent}]});
    let id = placeholder::id(view.next());
    let mut object = new(&id, view, &defaults, &attributes);
    view.put_members(&id, Vec::new());
    changes.push(created(Kind::Pool, &object));
    let wanted = wanted.into_iter().map(Value::Object).collect();
    changes.extend(members::batch(view, &id, wanted, false).await?);
    if let Some(attributes) = health_monitor {
        let monitor = monitor(view, &id, &attributes, changes);
        object["healthmonitor_id"] = monitor["id"].clone();
    }
    view.put(Kind::Pool, object.clone());
    Ok(object)
}

fn monitor(view: &View, pool: &str, attributes: &Attributes, changes: &mut Vec<ObjectChange>) -> Value {
    let mut defaults = json!({"max_retries_down": 3, "pools": [{"id": pool}]});
    if attributes.get("type").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("HTTP")) {
        let http = json!({"http_method": "GET", "url_path": "/", "expected_codes": "200"});
        defaults = merged(&defaults, &into_attributes(http).unwrap_or_default());
    }
    let object = new(&placeholder::id(view.next()), view, &defaults, attributes);
    view.put(Kind::HealthMonitor, object.clone());
    changes.push(created(Kind::HealthMonitor, &object));
    object
}

/// A new object with what Octavia puts in where nothing is asked for.
fn new(id: &str, view: &View, defaults: &Value, attributes: &Attributes) -> Value {
    let mut object = json!({"id": id, "name": "", "description": "", "tags": [], "admin_state_up": true,
        "provisioning_status": "ACTIVE", "operating_status": "ONLINE", "project_id": view.project_id,
        "created_at": PLANNED, "updated_at": PLANNED});
    for part in [defaults.as_object(), Some(attributes)].into_iter().flatten() {
        object = merged(&object, part);
    }
    object
}

fn take_text(attributes: &mut Attributes, key: &str) -> Option<String> {
    attributes.remove(key)?.as_str().map(str::to_owned)
}

fn take_list(attributes: &mut Attributes, key: &str) -> Vec<Attributes> {
    let Some(Value::Array(list)) = attributes.remove(key) else { return Vec::new() };
    list.into_iter().filter_map(into_attributes).collect()
}

fn into_attributes(value: Value) -> Option<Attributes> {
    match value {
        Value::Object(attributes) => Some(attributes),
        _ => None,
    }
}
