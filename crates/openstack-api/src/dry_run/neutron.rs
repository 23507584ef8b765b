//! What a write to Neutron changes.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::kind::{Kind, Target};
use super::view::View;
use super::{Effect, Stop, attributes, changed, created, deleted, id_of, merged, placeholder, unknown};
use crate::transport::Request;

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
        (Method::POST, Kind::FloatingIp, None, []) => {
            create(view, kind, &floating_ip(view, &attributes(request, kind, body)?))
        }
        (Method::POST, Kind::SecurityGroup, None, []) => {
            create(view, kind, &security_group(view, &attributes(request, kind, body)?))
        }
        (Method::POST, Kind::SecurityGroupRule, None, []) => {
            create_rule(view, &attributes(request, kind, body)?).await?
        }
        (Method::PUT, Kind::FloatingIp | Kind::Port | Kind::Router, Some(id), []) => {
            let attributes = attributes(request, kind, body)?;
            update(view, kind, id, |object| merged(object, &attributes)).await?
        }
        (Method::PUT, Kind::Router, Some(id), [action]) => {
            let attributes = attributes(request, kind, body)?;
            let routes = attributes.get("routes").and_then(Value::as_array).cloned().unwrap_or_default();
            let change = match *action {
                "add_extraroutes" => add_routes,
                "remove_extraroutes" => remove_routes,
                _ => return Err(unknown(request, "routers have no such action")),
            };
            update(view, kind, id, |router| change(router, &routes)).await?
        }
        (Method::PUT, kind, Some(id), ["tags"]) => {
            let tags = body.map(|body| body["tags"].clone()).unwrap_or_default();
            tagged(update(view, kind, id, |object| with_tags(object, tags.clone())).await?)
        }
        (Method::DELETE, kind, Some(id), ["tags", tag]) => {
            let take =
                |object: &Value| with_tags(object, tags(object).filter(|other| other != tag).collect());
            tagged(update(view, kind, id, take).await?)
        }
        (Method::DELETE, Kind::SecurityGroupRule, Some(id), []) => delete_rule(view, id).await?,
        (Method::DELETE, kind, Some(id), []) => {
            let object = view.last_shown(kind, id).await?;
            view.remove(kind, id);
            Effect::silent(StatusCode::NO_CONTENT, vec![deleted(kind, &object)])
        }
        _ => return Err(unknown(request, "Neutron has no such call that this program makes")),
    };
    Ok(effect)
}

fn create(view: &View, kind: Kind, object: &Value) -> Effect {
    view.put(kind, object.clone());
    let changes = vec![created(kind, object)];
    Effect::shows(StatusCode::CREATED, kind, object, changes)
}

async fn update(view: &View, kind: Kind, id: &str, change: impl Fn(&Value) -> Value) -> Result<Effect, Stop> {
    let before = view.last_shown(kind, id).await?;
    let after = change(&before);
    view.put(kind, after.clone());
    let changes = vec![changed(kind, &before, &after)];
    Ok(Effect::shows(StatusCode::OK, kind, &after, changes))
}

/// Calls on tags answer with tags, which nobody looks at.
fn tagged(effect: Effect) -> Effect {
    Effect { shown: json!({}), ..effect }
}

fn floating_ip(view: &View, attributes: &Map<String, Value>) -> Value {
    let address = placeholder::address(view.next(), false);
    let object = json!({"id": placeholder::id(view.next()), "floating_ip_address": address, "port_id": null,
        "fixed_ip_address": null, "router_id": null, "status": "DOWN", "description": "", "tags": [],
        "project_id": view.project_id});
    merged(&object, attributes)
}

/// A group begins with the two rules that let everything out.
fn security_group(view: &View, attributes: &Map<String, Value>) -> Value {
    let id = placeholder::id(view.next());
    let out = |ethertype: &str| {
        let rule = json!({"direction": "egress", "ethertype": ethertype}).as_object().cloned();
        let rule = rule_of(view, &id, &rule.unwrap_or_default());
        view.put(Kind::SecurityGroupRule, rule.clone());
        rule
    };
    let object = json!({"id": id, "tags": [], "project_id": view.project_id,
        "security_group_rules": [out("IPv4"), out("IPv6")]});
    merged(&object, attributes)
}

fn rule_of(view: &View, group: &str, attributes: &Map<String, Value>) -> Value {
    let object = json!({"id": placeholder::id(view.next()), "security_group_id": group, "protocol": null,
        "port_range_min": null, "port_range_max": null, "remote_ip_prefix": null, "remote_group_id": null,
        "description": ""});
    merged(&object, attributes)
}

async fn create_rule(view: &View, attributes: &Map<String, Value>) -> Result<Effect, Stop> {
    let group = attributes.get("security_group_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut group = view.last_shown(Kind::SecurityGroup, &group).await?;
    let rule = rule_of(view, &id_of(&group), attributes);
    if let Some(rules) = group["security_group_rules"].as_array_mut() {
        rules.push(rule.clone());
    }
    view.put(Kind::SecurityGroup, group);
    Ok(create(view, Kind::SecurityGroupRule, &rule))
}

async fn delete_rule(view: &View, id: &str) -> Result<Effect, Stop> {
    let rule = view.last_shown(Kind::SecurityGroupRule, id).await?;
    let group = rule["security_group_id"].as_str().unwrap_or_default();
    let mut group = view.last_shown(Kind::SecurityGroup, group).await?;
    if let Some(rules) = group["security_group_rules"].as_array_mut() {
        rules.retain(|rule| rule["id"] != id);
    }
    view.put(Kind::SecurityGroup, group);
    view.remove(Kind::SecurityGroupRule, id);
    Ok(Effect::silent(StatusCode::NO_CONTENT, vec![deleted(Kind::SecurityGroupRule, &rule)]))
}

fn tags(object: &Value) -> impl Iterator<Item = String> + '_ {
    object["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

fn with_tags(object: &Value, tags: Value) -> Value {
    let mut object = object.clone();
    object["tags"] = tags;
    object
}

fn add_routes(router: &Value, routes: &[Value]) -> Value {
    let mut router = router.clone();
    let known = router["routes"].as_array().cloned().unwrap_or_default();
    let new = routes.iter().filter(|route| !known.contains(route)).cloned();
    router["routes"] = known.iter().cloned().chain(new).collect();
    router
}

fn remove_routes(router: &Value, routes: &[Value]) -> Value {
    let mut router = router.clone();
    let known = router["routes"].as_array().cloned().unwrap_or_default();
    router["routes"] = known.into_iter().filter(|route| !routes.contains(route)).collect();
    router
}
