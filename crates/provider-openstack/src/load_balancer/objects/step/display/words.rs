//! New objects and changes as text: `key=value` pairs and lists.

use std::fmt::{self, Display, Formatter};

use openstack_ccm_openstack_api::octavia::{
    Fields as _, HttpCheck, UpdateChild, UpdateLoadBalancer, Value, Values,
};

use crate::load_balancer::objects::pool::PERSISTENCE;
use crate::load_balancer::objects::{ListenerSpec, Member, MonitorSpec, PoolSpec, Tags};

/// `key=value` pairs of the values that are set.
#[derive(Default)]
pub(in crate::load_balancer) struct Pairs(Vec<String>);

impl Pairs {
    pub(in crate::load_balancer) fn add(mut self, key: &str, value: Option<impl Display>) -> Self {
        self.0.extend(value.map(|value| format!("{key}={value}")));
        self
    }

    /// Adds attributes. The request of a health monitor is one.
    pub(in crate::load_balancer) fn all(self, values: &Values) -> Self {
        let is_request = |name: &str| HttpCheck::NAMES.contains(&name);
        let request: Vec<String> =
            HttpCheck::NAMES.iter().filter_map(|name| Some(text(name, values.get(name)?))).collect();
        let others = values.iter().filter(|(name, _)| !is_request(name));
        let pairs = others.fold(self, |pairs, (name, value)| pairs.add(word(name), Some(text(name, value))));
        pairs.add("http", (!request.is_empty()).then(|| request.join(" ")))
    }

    pub(in crate::load_balancer) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes a space and the pairs, if there are any.
    pub(in crate::load_balancer) fn append(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() { Ok(()) } else { write!(f, " {self}") }
    }

    /// Adds the tags of a new object, which `{:#}` omits.
    pub(in crate::load_balancer) fn tags(self, tags: &Tags, f: &Formatter<'_>) -> Self {
        self.add("tags", (!tags.is_empty() && !f.alternate()).then(|| list(tags)))
    }
}

impl Display for Pairs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

pub(in crate::load_balancer) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

impl Display for ListenerSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ListenerSpec { name, protocol, port, attributes, tags } = self;
        let headers: Vec<&String> = attributes.insert_headers.keys().collect();
        let mut attributes = attributes.values();
        if headers.is_empty() {
            attributes.retain(|name| name != "insert_headers");
        } else {
            attributes.set("insert_headers", headers.into_iter().cloned().collect());
        }
        let pairs = Pairs::default().all(&attributes).tags(tags, f);
        write!(f, "listener {name}: {protocol} {port}")?;
        pairs.append(f)
    }
}

impl Display for PoolSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PoolSpec { name, protocol, attributes, tags } = self;
        let mut others = attributes.values();
        others.retain(|name| name != "lb_algorithm");
        let pairs = Pairs::default().all(&others).tags(tags, f);
        write!(f, "pool {name}: {protocol} {}", attributes.lb_algorithm)?;
        pairs.append(f)
    }
}

impl Display for MonitorSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let MonitorSpec { name, kind, attributes, tags } = self;
        let pairs = Pairs::default().all(&attributes.values()).tags(tags, f);
        write!(f, "health monitor {name}: {kind}")?;
        pairs.append(f)
    }
}

impl Display for Member {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.key())?;
        let extras = Pairs::default()
            .add("monitor_port", self.monitor_port)
            .add("monitor_address", self.monitor_address)
            .add("weight", (self.weight != 1).then_some(self.weight))
            .add("backup", self.backup.then_some(true))
            .add("admin_state_up", (!self.admin_state_up).then_some(false));
        if extras.is_empty() { Ok(()) } else { write!(f, " ({extras})") }
    }
}

pub(in crate::load_balancer) fn of_load_balancer(changes: &UpdateLoadBalancer) -> impl Display {
    let UpdateLoadBalancer { name, description, tags } = changes;
    Pairs::default()
        .add("name", name.as_ref())
        .add("description", description.as_ref().map(|text| format!("{text:?}")))
        .add("tags", tags.as_ref().map(list))
}

pub(in crate::load_balancer) fn of_child(changes: &UpdateChild) -> impl Display {
    let UpdateChild { name, attributes, tags } = changes;
    Pairs::default().add("name", name.as_ref()).all(attributes).add("tags", tags.as_ref().map(list))
}

/// Returns the name of an attribute in words.
fn word(name: &str) -> &str {
    if name == "default_tls_container_ref" { "tls_container_ref" } else { name }
}

/// Describes the value of an attribute. A cleared one gets Octavia's default.
fn text(name: &str, value: &Value) -> String {
    match value {
        Value::Null if name == PERSISTENCE => "none".to_owned(),
        Value::Null => "default".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(items.iter().map(|item| text(name, item))),
        Value::Object(headers) if name == "insert_headers" => {
            list(headers.iter().map(|(header, value)| format!("{header}={}", text(header, value))))
        }
        Value::Object(_) => {
            let timeout = value["persistence_timeout"].as_u64().map(|timeout| format!(" for {timeout} s"));
            format!("{}{}", text("type", &value["type"]), timeout.unwrap_or_default())
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
