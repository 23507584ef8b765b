//! Steps as text, for logs, for the `plan` subcommand and for golden tests. One line each, except the creation of a
//! whole load balancer, which is a tree.

use std::fmt::{self, Display, Formatter};

use openstack_ccm_openstack_api::change::Change;

use super::{
    FloatingIpStep, Handle, ListenerChanges, ListenerStep, LoadBalancerChanges, LoadBalancerStep, MemberStep,
    MonitorChanges, MonitorStep, PoolChanges, PoolStep, Step,
};
use crate::load_balancer::model::floating_ip::SubnetChoice;
use crate::load_balancer::model::listener::ListenerSpec;
use crate::load_balancer::model::member::Member;
use crate::load_balancer::model::monitor::{MonitorAttributes, MonitorSpec};
use crate::load_balancer::model::pool::PoolSpec;
use crate::load_balancer::model::tree::{DesiredListener, LoadBalancerSpec};

impl Display for Handle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::New(name) => write!(f, "(new) {name}"),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoadBalancer(step) => step.fmt(f),
            Self::Listener(step) => step.fmt(f),
            Self::Pool(step) => step.fmt(f),
            Self::Member(step) => step.fmt(f),
            Self::Monitor(step) => step.fmt(f),
            Self::FloatingIp(step) => step.fmt(f),
        }
    }
}

impl Display for LoadBalancerStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { load_balancer, listeners } => tree(f, load_balancer, listeners),
            Self::Update { id, changes } => write!(f, "update load balancer {id}: {changes}"),
            Self::Delete { id, cascade: true } => {
                write!(f, "delete load balancer {id} with everything below it")
            }
            Self::Delete { id, cascade: false } => write!(f, "delete load balancer {id}"),
            Self::Failover { id } => write!(f, "fail load balancer {id} over"),
        }
    }
}

impl Display for ListenerStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { listener, default_pool, .. } => {
                write!(f, "create {} with pool {default_pool}", Words(listener.as_ref()))
            }
            Self::Update { id, key, changes } => write!(f, "update listener {id} ({key}): {changes}"),
            Self::SwapDefaultPool { listener_id, key, pool } => {
                write!(f, "give listener {listener_id} ({key}) the pool {pool}")
            }
            Self::Delete { id, key } => write!(f, "delete listener {id} ({key})"),
        }
    }
}

impl Display for PoolStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { pool, .. } => write!(f, "create {}", Words(pool.as_ref())),
            Self::Update { id, changes } => write!(f, "update pool {id}: {changes}"),
            Self::Delete { id, name } => write!(f, "delete pool {id} ({name})"),
        }
    }
}

impl Display for MemberStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplaceAll { pool, members } => {
                write!(f, "set members of pool {pool}: {}", beginning_of(members))
            }
            Self::Create { pool, member } => write!(f, "add member {member} to pool {pool}"),
            Self::Delete { pool_id, id, name } => {
                write!(f, "take member {id} ({name}) out of pool {pool_id}")
            }
        }
    }
}

impl Display for MonitorStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { pool, monitor } => {
                write!(f, "create {} of pool {pool}", Words(monitor.as_ref()))
            }
            Self::Update { id, changes } => write!(f, "update health monitor {id}: {changes}"),
            Self::Delete { id } => write!(f, "delete health monitor {id}"),
        }
    }
}

impl Display for FloatingIpStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { network_id, subnet, address, port, .. } => {
                write!(f, "create floating IP")?;
                if let Some(address) = address {
                    write!(f, " {address}")?;
                }
                write!(f, " on network {network_id}")?;
                match subnet {
                    SubnetChoice::Any => {}
                    SubnetChoice::Id(id) => write!(f, " subnet {id}")?,
                    SubnetChoice::FirstFree(ids) => write!(f, " first free subnet of {}", list(ids))?,
                }
                write!(f, " for port {port}")
            }
            Self::Attach { id, address, port } => {
                write!(f, "attach floating IP {id} ({address}) to port {port}")
            }
            Self::Detach { id, address } => write!(f, "detach floating IP {id} ({address})"),
            Self::Tag { id, tags } => write!(f, "tag floating IP {id}: {}", list(tags)),
            Self::Delete { id, address } => write!(f, "delete floating IP {id} ({address})"),
        }
    }
}

fn tree(f: &mut Formatter<'_>, spec: &LoadBalancerSpec, listeners: &[DesiredListener]) -> fmt::Result {
    let additional = &spec.vip.additional;
    let pairs = Pairs::default()
        .add("provider", spec.provider.as_ref())
        .add("vip_port_id", spec.vip.port_id.as_ref())
        .add("vip_subnet_id", spec.vip.subnet_id.as_ref())
        .add("vip_network_id", spec.vip.network_id.as_ref())
        .add("vip_address", spec.vip.address)
        .add("additional_vips", (!additional.is_empty()).then(|| list(additional)))
        .add("flavor_id", spec.flavor_id.as_ref())
        .add("availability_zone", spec.availability_zone.as_ref())
        .tags(&spec.tags);
    write!(f, "create load balancer {}", spec.name)?;
    pairs.append(f)?;
    for DesiredListener { listener, pool } in listeners {
        write!(f, "\n  {}", Words(listener))?;
        write!(f, "\n    {}", Words(&pool.pool))?;
        for member in &pool.members {
            write!(f, "\n      member {member}")?;
        }
        if let Some(monitor) = &pool.monitor {
            write!(f, "\n      {}", Words(monitor))?;
        }
    }
    Ok(())
}

/// A new object in words.
struct Words<'a, T>(&'a T);

impl Display for Words<'_, ListenerSpec> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ListenerSpec { name, protocol, port, attributes, tags } = self.0;
        let (timeouts, tls) = (attributes.timeouts, &attributes.tls);
        let headers = &attributes.insert_headers;
        let pairs = Pairs::default()
            .add("connection_limit", Some(attributes.connection_limit))
            .add("timeout_client_data", timeouts.map(|timeouts| timeouts.client_data))
            .add("timeout_member_connect", timeouts.map(|timeouts| timeouts.member_connect))
            .add("timeout_member_data", timeouts.map(|timeouts| timeouts.member_data))
            .add("timeout_tcp_inspect", timeouts.map(|timeouts| timeouts.tcp_inspect))
            .add("insert_headers", (!headers.is_empty()).then(|| list(headers.keys())))
            .add("allowed_cidrs", attributes.allowed_cidrs.as_ref().map(list))
            .add("tls_container_ref", attributes.tls_container_ref.as_ref())
            .add("sni_container_refs", tls.sni_container_refs.as_ref().map(list))
            .add("tls_versions", tls.versions.as_ref().map(list))
            .add("tls_ciphers", tls.ciphers.as_ref())
            .add("alpn_protocols", tls.alpn_protocols.as_ref().map(list))
            .tags(tags);
        write!(f, "listener {name}: {protocol} {port}")?;
        pairs.append(f)
    }
}

impl Display for Words<'_, PoolSpec> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PoolSpec { name, protocol, attributes, tags } = self.0;
        let pairs =
            Pairs::default().add("session_persistence", attributes.session_persistence.as_ref()).tags(tags);
        write!(f, "pool {name}: {protocol} {}", attributes.lb_algorithm)?;
        pairs.append(f)
    }
}

impl Display for Words<'_, MonitorSpec> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let MonitorSpec { name, kind, attributes, tags } = self.0;
        let MonitorAttributes { delay, timeout, max_retries, max_retries_down, http } = attributes;
        let request = http.as_ref().map(|http| format!("{} {} {}", http.method, http.path, http.codes));
        let pairs = Pairs::default()
            .add("delay", Some(delay))
            .add("timeout", Some(timeout))
            .add("max_retries", Some(max_retries))
            .add("max_retries_down", Some(max_retries_down))
            .add("http", request)
            .tags(tags);
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
        if extras.0.is_empty() { Ok(()) } else { write!(f, " ({extras})") }
    }
}

impl Display for LoadBalancerChanges {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Pairs::default()
            .add("name", self.name.as_ref())
            .add("description", self.description.as_ref().map(|text| format!("{text:?}")))
            .add("tags", self.tags.as_ref().map(list))
            .fmt(f)
    }
}

impl Display for ListenerChanges {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let headers = self.insert_headers.as_ref();
        Pairs::default()
            .add("name", self.name.as_ref())
            .add("connection_limit", self.connection_limit)
            .add("timeout_client_data", self.timeout_client_data)
            .add("timeout_member_connect", self.timeout_member_connect)
            .add("timeout_member_data", self.timeout_member_data)
            .add("timeout_tcp_inspect", self.timeout_tcp_inspect)
            .add(
                "insert_headers",
                headers.map(|headers| list(headers.iter().map(|(key, value)| format!("{key}={value}")))),
            )
            .add("allowed_cidrs", self.allowed_cidrs.as_ref().map(list))
            .add("tls_container_ref", self.tls_container_ref.as_ref())
            .add("sni_container_refs", self.tls.sni_container_refs.as_ref().map(list))
            .add("tls_versions", shown(&self.tls.versions, list))
            .add("tls_ciphers", shown(&self.tls.ciphers, Clone::clone))
            .add("alpn_protocols", shown(&self.tls.alpn_protocols, list))
            .add("tags", self.tags.as_ref().map(list))
            .fmt(f)
    }
}

impl Display for PoolChanges {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let persistence = match &self.session_persistence {
            Change::Keep => None,
            Change::Set(persistence) => Some(persistence.to_string()),
            Change::Clear => Some("none".to_owned()),
        };
        Pairs::default()
            .add("name", self.name.as_ref())
            .add("lb_algorithm", self.lb_algorithm.as_ref())
            .add("session_persistence", persistence)
            .add("tags", self.tags.as_ref().map(list))
            .fmt(f)
    }
}

impl Display for MonitorChanges {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let request = self.http.as_ref().map(|http| format!("{} {} {}", http.method, http.path, http.codes));
        Pairs::default()
            .add("name", self.name.as_ref())
            .add("delay", self.delay)
            .add("timeout", self.timeout)
            .add("max_retries", self.max_retries)
            .add("max_retries_down", self.max_retries_down)
            .add("http", request)
            .add("tags", self.tags.as_ref().map(list))
            .fmt(f)
    }
}

/// A change in words: what is cleared goes back to Octavia's default.
fn shown<'a, T>(change: &'a Change<T>, text: impl FnOnce(&'a T) -> String) -> Option<String> {
    match change {
        Change::Keep => None,
        Change::Set(value) => Some(text(value)),
        Change::Clear => Some("default".to_owned()),
    }
}

/// `key=value` pairs of what is set.
#[derive(Default)]
struct Pairs(Vec<String>);

impl Pairs {
    fn add(mut self, key: &str, value: Option<impl Display>) -> Self {
        self.0.extend(value.map(|value| format!("{key}={value}")));
        self
    }

    /// Writes the pairs behind something else.
    fn append(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " {self}") }
    }

    fn tags(self, tags: &crate::load_balancer::model::Tags) -> Self {
        self.add("tags", (!tags.is_empty()).then(|| list(tags)))
    }
}

impl Display for Pairs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// As many members are named; a pool may have thousands, and each change of a node writes such a line for every pool.
const NAMED: usize = 10;

fn beginning_of(members: &[Member]) -> String {
    let mut items: Vec<String> = members.iter().take(NAMED).map(Member::to_string).collect();
    if members.len() > NAMED {
        items.push(format!("and {} others", members.len() - NAMED));
    }
    list(items)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(0, "[]")]
    #[case::all_are_named(2, "[node-0 10.0.0.1:30080, node-1 10.0.0.1:30080]")]
    #[case::the_last_that_is_named(10, "node-8 10.0.0.1:30080, node-9 10.0.0.1:30080]")]
    #[case::many(1000, "node-9 10.0.0.1:30080, and 990 others]")]
    fn a_change_of_many_members_is_one_short_line(#[case] count: usize, #[case] end: &str) {
        let member = |number: usize| Member {
            name: format!("node-{number}"),
            address: [10, 0, 0, 1].into(),
            port: 30080,
            subnet_id: None,
            monitor_port: None,
            monitor_address: None,
            weight: 1,
            backup: false,
            admin_state_up: true,
        };
        let members = (0..count).map(member).collect();
        let line = MemberStep::ReplaceAll { pool: Handle::Id("pool-1".into()), members }.to_string();
        assert!(line.starts_with("set members of pool pool-1: ["), "{line}");
        assert!(line.ends_with(end) && line.len() < 400, "{line}");
    }
}
