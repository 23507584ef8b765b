//! New objects in words.

use std::fmt::{self, Display, Formatter};

use super::pairs::{Pairs, list};
use crate::load_balancer::model::listener::ListenerSpec;
use crate::load_balancer::model::member::Member;
use crate::load_balancer::model::monitor::{MonitorAttributes, MonitorSpec};
use crate::load_balancer::model::pool::PoolSpec;

/// A new object in words.
pub(super) struct Words<'a, T>(pub(super) &'a T);

impl Display for Words<'_, ListenerSpec> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ListenerSpec { name, protocol, port, attributes, tags } = self.0;
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
        if extras.is_empty() { Ok(()) } else { write!(f, " ({extras})") }
    }
}
