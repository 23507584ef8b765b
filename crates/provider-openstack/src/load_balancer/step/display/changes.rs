//! Changes in words.

use std::fmt::Display;

use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{
    UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use super::pairs::{Pairs, list};
use crate::load_balancer::model::pool::Persistence;

pub(super) fn of_load_balancer(changes: &UpdateLoadBalancer) -> impl Display {
    let UpdateLoadBalancer { name, description, tags } = changes;
    Pairs::default()
        .add("name", name.as_ref())
        .add("description", description.as_ref().map(|text| format!("{text:?}")))
        .add("tags", tags.as_ref().map(list))
}

pub(super) fn of_listener(changes: &UpdateListener) -> impl Display {
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

pub(super) fn of_pool(changes: &UpdatePool) -> impl Display {
    let UpdatePool { name, lb_algorithm, session_persistence, tags } = changes;
    let persistence = match session_persistence {
        Change::Keep => None,
        Change::Set(wanted) => Some(Persistence::of(wanted).to_string()),
        Change::Clear => Some("none".to_owned()),
    };
    Pairs::default()
        .add("name", name.as_ref())
        .add("lb_algorithm", lb_algorithm.as_ref())
        .add("session_persistence", persistence)
        .add("tags", tags.as_ref().map(list))
}

pub(super) fn of_monitor(changes: &UpdateHealthMonitor) -> impl Display {
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

/// A change in words: what is cleared goes back to Octavia's default.
fn shown<'a, T>(change: &'a Change<T>, text: impl FnOnce(&'a T) -> String) -> Option<String> {
    match change {
        Change::Keep => None,
        Change::Set(value) => Some(text(value)),
        Change::Clear => Some("default".to_owned()),
    }
}
