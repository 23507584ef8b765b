//! What would change of each object: the attributes that differ, before and after.

use std::fmt;

use openstack_ccm_openstack_api::dry_run::{
    Difference, Fate, Kind, ObjectChange, differences, is_placeholder, known, merged, shown,
};
use openstack_ccm_provider_openstack::load_balancer::annotations::CONVERGED_DIGEST;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::journal::Call;

/// The change to one object, or to one part of a Service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub fate: Fate,
    /// The kind of object: `listener`, `status`, `annotations`.
    pub kind: String,
    /// The id in the cloud; absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name that distinguishes the object from others of its kind: `443/TCP`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What differs of the object as it is.
    #[serde(serialize_with = "without_placeholders")]
    pub before: Value,
    /// The same as it would be; null also where only the cloud will know it.
    #[serde(serialize_with = "without_placeholders")]
    pub after: Value,
    /// The object that it is below, where a line names all that are: the pool of members, the group of rules.
    #[serde(skip)]
    above: Option<String>,
}

/// Returns the changes of some calls, in the order in which the objects are first changed.
pub fn changes(calls: &[Call]) -> Vec<Change> {
    let in_cloud = merged(calls.iter().flat_map(Call::changes)).into_iter().map(|one| of_cloud(&one));
    let mut changes: Vec<Change> = in_cloud.collect();
    changes.retain(|change| change.fate != Fate::Changed || change.before != change.after);
    // Each object of Kubernetes before its first and after its last write.
    let mut ends: Vec<(&str, &Value, &Value)> = Vec::new();
    for write in calls.iter().filter_map(Call::in_cluster) {
        let object = write.path.strip_suffix("/status").unwrap_or(&write.path);
        match ends.iter_mut().find(|(known, ..)| *known == object) {
            Some((_, _, after)) => *after = &write.after,
            None => ends.push((object, &write.before, &write.after)),
        }
    }
    changes.extend(ends.into_iter().flat_map(|(path, before, after)| of_cluster(path, before, after)));
    changes
}

fn of_cloud(one: &ObjectChange) -> Change {
    let (mut before, mut after) = (Map::new(), Map::new());
    let mut add = |difference: &Difference<'_>| {
        before.insert(difference.name.to_owned(), difference.before.clone());
        after.insert(difference.name.to_owned(), difference.after.clone());
    };
    one.differences().iter().for_each(&mut add);
    if one.fate() == Fate::Created {
        let object = one.object();
        let given = essential(one.kind).iter().filter(|name| shown(&object[**name]).is_some());
        given.for_each(|name| add(&Difference { name, before: &Value::Null, after: &object[*name] }));
    }
    Change {
        fate: one.fate(),
        kind: one.kind.to_string(),
        id: (!is_placeholder(&one.id)).then(|| one.id.clone()),
        name: one.name(),
        before: before.into(),
        after: after.into(),
        above: match one.kind {
            Kind::Member => one.parent.clone(),
            Kind::SecurityGroupRule => one.object()["security_group_id"].as_str().map(str::to_owned),
            _ => None,
        },
    }
}

/// Returns the attributes of a new object that a plan shows.
fn essential(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::LoadBalancer => {
            &["provider", "flavor_id", "availability_zone", "vip_subnet_id", "vip_network_id"]
        }
        Kind::Listener => &["protocol", "allowed_cidrs", "default_tls_container_ref"],
        Kind::Pool => &["protocol", "lb_algorithm", "session_persistence"],
        Kind::HealthMonitor => &["type", "delay", "url_path"],
        Kind::FloatingIp => &["floating_network_id"],
        Kind::Member | Kind::SecurityGroup | Kind::SecurityGroupRule | Kind::Port | Kind::Router => &[],
    }
}

/// Returns the parts of a Service, or the Node, that differ. The annotation in which the program notes that everything was up to date
/// is of no interest to users.
fn of_cluster(path: &str, before: &Value, after: &Value) -> Vec<Change> {
    let is_node = path.contains("/nodes/");
    let name = if is_node { path.rsplit('/').next().unwrap_or_default() } else { "" };
    let change = |fate: Fate, kind: &str, before: Value, after: Value| Change {
        fate,
        kind: kind.to_owned(),
        id: None,
        name: name.to_owned(),
        before,
        after,
        above: None,
    };
    if after.is_null() {
        return vec![change(Fate::Deleted, "node", Value::Null, Value::Null)];
    }
    let parts: &[(&str, Part)] = match is_node {
        true => &[("node", of_node)],
        false => &[("status", of_status), ("annotations", of_annotations), ("finalizer", of_finalizers)],
    };
    let differing = parts.iter().filter_map(|(kind, part)| {
        let (old, new) = (part(before), part(after));
        let names: Vec<String> = differences(&old, &new).iter().map(|one| one.name.to_owned()).collect();
        let only =
            |of: &Value| -> Value { names.iter().map(|name| (name.clone(), of[name].clone())).collect() };
        (!names.is_empty()).then(|| change(Fate::Changed, kind, only(&old), only(&new)))
    });
    differing.collect()
}

/// Takes a part of an object that is shown by itself.
type Part = fn(&Value) -> Value;

fn of_status(service: &Value) -> Value {
    json!({"ingress": service["status"]["loadBalancer"]["ingress"]})
}

fn of_annotations(service: &Value) -> Value {
    let mut annotations = service["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.remove(CONVERGED_DIGEST.key);
    annotations.into()
}

fn of_finalizers(service: &Value) -> Value {
    json!({"finalizers": service["metadata"]["finalizers"]})
}

fn of_node(node: &Value) -> Value {
    let texts = |list: &Value, keys: [&str; 2], between: &str| -> Value {
        let list = list.as_array().into_iter().flatten();
        list.map(|one| keys.map(|key| one[key].as_str().unwrap_or_default()).join(between)).collect()
    };
    let mut parts = node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    parts.insert("providerID".to_owned(), node["spec"]["providerID"].clone());
    parts.insert("taint".to_owned(), texts(&node["spec"]["taints"], ["key", "effect"], ":"));
    parts.insert("address".to_owned(), texts(&node["status"]["addresses"], ["type", "address"], " "));
    parts.insert("condition".to_owned(), texts(&node["status"]["conditions"], ["type", "status"], "="));
    parts.into()
}

/// Returns the published entries as text: `203.0.113.10 (Proxy)`.
pub(super) fn entries(ingress: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(known);
    let entries = ingress.as_array().into_iter().flatten().map(|entry| {
        let place = text(&entry["hostname"]).or_else(|| text(&entry["ip"])).unwrap_or_default();
        match entry["ipMode"].as_str() {
            Some(mode) if mode != "VIP" => format!("{place} ({mode})"),
            _ => place,
        }
    });
    entries.collect()
}

/// Serializes a value, with null for parts that only the cloud will know.
fn without_placeholders<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    fn cleaned(value: &Value) -> Value {
        match value {
            Value::String(text) if known(text) != *text => Value::Null,
            Value::Array(all) => all.iter().map(cleaned).collect(),
            Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), cleaned(value))).collect(),
            other => other.clone(),
        }
    }
    cleaned(value).serialize(serializer)
}

impl fmt::Display for Change {
    /// Writes the differences: `timeout_client_data 50000 -> 77000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |one: &Difference<'_>| match one.name {
            "ingress" => {
                let of = |ingress: &Value| json!(entries(ingress).join(", "));
                Difference { name: "", before: &of(one.before), after: &of(one.after) }.to_string()
            }
            "finalizers" => Difference { name: "", ..*one }.to_string(),
            // The line of the pool shows the pool of a listener.
            "default_pool_id" if one.after.as_str().is_some_and(is_placeholder) => {
                "uses the new pool".to_owned()
            }
            "default_pool_id" => "uses another pool".to_owned(),
            _ => one.to_string(),
        };
        let texts: Vec<String> = differences(&self.before, &self.after).iter().map(text).collect();
        f.write_str(texts.join("; ").trim_start())
    }
}

/// Returns the lines of a plan for users: one for each object, or for all that are below one.
pub(super) fn lines(changes: &[Change]) -> Vec<String> {
    let mut summed: Vec<(&str, &str)> = Vec::new();
    let mut lines = Vec::new();
    for change in changes {
        let Change { fate, kind, id, name, above, .. } = change;
        let line = |fate: &str, kind: &str, rest: String| format!("  {fate:<3} {kind:<15} {rest}");
        let Some(above) = above else {
            let id = id.as_ref().map(|id| format!("({id})"));
            let parts = [name.clone(), id.unwrap_or_default(), change.to_string()];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            lines.push(line(&fate.to_string(), kind, parts.join(" ")));
            continue;
        };
        if summed.contains(&(kind, above)) {
            continue;
        }
        summed.push((kind, above));
        let all: Vec<&Change> =
            changes.iter().filter(|one| one.kind == *kind && one.above.as_ref() == Some(above)).collect();
        let marked = |one: &&Change| match one.fate {
            Fate::Changed => format!("{} {one}", one.name),
            fate => format!("{fate} {}", one.name),
        };
        let same = all.iter().all(|one| one.fate == *fate);
        let fate = if same { fate.to_string() } else { Fate::Changed.to_string() };
        let rest: Vec<String> = all.iter().map(marked).collect();
        lines.push(line(&fate, &format!("{kind}s"), rest.join(" ")));
    }
    lines
}

/// The numbers of objects that would be created, changed and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// `+`, and `-/+`.
    pub add: usize,
    /// `~`
    pub change: usize,
    /// `-`, and `-/+`.
    pub destroy: usize,
}

impl Changes {
    /// Counts these changes.
    pub fn of<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Self {
        changes.into_iter().fold(Self::default(), |mut sum, Change { fate, .. }| {
            sum.add += usize::from(matches!(fate, Fate::Created | Fate::Replaced));
            sum.change += usize::from(*fate == Fate::Changed);
            sum.destroy += usize::from(matches!(fate, Fate::Deleted | Fate::Replaced));
            sum
        })
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { add, change, destroy } = self;
        write!(f, "{add} to add, {change} to change, {destroy} to destroy")
    }
}
