//! Changes in words.

use std::fmt::{self, Display, Formatter};

use openstack_ccm_openstack_api::change::Change;

use super::pairs::{Pairs, list};
use crate::load_balancer::step::{ListenerChanges, LoadBalancerChanges, MonitorChanges, PoolChanges};

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
            .limits(&self.limits)
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
