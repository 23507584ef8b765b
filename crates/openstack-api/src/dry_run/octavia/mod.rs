//! What a write to Octavia changes. Everything is ACTIVE at once.

mod create;
mod members;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::kind::{Kind, Target};
use super::view::View;
use super::{Effect, ObjectChange, Stop, attributes, changed, deleted, id_of, merged, unknown};
use crate::transport::Request;

/// A time that no object really has.
const PLANNED: &str = "planned";

/// What the request changes, noted in the view.
///
/// # Errors
/// The object is not there, the cloud cannot be asked, or nobody can say what the request does.
pub(super) async fn effect(
    view: &View,
    request: &Request,
    target: Target<'_>,
    body: Option<&Value>,
) -> Result<Effect, Stop> {
    let Target { kind, id, below } = target;
    let effect = match (request.method.clone(), kind, id, below.as_slice()) {
        (Method::POST, kind, None, []) => {
            let attributes = attributes(request, kind, body)?;
            let (object, changes) = create::create(view, kind, attributes).await?;
            Effect::shows(StatusCode::CREATED, kind, &object, changes)
        }
        (Method::PUT, kind, Some(id), []) => {
            let attributes = attributes(request, kind, body)?;
            let (before, after) = update(view, kind, id, &attributes).await?;
            Effect::shows(StatusCode::OK, kind, &after, vec![changed(kind, &before, &after)])
        }
        (Method::PUT, Kind::LoadBalancer, Some(id), ["failover"]) => {
            let healed = json!({"operating_status": "ONLINE"}).as_object().cloned().unwrap_or_default();
            let (before, after) = update(view, kind, id, &healed).await?;
            Effect::silent(StatusCode::ACCEPTED, vec![changed(kind, &before, &after)])
        }
        (Method::DELETE, kind, Some(id), []) => {
            Effect::silent(StatusCode::NO_CONTENT, delete(view, kind, id).await?)
        }
        (Method::PUT, Kind::Pool, Some(id), ["members"]) => {
            let wanted = body.and_then(|body| body["members"].as_array()).cloned().unwrap_or_default();
            let additive = request.query.iter().any(|(key, value)| key == "additive_only" && value == "true");
            let changes = members::batch(view, id, wanted, additive).await?;
            touch_pool(view, id).await?;
            Effect::silent(StatusCode::ACCEPTED, changes)
        }
        (Method::POST, Kind::Pool, Some(id), ["members"]) => {
            let attributes = attributes(request, Kind::Member, body)?;
            let (member, changes) = members::add(view, id, &attributes).await?;
            touch_pool(view, id).await?;
            Effect::shows(StatusCode::CREATED, Kind::Member, &member, changes)
        }
        (Method::DELETE, Kind::Pool, Some(id), ["members", member]) => {
            let changes = members::remove(view, id, member).await?;
            touch_pool(view, id).await?;
            Effect::silent(StatusCode::NO_CONTENT, changes)
        }
        _ => return Err(unknown(request, "Octavia has no such call that this program makes")),
    };
    Ok(effect)
}

/// Notes the new attributes of an object; answers how it was and would be.
async fn update(
    view: &View,
    kind: Kind,
    id: &str,
    attributes: &Map<String, Value>,
) -> Result<(Value, Value), Stop> {
    let before = view.last_shown(kind, id).await?;
    let mut after = merged(&before, attributes);
    after["provisioning_status"] = json!("ACTIVE");
    after["updated_at"] = json!(PLANNED);
    if kind == Kind::Listener && attributes.contains_key("default_pool_id") {
        use_pool(view, id, before["default_pool_id"].as_str(), after["default_pool_id"].as_str()).await?;
    }
    view.put(kind, after.clone());
    if kind != Kind::LoadBalancer {
        touch(view, kind, &after).await?;
    }
    Ok((before, after))
}

/// Notes that a listener uses another pool.
async fn use_pool(
    view: &View,
    listener: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> Result<(), Stop> {
    if before == after {
        return Ok(());
    }
    if let Some(id) = before {
        view.edit(Kind::Pool, id, |pool| without(pool, "listeners", listener)).await?;
    }
    if let Some(id) = after {
        view.edit(Kind::Pool, id, |pool| with(pool, "listeners", listener)).await?;
    }
    Ok(())
}

async fn delete(view: &View, kind: Kind, id: &str) -> Result<Vec<ObjectChange>, Stop> {
    let object = view.last_shown(kind, id).await?;
    match kind {
        Kind::LoadBalancer => return delete_load_balancer(view, object).await,
        Kind::Listener => use_pool(view, id, object["default_pool_id"].as_str(), None).await?,
        Kind::Pool => {
            for listener in references(&object, "listeners") {
                view.edit(Kind::Listener, &listener, |one| one["default_pool_id"] = Value::Null).await?;
            }
            if let Some(monitor) = object["healthmonitor_id"].as_str() {
                view.remove(Kind::HealthMonitor, monitor);
            }
        }
        Kind::HealthMonitor => {
            for pool in references(&object, "pools") {
                view.edit(Kind::Pool, &pool, |pool| pool["healthmonitor_id"] = Value::Null).await?;
            }
        }
        Kind::Member
        | Kind::FloatingIp
        | Kind::SecurityGroup
        | Kind::SecurityGroupRule
        | Kind::Port
        | Kind::Router => {}
    }
    view.remove(kind, id);
    touch(view, kind, &object).await?;
    Ok(vec![deleted(kind, &object)])
}

/// All below it goes too, and so does the port of its VIP, which floating IPs then no longer lead to.
async fn delete_load_balancer(view: &View, object: Value) -> Result<Vec<ObjectChange>, Stop> {
    let id = id_of(&object);
    let mut changes = vec![deleted(Kind::LoadBalancer, &object)];
    for kind in [Kind::Listener, Kind::Pool] {
        for child in view.list_by(kind, "loadbalancer_id", &id).await? {
            view.remove(kind, &id_of(&child));
            if let Some(monitor) = child["healthmonitor_id"].as_str() {
                view.remove(Kind::HealthMonitor, monitor);
            }
            changes.push(deleted(kind, &child));
        }
    }
    if let Some(port) = object["vip_port_id"].as_str() {
        for mut floating_ip in view.list_by(Kind::FloatingIp, "port_id", port).await? {
            floating_ip["port_id"] = Value::Null;
            floating_ip["fixed_ip_address"] = Value::Null;
            view.put(Kind::FloatingIp, floating_ip);
        }
        view.remove(Kind::Port, port);
    }
    view.remove(Kind::LoadBalancer, &id);
    Ok(changes)
}

async fn touch_pool(view: &View, id: &str) -> Result<(), Stop> {
    let pool = view.last_shown(Kind::Pool, id).await?;
    touch(view, Kind::Pool, &pool).await
}

/// Notes that the load balancer was changed by the change of one of its children: Octavia writes down when.
async fn touch(view: &View, kind: Kind, child: &Value) -> Result<(), Stop> {
    let parents = match kind {
        Kind::HealthMonitor => {
            let mut parents = Vec::new();
            for pool in references(child, "pools") {
                if let Ok(pool) = view.last_shown(Kind::Pool, &pool).await {
                    parents.extend(references(&pool, "loadbalancers"));
                }
            }
            parents
        }
        _ => references(child, "loadbalancers"),
    };
    for id in parents {
        view.edit(Kind::LoadBalancer, &id, |parent| parent["updated_at"] = json!(PLANNED)).await?;
    }
    Ok(())
}

/// The ids in a list of references.
fn references(object: &Value, list: &str) -> Vec<String> {
    object[list].as_array().into_iter().flatten().map(id_of).collect()
}

fn with(object: &mut Value, list: &str, id: &str) {
    if let Some(list) = object[list].as_array_mut() {
        list.push(json!({"id": id}));
    } else {
        object[list] = json!([{"id": id}]);
    }
}

fn without(object: &mut Value, list: &str, id: &str) {
    if let Some(list) = object[list].as_array_mut() {
        list.retain(|one| one["id"] != id);
    }
}
