//! The parts of an object that a plan shows: its name among its kind, and the attributes that would change.

use std::collections::BTreeSet;
use std::fmt;

use openstack_ccm_openstack_api::dry_run::{Kind, is_placeholder, is_placeholder_address};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Attributes that the cloud maintains itself, or that follow from other objects.
const NOT_SHOWN: [&str; 21] = [
    "id",
    "provisioning_status",
    "operating_status",
    "created_at",
    "updated_at",
    "revision_number",
    "listeners",
    "pools",
    "members",
    "loadbalancers",
    "healthmonitor_id",
    "security_group_rules",
    "fixed_ip_address",
    "router_id",
    "status",
    "port_details",
    "l7policies",
    "tenant_id",
    "project_id",
    "load_balancer_id",
    "security_group_id",
];

/// An attribute before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The attribute; empty where the whole line is about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(serialize_with = "without_placeholders")]
    pub before: Option<Value>,
    /// The planned value; also null where only the cloud will know it.
    #[serde(serialize_with = "without_placeholders")]
    pub after: Option<Value>,
    /// Text for users in place of the values.
    #[serde(skip)]
    pub words: Option<String>,
    /// Values that a list would lose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Values that a list would gain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
}

impl Field {
    /// Creates the field of a single value.
    pub fn value(name: &str, before: Option<Value>, after: Option<Value>) -> Self {
        Self { name: name.to_owned(), before, after, ..Self::default() }
    }

    /// Creates the field of a list, with the values that it would lose and gain.
    pub fn list(name: &str, before: &[String], after: &[String]) -> Self {
        let lacks = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|text| !other.contains(text)).cloned().collect()
        };
        let (removed, added) = (lacks(before, after), lacks(after, before));
        Self { name: name.to_owned(), removed, added, ..Self::default() }
    }

    /// Adds the name of one of several objects to the field's name.
    pub(super) fn of(mut self, object: &str) -> Self {
        self.name = format!("{object} {}", self.name);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.before == self.after && self.removed.is_empty() && self.added.is_empty()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        if !self.name.is_empty() && self.words.is_none() {
            parts.push(self.name.clone());
        }
        parts.extend(self.removed.iter().map(|one| format!("- {one}")));
        parts.extend(self.added.iter().map(|one| format!("+ {one}")));
        let text = |value: &Option<Value>| value.as_ref().and_then(shown);
        match (&self.words, text(&self.before), text(&self.after)) {
            (Some(words), ..) => parts.push(words.clone()),
            (None, Some(before), Some(after)) if before != after => {
                parts.push(format!("{before} -> {after}"));
            }
            (None, Some(before), None) => parts.push(format!("{before} -> (nothing)")),
            (None, None, Some(after)) => parts.push(after),
            (None, Some(_), Some(_)) | (None, None, None) => {}
        }
        f.write_str(&parts.join(" "))
    }
}

/// Returns the name that distinguishes an object from others of its kind.
pub(super) fn name(kind: Kind, object: &Value) -> String {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    match kind {
        Kind::LoadBalancer | Kind::Pool | Kind::HealthMonitor | Kind::SecurityGroup | Kind::Router => {
            text("name")
        }
        Kind::Listener => {
            let datagrams = object["protocol"].as_str().filter(|one| matches!(*one, "UDP" | "SCTP"));
            format!("{}/{}", object["protocol_port"], datagrams.unwrap_or("TCP"))
        }
        Kind::Member => format!("{}:{}", text("address"), object["protocol_port"]),
        Kind::FloatingIp => shown(&object["floating_ip_address"]).unwrap_or_default(),
        Kind::SecurityGroupRule => {
            let from = shown(&object["remote_ip_prefix"]).unwrap_or_else(|| "anywhere".into());
            format!("{}/{} from {from}", object["port_range_min"], text("protocol").to_uppercase())
        }
        Kind::Port => shown(&object["fixed_ips"][0]["ip_address"]).unwrap_or_else(|| text("id")),
    }
}

/// Returns the most important attributes of a new object.
pub(super) fn essential(kind: Kind, object: &Value) -> Vec<Field> {
    let keys: &[&str] = match kind {
        Kind::LoadBalancer => {
            &["provider", "flavor_id", "availability_zone", "vip_subnet_id", "vip_network_id"]
        }
        Kind::Listener => &["protocol", "allowed_cidrs", "default_tls_container_ref"],
        Kind::Pool => &["protocol", "lb_algorithm", "session_persistence"],
        Kind::HealthMonitor => &["type", "delay", "url_path"],
        Kind::FloatingIp => &["floating_network_id"],
        Kind::Member | Kind::SecurityGroup | Kind::SecurityGroupRule | Kind::Port | Kind::Router => &[],
    };
    keys.iter()
        .filter_map(|key| shown(&object[*key]).map(|_| Field::value(key, None, Some(object[*key].clone()))))
        .collect()
}

/// Returns the attributes that would change.
pub(super) fn changed(kind: Kind, before: &Value, after: &Value) -> Vec<Field> {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return Vec::new() };
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut fields = Vec::new();
    for key in keys.into_iter().filter(|key| !NOT_SHOWN.contains(&key.as_str())) {
        let (before, after) = (&before[key.as_str()], &after[key.as_str()]);
        // An attribute that an object of another form lacks is off.
        let is_off = *before == Value::Bool(false) && after.is_null();
        if before == after || is_off || (is_nothing(before) && is_nothing(after)) {
            continue;
        }
        // The line of the pool shows the pool of a listener.
        if kind == Kind::Listener && key == "default_pool_id" {
            let is_new = after.as_str().is_some_and(is_placeholder);
            let words = Some(if is_new { "uses the new pool" } else { "uses another pool" }.to_owned());
            fields.push(Field { words, ..Field::value("default_pool", given(before), given(after)) });
            continue;
        }
        fields.push(match (list(before), list(after)) {
            (Some(before), Some(after)) => Field::list(key, &before, &after),
            _ => Field::value(key, given(before), given(after)),
        });
    }
    fields.retain(|field| !field.is_empty());
    fields
}

/// Returns the value, or none: Octavia and Neutron write an absent value in several ways.
fn given(value: &Value) -> Option<Value> {
    (!is_nothing(value)).then(|| value.clone())
}

/// Serializes a value, with null for parts that only the cloud will know.
fn without_placeholders<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    fn cleaned(value: &Value) -> Value {
        match value {
            Value::String(text) if known(text) != *text => Value::Null,
            Value::Array(all) => all.iter().map(cleaned).collect(),
            Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), cleaned(value))).collect(),
            other => other.clone(),
        }
    }
    value.as_ref().map(cleaned).serialize(serializer)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the elements of a list as text, sorted.
fn list(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(list) => {
            Some(list.iter().filter_map(shown).collect::<BTreeSet<_>>().into_iter().collect())
        }
        _ => None,
    }
}

/// Returns a value as text; absent where it is none.
pub(super) fn shown(value: &Value) -> Option<String> {
    if is_nothing(value) {
        return None;
    }
    match value {
        Value::String(text) => Some(known(text)),
        Value::Object(object) => {
            let parts = object.iter().filter_map(|(key, value)| Some(format!("{key} {}", shown(value)?)));
            Some(parts.collect::<Vec<_>>().join(" "))
        }
        other => Some(other.to_string()),
    }
}

/// Returns a text, or `(new)` for an id that is not known yet.
pub(super) fn known(text: &str) -> String {
    if is_placeholder(text) {
        return "(new)".to_owned();
    }
    match text.parse() {
        Ok(address) if is_placeholder_address(address) => "(new address)".to_owned(),
        Ok(_) | Err(_) => text.to_owned(),
    }
}
