//! What would become of objects: each once, with the attributes that would change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Kind, ObjectChange, is_placeholder, is_placeholder_address};

/// Attributes that the cloud maintains itself, or that follow from other objects.
const MAINTAINED: [&str; 21] = [
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

/// What would happen to an object; shown with the marks of `terraform plan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    Created,
    Changed,
    Deleted,
    /// Deleted, and created in another form.
    Replaced,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "+",
            Self::Changed => "~",
            Self::Deleted => "-",
            Self::Replaced => "-/+",
        })
    }
}

/// An attribute before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'a> {
    pub name: &'a str,
    pub before: &'a Value,
    pub after: &'a Value,
}

impl ObjectChange {
    /// Returns what would happen to the object.
    pub fn fate(&self) -> Fate {
        match (&self.before, &self.after) {
            (None, _) => Fate::Created,
            (_, None) => Fate::Deleted,
            (Some(before), Some(after)) if before["id"] != after["id"] => Fate::Replaced,
            (Some(_), Some(_)) => Fate::Changed,
        }
    }

    /// Returns the object as it is, or would be.
    pub fn object(&self) -> &Value {
        self.before.as_ref().or(self.after.as_ref()).unwrap_or(&Value::Null)
    }

    /// Returns the attributes that would change.
    pub fn differences(&self) -> Vec<Difference<'_>> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return Vec::new() };
        differences(before, after).into_iter().filter(|one| !MAINTAINED.contains(&one.name)).collect()
    }

    /// Returns the name that distinguishes the object from others of its kind.
    pub fn name(&self) -> String {
        let object = self.object();
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        match self.kind {
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
}

impl Difference<'_> {
    fn is_empty(&self) -> bool {
        let Self { before, after, .. } = self;
        // An attribute that an object of another form lacks is off.
        let is_off = **before == Value::Bool(false) && after.is_null();
        let is_same_list = matches!((list(before), list(after)), (Some(one), Some(other)) if one == other);
        before == after || is_off || (is_nothing(before) && is_nothing(after)) || is_same_list
    }

    /// Returns the elements that a list would lose and gain; absent for other values.
    pub fn elements(&self) -> Option<(Vec<String>, Vec<String>)> {
        let (before, after) = (list(self.before)?, list(self.after)?);
        let lacks =
            |one: &BTreeSet<String>, other: &BTreeSet<String>| one.difference(other).cloned().collect();
        Some((lacks(&before, &after), lacks(&after, &before)))
    }
}

impl fmt::Display for Difference<'_> {
    /// Writes `timeout_client_data 50000 -> 77000`, or `allowed_cidrs - 10.0.0.0/8 + 192.0.2.0/24`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some((removed, added)) = self.elements() {
            removed.iter().try_for_each(|one| write!(f, " - {one}"))?;
            return added.iter().try_for_each(|one| write!(f, " + {one}"));
        }
        match (shown(self.before), shown(self.after)) {
            (Some(before), Some(after)) => write!(f, " {before} -> {after}"),
            (Some(before), None) => write!(f, " {before} -> (nothing)"),
            (None, Some(after)) => write!(f, " {after}"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for ObjectChange {
    /// Writes `~ listener 443/TCP timeout_client_data 50000 -> 77000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let name = if name.is_empty() { name } else { format!(" {name}") };
        write!(f, "{} {}{name}", self.fate(), self.kind)?;
        let differences: Vec<String> = self.differences().iter().map(ToString::to_string).collect();
        if differences.is_empty() { Ok(()) } else { write!(f, " {}", differences.join("; ")) }
    }
}

/// Returns the attributes in which two objects differ.
pub fn differences<'a>(before: &'a Value, after: &'a Value) -> Vec<Difference<'a>> {
    let keys = |object: &'a Value| object.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    let names: BTreeSet<&str> = keys(before).chain(keys(after)).collect();
    let all = names.into_iter().map(|name| Difference { name, before: &before[name], after: &after[name] });
    all.filter(|one| !one.is_empty()).collect()
}

/// Returns each object once, before its first and after its last change: without those that would be created and deleted again, and
/// with the new object in place of the one that it replaces.
pub fn merged<'a>(changes: impl IntoIterator<Item = &'a ObjectChange>) -> Vec<ObjectChange> {
    let mut places: BTreeMap<(Kind, &str), usize> = BTreeMap::new();
    let mut merged: Vec<ObjectChange> = Vec::new();
    for change in changes {
        match places.get(&(change.kind, change.id.as_str())) {
            Some(place) => merged[*place].after.clone_from(&change.after),
            None => {
                places.insert((change.kind, &change.id), merged.len());
                merged.push(change.clone());
            }
        }
    }
    merged.retain(|one| one.before != one.after);
    let mut place = 0;
    while place < merged.len() {
        let other = (place + 1..merged.len()).find(|other| is_replacement(&merged[place], &merged[*other]));
        if let Some(other) = other {
            let other = merged.remove(other);
            let one = &mut merged[place];
            if one.before.is_none() {
                (one.id, one.before) = (other.id, other.before);
            } else {
                one.after = other.after;
            }
        }
        place += 1;
    }
    merged
}

/// Returns whether one of the two objects would replace the other.
fn is_replacement(one: &ObjectChange, other: &ObjectChange) -> bool {
    let same = match one.kind {
        Kind::LoadBalancer | Kind::Pool | Kind::SecurityGroup => "name",
        Kind::Listener => "protocol_port",
        Kind::FloatingIp => "description",
        Kind::HealthMonitor | Kind::Member | Kind::SecurityGroupRule | Kind::Port | Kind::Router => {
            return false;
        }
    };
    let fates = [one.fate(), other.fate()];
    one.kind == other.kind
        && matches!(fates, [Fate::Created, Fate::Deleted] | [Fate::Deleted, Fate::Created])
        && one.object()[same] == other.object()[same]
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

/// Returns the elements of a list as text.
fn list(value: &Value) -> Option<BTreeSet<String>> {
    match value {
        Value::Null => Some(BTreeSet::new()),
        Value::Array(list) => Some(list.iter().filter_map(shown).collect()),
        _ => None,
    }
}

/// Returns a value as text; absent where it is none.
pub fn shown(value: &Value) -> Option<String> {
    match value {
        nothing if is_nothing(nothing) => None,
        Value::String(text) => Some(known(text)),
        Value::Object(object) => {
            let parts = object.iter().filter_map(|(key, value)| Some(format!("{key} {}", shown(value)?)));
            Some(parts.collect::<Vec<_>>().join(" "))
        }
        other => Some(other.to_string()),
    }
}

/// Returns a text, or `(new)` for an id or an address that is not known yet.
pub fn known(text: &str) -> String {
    if is_placeholder(text) {
        return "(new)".to_owned();
    }
    match text.parse() {
        Ok(address) if is_placeholder_address(address) => "(new address)".to_owned(),
        Ok(_) | Err(_) => text.to_owned(),
    }
}
