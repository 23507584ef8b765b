//! Octavia's objects as on the wire.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::kind::ObjectKind;
use crate::world::load_balancing::{
    Entity, HealthMonitor, Listener, LoadBalancer, LoadBalancing, Member, Pool,
};

/// What every object shows: its attributes as this API version knows them, statuses, project and times.
fn common(entity: &Entity, kind: ObjectKind, minor: u8) -> Map<String, Value> {
    let mut view = Map::new();
    view.insert("id".to_owned(), json!(entity.id));
    for attribute in kind.attributes() {
        if attribute.stored && attribute.since <= minor {
            let value = entity.attributes.get(attribute.name).cloned().unwrap_or_default();
            view.insert(attribute.name.to_owned(), value);
        }
    }
    view.insert("provisioning_status".to_owned(), json!(entity.provisioning.to_string()));
    view.insert("operating_status".to_owned(), json!(entity.operating.to_string()));
    view.insert("project_id".to_owned(), json!(entity.project_id));
    view.insert("tenant_id".to_owned(), json!(entity.project_id));
    view.insert("created_at".to_owned(), json!(entity.created_at));
    view.insert("updated_at".to_owned(), json!(entity.updated_at));
    view
}

fn ids<'a>(entities: impl Iterator<Item = &'a str>) -> Value {
    entities.map(|id| json!({"id": id})).collect()
}

/// How much of the tree a load balancer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Children by id: every GET.
    Ids,
    /// Children in full: the answer to the POST of a whole tree.
    Tree,
}

pub(crate) fn load_balancer(state: &LoadBalancing, lb: &LoadBalancer, depth: Depth) -> Value {
    let minor = state.api_minor;
    let (listeners, pools) = (state.listeners_of(&lb.entity.id), state.pools_of(&lb.entity.id));
    let (listeners, pools) = match depth {
        Depth::Ids => (
            ids(listeners.iter().map(|listener| listener.entity.id.as_str())),
            ids(pools.iter().map(|pool| pool.entity.id.as_str())),
        ),
        Depth::Tree => (
            listeners.iter().map(|listener| nested_listener(listener, minor)).collect(),
            pools.iter().map(|pool| nested_pool(state, pool)).collect(),
        ),
    };
    with_children(lb, minor, listeners, pools)
}

/// Many load balancers with their children by id. Those are looked up in one go: a list of thousands is asked for again and
/// again.
pub(crate) fn load_balancers<'a>(
    state: &'a LoadBalancing,
    wanted: impl Iterator<Item = &'a LoadBalancer>,
) -> Vec<Value> {
    let wanted: Vec<&LoadBalancer> = wanted.collect();
    let mut children: HashMap<&str, (Vec<&str>, Vec<&str>)> =
        wanted.iter().map(|lb| (lb.entity.id.as_str(), Default::default())).collect();
    for listener in state.listeners.values() {
        if let Some((listeners, _)) = children.get_mut(listener.load_balancer_id.as_str()) {
            listeners.push(&listener.entity.id);
        }
    }
    for pool in state.pools.values() {
        if let Some((_, pools)) = children.get_mut(pool.load_balancer_id.as_str()) {
            pools.push(&pool.entity.id);
        }
    }
    wanted
        .into_iter()
        .map(|lb| {
            let (listeners, pools) = children.remove(lb.entity.id.as_str()).unwrap_or_default();
            with_children(lb, state.api_minor, ids(listeners.into_iter()), ids(pools.into_iter()))
        })
        .collect()
}

fn with_children(lb: &LoadBalancer, minor: u8, listeners: Value, pools: Value) -> Value {
    let mut view = common(&lb.entity, ObjectKind::LoadBalancer, minor);
    view.insert("vip_address".to_owned(), json!(lb.vip.address));
    view.insert("vip_port_id".to_owned(), json!((!lb.hides_port).then_some(&lb.vip.port_id)));
    view.insert("vip_subnet_id".to_owned(), json!(lb.vip.subnet_id));
    view.insert("vip_network_id".to_owned(), json!(lb.vip.network_id));
    if minor >= 26 {
        let additional: Value = lb
            .additional_vips
            .iter()
            .map(|(subnet, address)| {
                json!({"subnet_id": subnet, "ip_address": address, "port_id": lb.vip.port_id})
            })
            .collect();
        view.insert("additional_vips".to_owned(), additional);
    }
    view.insert("listeners".to_owned(), listeners);
    view.insert("pools".to_owned(), pools);
    Value::Object(view)
}

/// A listener in the answer to a whole tree: without the load balancer that it is in.
fn nested_listener(listener: &Listener, minor: u8) -> Value {
    let mut view = common(&listener.entity, ObjectKind::Listener, minor);
    view.insert("default_pool_id".to_owned(), json!(listener.default_pool_id));
    view.insert("l7policies".to_owned(), json!([]));
    Value::Object(view)
}

/// A pool in the answer to a whole tree: members and monitor in full.
fn nested_pool(state: &LoadBalancing, pool: &Pool) -> Value {
    let minor = state.api_minor;
    let mut view = common(&pool.entity, ObjectKind::Pool, minor);
    let listeners = state.listeners_using(&pool.entity.id);
    view.insert("listeners".to_owned(), ids(listeners.iter().map(|listener| listener.entity.id.as_str())));
    let members = state.members_of(&pool.entity.id);
    view.insert("members".to_owned(), members.iter().map(|one| member(one, minor)).collect());
    let monitor = state.monitor_of(&pool.entity.id).map_or(Value::Null, |monitor| {
        Value::Object(common(&monitor.entity, ObjectKind::HealthMonitor, minor))
    });
    view.insert("healthmonitor".to_owned(), monitor);
    Value::Object(view)
}

pub(crate) fn listener(listener: &Listener, minor: u8) -> Value {
    let mut view = nested_listener(listener, minor);
    view["loadbalancers"] = json!([{"id": listener.load_balancer_id}]);
    view
}

/// A pool. `healthmonitor_id` is there only when there is one.
pub(crate) fn pool(state: &LoadBalancing, pool: &Pool) -> Value {
    let mut view = common(&pool.entity, ObjectKind::Pool, state.api_minor);
    view.insert("loadbalancers".to_owned(), json!([{"id": pool.load_balancer_id}]));
    let listeners = state.listeners_using(&pool.entity.id);
    view.insert("listeners".to_owned(), ids(listeners.iter().map(|listener| listener.entity.id.as_str())));
    let members = state.members_of(&pool.entity.id);
    view.insert("members".to_owned(), ids(members.iter().map(|member| member.entity.id.as_str())));
    if let Some(monitor) = state.monitor_of(&pool.entity.id) {
        view.insert("healthmonitor_id".to_owned(), json!(monitor.entity.id));
    }
    Value::Object(view)
}

pub(crate) fn member(member: &Member, minor: u8) -> Value {
    Value::Object(common(&member.entity, ObjectKind::Member, minor))
}

pub(crate) fn health_monitor(monitor: &HealthMonitor, minor: u8) -> Value {
    let mut view = common(&monitor.entity, ObjectKind::HealthMonitor, minor);
    view.insert("pools".to_owned(), json!([{"id": monitor.pool_id}]));
    Value::Object(view)
}

/// The status tree: only pools that hang on a listener are in it.
pub(crate) fn status_tree(state: &LoadBalancing, lb: &LoadBalancer) -> Value {
    let listeners: Vec<Value> = state
        .listeners_of(&lb.entity.id)
        .into_iter()
        .map(|listener| {
            let mut node = status_node(&listener.entity);
            let pool = listener.default_pool_id.as_ref().and_then(|id| state.pools.get(id));
            node["pools"] = pool.map(|pool| pool_status(state, pool)).into_iter().collect();
            node
        })
        .collect();
    let mut node = status_node(&lb.entity);
    node["listeners"] = json!(listeners);
    json!({"statuses": {"loadbalancer": node}})
}

fn status_node(entity: &Entity) -> Value {
    json!({
        "id": entity.id,
        "name": entity.text("name"),
        "operating_status": entity.operating.to_string(),
        "provisioning_status": entity.provisioning.to_string(),
    })
}

fn pool_status(state: &LoadBalancing, pool: &Pool) -> Value {
    let mut node = status_node(&pool.entity);
    node["health_monitor"] = state.monitor_of(&pool.entity.id).map_or(Value::Null, |monitor| {
        let mut node = status_node(&monitor.entity);
        node["type"] = json!(monitor.entity.text("type"));
        node
    });
    node["members"] = state
        .members_of(&pool.entity.id)
        .into_iter()
        .map(|member| {
            let mut node = status_node(&member.entity);
            node["address"] = json!(member.entity.text("address"));
            node["protocol_port"] = json!(member.entity.port("protocol_port"));
            node
        })
        .collect();
    node
}
