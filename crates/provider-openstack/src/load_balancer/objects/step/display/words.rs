//! New objects and changes as text: `key=value` pairs and lists.

use std::fmt::{self, Display, Formatter};

use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{
    ListenerLimits, UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use crate::load_balancer::objects::{
    ListenerSpec, Member, MonitorAttributes, MonitorSpec, Persistence, PoolSpec, Tags,
};

/// `key=value` pairs of the values that are set.
#[derive(Default)]
pub(in crate::load_balancer) struct Pairs(Vec<String>);

impl Pairs {
    pub(in crate::load_balancer) fn add(mut self, key: &str, value: Option<impl Display>) -> Self {
        self.0.extend(value.map(|value| format!("{key}={value}")));
        self
    }

    pub(in crate::load_balancer) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes a space and the pairs, if there are any.
    pub(in crate::load_balancer) fn append(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() { Ok(()) } else { write!(f, " {self}") }
    }

    pub(in crate::load_balancer) fn limits(self, limits: &ListenerLimits) -> Self {
        limits.iter().fold(self, |pairs, (limit, value)| pairs.add(limit.name(), Some(value)))
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
        let (headers, tls) = (&attributes.insert_headers, &attributes.tls);
        let pairs = Pairs::default()
            .limits(&attributes.limits)
            .add("insert_headers", (!headers.is_empty()).then(|| list(headers.keys())))
            .add("allowed_cidrs", attributes.allowed_cidrs.as_ref().map(list))
            .add("tls_container_ref", attributes.tls_container_ref.as_ref())
            .add("sni_container_refs", tls.sni_container_refs.as_ref().map(list))
            .add("tls_versions", tls.versions.as_ref().map(list))
            .add("tls_ciphers", tls.ciphers.as_ref())
            .add("alpn_protocols", tls.alpn_protocols.as_ref().map(list))
            .tags(tags, f);
        write!(f, "listener {name}: {protocol} {port}")?;
        pairs.append(f)
    }
}

impl Display for PoolSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PoolSpec { name, protocol, attributes, tags } = self;
        let pairs = Pairs::default()
            .add("session_persistence", attributes.session_persistence.as_ref())
            .tags(tags, f);
        write!(f, "pool {name}: {protocol} {}", attributes.lb_algorithm)?;
        pairs.append(f)
    }
}

impl Display for MonitorSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let MonitorSpec { name, kind, attributes, tags } = self;
        let MonitorAttributes { delay, timeout, max_retries, max_retries_down, http } = attributes;
        let request = http.as_ref().map(|http| format!("{} {} {}", http.method, http.path, http.codes));
        let pairs = Pairs::default()
            .add("delay", Some(delay))
            .add("timeout", Some(timeout))
            .add("max_retries", Some(max_retries))
            .add("max_retries_down", Some(max_retries_down))
            .add("http", request)
            .tags(tags, f);
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

pub(in crate::load_balancer) fn of_listener(changes: &UpdateListener) -> impl Display {
    let UpdateListener {
        name,
        limits,
        tags,
        insert_headers,
        allowed_cidrs,
        default_tls_container_ref,
        sni_container_refs,
        tls_versions,
        tls_ciphers,
        alpn_protocols,
        default_pool_id,
    } = changes;
    let headers = insert_headers.as_ref();
    Pairs::default()
        .add("name", name.as_ref())
        .limits(limits)
        .add(
            "insert_headers",
            headers.map(|headers| list(headers.iter().map(|(key, value)| format!("{key}={value}")))),
        )
        .add("allowed_cidrs", shown(allowed_cidrs, list))
        .add("tls_container_ref", shown(default_tls_container_ref, Clone::clone))
        .add("sni_container_refs", sni_container_refs.as_ref().map(list))
        .add("tls_versions", shown(tls_versions, list))
        .add("tls_ciphers", shown(tls_ciphers, Clone::clone))
        .add("alpn_protocols", shown(alpn_protocols, list))
        .add("default_pool_id", shown(default_pool_id, Clone::clone))
        .add("tags", tags.as_ref().map(list))
}

pub(in crate::load_balancer) fn of_pool(changes: &UpdatePool) -> impl Display {
    let UpdatePool { name, lb_algorithm, session_persistence, admin_state_up, tags } = changes;
    let persistence = match session_persistence {
        Change::Keep => None,
        Change::Set(wanted) => Some(Persistence::of(wanted).to_string()),
        Change::Clear => Some("none".to_owned()),
    };
    Pairs::default()
        .add("name", name.as_ref())
        .add("lb_algorithm", lb_algorithm.as_ref())
        .add("session_persistence", persistence)
        .add("admin_state_up", *admin_state_up)
        .add("tags", tags.as_ref().map(list))
}

pub(in crate::load_balancer) fn of_monitor(changes: &UpdateHealthMonitor) -> impl Display {
    let UpdateHealthMonitor {
        name,
        delay,
        timeout,
        max_retries,
        max_retries_down,
        url_path,
        http_method,
        expected_codes,
        tags,
    } = changes;
    let request: Vec<&str> =
        [http_method, url_path, expected_codes].into_iter().flatten().map(String::as_str).collect();
    Pairs::default()
        .add("name", name.as_ref())
        .add("delay", *delay)
        .add("timeout", *timeout)
        .add("max_retries", *max_retries)
        .add("max_retries_down", *max_retries_down)
        .add("http", (!request.is_empty()).then(|| request.join(" ")))
        .add("tags", tags.as_ref().map(list))
}

/// Describes a change; a cleared value gets Octavia's default.
fn shown<'a, T>(change: &'a Change<T>, text: impl FnOnce(&'a T) -> String) -> Option<String> {
    match change {
        Change::Keep => None,
        Change::Set(value) => Some(text(value)),
        Change::Clear => Some("default".to_owned()),
    }
}
