//! Neutron's resources as on the wire.

use serde_json::{Map, Value, json};

use super::has_extension;
use super::kind::ResourceKind;
use crate::world::World;
use crate::world::identity::Caller;
use crate::world::network::Resource;

fn base(resource: &Resource) -> Map<String, Value> {
    let mut view = resource.attributes.clone();
    view.insert("id".to_owned(), json!(resource.id));
    view.insert("project_id".to_owned(), json!(resource.project_id));
    view.insert("tenant_id".to_owned(), json!(resource.project_id));
    view.insert("tags".to_owned(), json!(resource.tags));
    view.insert("created_at".to_owned(), json!(resource.created_at));
    view.insert("updated_at".to_owned(), json!(resource.updated_at));
    view.insert("revision_number".to_owned(), json!(resource.revision_number));
    view
}

/// The trunk that a port is the parent of.
pub(crate) fn trunk_of<'a>(world: &'a World, port_id: &str) -> Option<&'a Resource> {
    world.network.trunks.values().find(|trunk| trunk.text("port_id") == port_id)
}

/// What a parent port shows of its trunk.
fn trunk_details(world: &World, trunk: &Resource) -> Value {
    let sub_ports: Vec<Value> = trunk
        .list("sub_ports")
        .iter()
        .map(|sub_port| {
            let port = sub_port["port_id"].as_str().and_then(|id| world.network.ports.get(id));
            let mut shown = sub_port.clone();
            shown["mac_address"] = json!(port.map(|port| port.text("mac_address")));
            shown
        })
        .collect();
    json!({"trunk_id": trunk.id, "sub_ports": sub_ports})
}

/// A resource as GET, PUT and lists show it.
pub(crate) fn view(world: &World, caller: &Caller, kind: ResourceKind, resource: &Resource) -> Value {
    let mut view = base(resource);
    if !has_extension(world, "standard-attr-tag") {
        view.remove("tags");
    }
    match kind {
        ResourceKind::Network => {
            let subnets: Vec<&str> =
                super::subnets_of(world, &resource.id).into_iter().map(|subnet| subnet.id.as_str()).collect();
            view.insert("subnets".to_owned(), json!(subnets));
            if !resource.flag("router:external") {
                view.remove("is_default");
            }
        }
        ResourceKind::Port => {
            if caller.is_admin() {
                extend_with_binding(&mut view, resource);
            }
            if let Some(trunk) = trunk_of(world, &resource.id) {
                view.insert("trunk_details".to_owned(), trunk_details(world, trunk));
            }
        }
        ResourceKind::FloatingIp => {
            view.insert("port_details".to_owned(), port_details(world, resource.text("port_id")));
        }
        ResourceKind::SecurityGroup => {
            view.insert("security_group_rules".to_owned(), nested_rules(world, &resource.id));
        }
        ResourceKind::SecurityGroupRule => {
            view.remove("tags");
            view.insert("belongs_to_default_sg".to_owned(), json!(belongs_to_default(world, resource)));
        }
        ResourceKind::Router => {
            view.remove("gw_port_id");
        }
        ResourceKind::Subnet | ResourceKind::Trunk => {}
    }
    Value::Object(view)
}

/// A resource as the answer to its POST: networks show one attribute more, new groups know that they are not the default.
pub(crate) fn created(world: &World, caller: &Caller, kind: ResourceKind, id: &str) -> Value {
    let Some(resource) = kind.resources(&world.network).get(id) else { return Value::Null };
    let mut view = view(world, caller, kind, resource);
    if kind == ResourceKind::Network {
        view["is_default"] = resource.attributes["is_default"].clone();
    }
    for rule in view.get_mut("security_group_rules").and_then(Value::as_array_mut).into_iter().flatten() {
        rule["belongs_to_default_sg"] = json!(false);
    }
    view
}

fn extend_with_binding(view: &mut Map<String, Value>, port: &Resource) {
    let bound = port.text("status") == "ACTIVE";
    view.insert("binding:profile".to_owned(), json!({}));
    view.insert("binding:host_id".to_owned(), json!(if bound { "compute" } else { "" }));
    view.insert("binding:vif_type".to_owned(), json!(if bound { "ovs" } else { "unbound" }));
    view.insert("binding:vif_details".to_owned(), json!({}));
}

fn port_details(world: &World, port_id: &str) -> Value {
    let Some(port) = world.network.ports.get(port_id) else { return Value::Null };
    ["name", "network_id", "mac_address", "admin_state_up", "status", "device_id", "device_owner"]
        .into_iter()
        .map(|name| (name.to_owned(), port.attributes.get(name).cloned().unwrap_or_default()))
        .collect::<Map<String, Value>>()
        .into()
}

fn belongs_to_default(world: &World, rule: &Resource) -> bool {
    let group = world.network.security_groups.get(rule.text("security_group_id"));
    group.is_some_and(|group| group.text("name") == "default")
}

/// Rules inside a group show their tags and attribute ids, and nothing about the default group.
fn nested_rules(world: &World, group_id: &str) -> Value {
    let rules = world.network.security_group_rules.values();
    rules
        .filter(|rule| rule.text("security_group_id") == group_id)
        .map(|rule| {
            let mut view = base(rule);
            view.insert("standard_attr_id".to_owned(), json!(rule.standard_attribute_id));
            view.insert("belongs_to_default_sg".to_owned(), Value::Null);
            Value::Object(view)
        })
        .collect()
}

/// A router in the answer to an action: the attributes of the plug-in show, which policy hides elsewhere.
pub(crate) fn router_after_action(router: &Resource) -> Value {
    let mut view = base(router);
    for (name, value) in [
        ("enable_snat", json!(true)),
        ("distributed", json!(false)),
        ("ha", json!(false)),
        ("ha_vr_id", json!(0)),
        ("enable_default_route_ecmp", json!(false)),
        ("enable_default_route_bfd", json!(false)),
    ] {
        view.insert(name.to_owned(), value);
    }
    Value::Object(view)
}

/// The attributes that filters may name.
pub(crate) fn attribute_names(kind: ResourceKind) -> Vec<&'static str> {
    let shared = [
        "id",
        "name",
        "description",
        "project_id",
        "tenant_id",
        "created_at",
        "updated_at",
        "revision_number",
    ];
    let own: &[&str] = match kind {
        ResourceKind::Network => &[
            "admin_state_up",
            "mtu",
            "status",
            "shared",
            "router:external",
            "is_default",
            "port_security_enabled",
            "subnets",
            "availability_zones",
        ],
        ResourceKind::Subnet => &[
            "network_id",
            "ip_version",
            "cidr",
            "gateway_ip",
            "enable_dhcp",
            "subnetpool_id",
            "ipv6_ra_mode",
            "ipv6_address_mode",
            "router:external",
            "shared",
        ],
        ResourceKind::Port => &[
            "network_id",
            "mac_address",
            "admin_state_up",
            "status",
            "device_id",
            "device_owner",
            "fixed_ips",
            "security_groups",
            "binding:vnic_type",
            "binding:host_id",
            "port_security_enabled",
        ],
        ResourceKind::FloatingIp => &[
            "floating_ip_address",
            "floating_network_id",
            "router_id",
            "port_id",
            "fixed_ip_address",
            "status",
        ],
        ResourceKind::SecurityGroup => &["stateful", "shared"],
        ResourceKind::SecurityGroupRule => &[
            "security_group_id",
            "direction",
            "ethertype",
            "protocol",
            "port_range_min",
            "port_range_max",
            "remote_ip_prefix",
            "remote_group_id",
        ],
        ResourceKind::Router => &["admin_state_up", "status", "flavor_id"],
        ResourceKind::Trunk => &["admin_state_up", "status", "port_id"],
    };
    shared.into_iter().chain(own.iter().copied()).collect()
}
