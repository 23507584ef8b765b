//! Rules between values: protocols that go together, headers, address families, certificates, monitors.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use super::major_version::OctaviaRelease;
use crate::python_repr::python_repr;
use crate::world::World;
use crate::world::load_balancing::LoadBalancer;

/// The pool protocols that may stand behind a listener protocol.
fn pool_protocols(listener: &str) -> &'static [&'static str] {
    match listener {
        "TCP" => &["HTTP", "HTTPS", "PROXY", "PROXYV2", "TCP"],
        "HTTP" | "TERMINATED_HTTPS" => &["HTTP", "PROXY", "PROXYV2"],
        "HTTPS" => &["HTTPS", "PROXY", "PROXYV2", "TCP"],
        "UDP" => &["UDP"],
        "SCTP" => &["SCTP"],
        _ => &[],
    }
}

/// Checks that a pool may serve a listener.
pub(crate) fn check_protocols(listener: &str, pool: &str) -> Result<(), OctaviaFault> {
    if pool_protocols(listener).contains(&pool) {
        return Ok(());
    }
    Err(OctaviaFault::validation(format!(
        "The pool protocol '{pool}' is invalid while the listener protocol is '{listener}'."
    )))
}

/// The protocol on the wire: what shares a port space.
pub(crate) fn transport_protocol(protocol: &str) -> &'static str {
    match protocol {
        "UDP" => "UDP",
        "SCTP" => "SCTP",
        _ => "TCP",
    }
}

const HEADERS: [&str; 3] = ["X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto"];
const TLS_HEADERS: [&str; 8] = [
    "X-SSL-Client-Verify",
    "X-SSL-Client-Has-Cert",
    "X-SSL-Client-DN",
    "X-SSL-Client-CN",
    "X-SSL-Issuer",
    "X-SSL-Client-SHA1",
    "X-SSL-Client-Not-Before",
    "X-SSL-Client-Not-After",
];

/// Checks `insert_headers`: only for HTTP, and only headers that Octavia knows.
pub(crate) fn check_insert_headers(protocol: &str, headers: &Value) -> Result<(), OctaviaFault> {
    let Some(names) = headers.as_object().filter(|names| !names.is_empty()) else { return Ok(()) };
    if !matches!(protocol, "HTTP" | "TERMINATED_HTTPS") {
        return Err(OctaviaFault::InvalidOption {
            value: "insert-headers".to_owned(),
            option: format!("a {protocol} protocol listener."),
        });
    }
    let tls = protocol == "TERMINATED_HTTPS";
    let known =
        |name: &String| HEADERS.contains(&name.as_str()) || (tls && TLS_HEADERS.contains(&name.as_str()));
    if names.keys().all(known) {
        return Ok(());
    }
    let keys: Vec<Value> = names.keys().map(|name| json!(name)).collect();
    Err(OctaviaFault::InvalidOption {
        value: format!("dict_keys({})", python_repr(&Value::Array(keys))),
        option: "insert_headers".to_owned(),
    })
}

/// Checks that every range in `allowed_cidrs` has the family of one of the VIPs.
pub(crate) fn check_allowed_cidrs(
    cidrs: &Value,
    lb: &LoadBalancer,
    release: OctaviaRelease,
) -> Result<(), OctaviaFault> {
    let mut vips = vec![lb.vip.address.clone()];
    vips.extend(lb.additional_vips.iter().map(|(_, address)| address.clone()));
    let families: Vec<bool> =
        vips.iter().filter_map(|vip| vip.parse::<IpAddr>().ok()).map(|vip| vip.is_ipv4()).collect();
    for cidr in cidrs.as_array().into_iter().flatten().filter_map(Value::as_str) {
        let is_ipv4 = cidr.parse::<IpNet>().is_ok_and(|net| net.addr().is_ipv4());
        if !families.contains(&is_ipv4) {
            let text = release.other_family(cidr, &vips);
            return Err(OctaviaFault::validation(text));
        }
    }
    Ok(())
}

const TLS_CIPHERS: &str = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:\
ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:\
DHE-RSA-CHACHA20-POLY1305";

/// Checks that a TLS-terminating listener has certificates that exist, and fills in Octavia's TLS defaults.
pub(crate) fn prepare_tls(world: &World, attributes: &mut Map<String, Value>) -> Result<(), OctaviaFault> {
    if attributes.get("protocol").and_then(Value::as_str) != Some("TERMINATED_HTTPS") {
        return Ok(());
    }
    let references = certificate_references(attributes);
    if references.is_empty() {
        return Err(OctaviaFault::validation(
            "An SNI or default certificate container reference must be provided for TERMINATED_HTTPS protocol listeners.",
        ));
    }
    check_certificates(world, &references)?;
    for (name, value) in [
        ("tls_ciphers", json!(TLS_CIPHERS)),
        ("tls_versions", json!(["TLSv1.2", "TLSv1.3"])),
        ("alpn_protocols", json!(["h2", "http/1.1", "http/1.0"])),
    ] {
        if attributes.get(name).is_none_or(Value::is_null) {
            attributes.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

/// The references to certificates that a listener has.
pub(crate) fn certificate_references(attributes: &Map<String, Value>) -> Vec<String> {
    let default = attributes.get("default_tls_container_ref").and_then(Value::as_str);
    let sni = attributes.get("sni_container_refs").and_then(Value::as_array).into_iter().flatten();
    default.into_iter().chain(sni.filter_map(Value::as_str)).map(str::to_owned).collect()
}

/// Checks that Barbican has every referenced container, or secret with a PKCS#12 bundle.
pub(crate) fn check_certificates(world: &World, references: &[String]) -> Result<(), OctaviaFault> {
    let exists = |reference: &&String| {
        let id = reference.rsplit('/').next().unwrap_or_default();
        world.key_management.containers.contains_key(id) || world.key_management.secrets.contains_key(id)
    };
    let unknown: Vec<&String> = references.iter().filter(|reference| !exists(reference)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(OctaviaFault::BadRequest(format!("Could not retrieve certificate: {}", python_repr(&json!(unknown)))))
}

/// Checks the cookie of session persistence, and that datagram pools only persist by source address.
pub(crate) fn check_session_persistence(protocol: &str, persistence: &Value) -> Result<(), OctaviaFault> {
    let Some(kind) = persistence.get("type").and_then(Value::as_str) else { return Ok(()) };
    let cookie = persistence.get("cookie_name").is_some_and(|name| !name.is_null());
    if kind == "APP_COOKIE" && !cookie {
        return Err(OctaviaFault::validation(
            "Field \"cookie_name\" must be specified when using the \"APP_COOKIE\" session persistence type.",
        ));
    }
    if kind != "APP_COOKIE" && cookie {
        return Err(OctaviaFault::validation(format!(
            "Field \"cookie_name\" is not allowed with \"{kind}\" session persistence type."
        )));
    }
    let datagrams = matches!(protocol, "UDP" | "SCTP");
    if datagrams && kind != "SOURCE_IP" {
        return Err(OctaviaFault::validation(format!(
            "Session persistence of type {kind} is not supported for {protocol} protocol pools."
        )));
    }
    let for_datagrams = ["persistence_timeout", "persistence_granularity"];
    if !datagrams && for_datagrams.iter().any(|field| is_given(&persistence[field])) {
        return Err(OctaviaFault::validation(
            "persistence_timeout and persistence_granularity is only for UDP and SCTP protocol pools.",
        ));
    }
    Ok(())
}

/// Whether a field has a value that Octavia takes for one: zero and the empty text count as absent.
fn is_given(value: &Value) -> bool {
    !matches!(value, Value::Null) && *value != json!(0) && *value != json!("")
}

/// Checks that a health monitor's type goes with its pool's protocol.
pub(crate) fn check_monitor(
    monitor: &Map<String, Value>,
    pool_protocol: &str,
    minor: u8,
) -> Result<(), OctaviaFault> {
    let kind = monitor.get("type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(pool_protocol, "UDP" | "SCTP") {
        if matches!(kind, "UDP-CONNECT" | "SCTP") {
            return Err(OctaviaFault::validation(format!(
                "The {kind} type is only supported for pools of type UDP/SCTP."
            )));
        }
        return Ok(());
    }
    let allowed: &[&str] =
        if minor < 16 { &["UDP-CONNECT"] } else { &["UDP-CONNECT", "SCTP", "TCP", "HTTP"] };
    if !allowed.contains(&kind) {
        return Err(OctaviaFault::validation(format!(
            "The associated pool protocol is {pool_protocol}, so only a {} health monitor is supported.",
            allowed.join("/")
        )));
    }
    let delay = monitor.get("delay").and_then(Value::as_i64).unwrap_or_default();
    if kind == "UDP-CONNECT" && delay < UDP_CONNECT_MIN_DELAY {
        return Err(OctaviaFault::validation(format!(
            "The request delay value {delay} should be larger than {UDP_CONNECT_MIN_DELAY} for {kind} health monitor type."
        )));
    }
    Ok(())
}

/// Octavia's default of `udp_connect_min_interval_health_monitor`, in seconds.
const UDP_CONNECT_MIN_DELAY: i64 = 3;

/// Fills in what a monitor over HTTP defaults to; other types keep these attributes null.
pub(crate) fn complete_monitor(attributes: &mut Map<String, Value>) {
    if !matches!(attributes.get("type").and_then(Value::as_str), Some("HTTP" | "HTTPS")) {
        return;
    }
    for (name, value) in [("http_method", "GET"), ("url_path", "/"), ("expected_codes", "200")] {
        if attributes.get(name).is_none_or(Value::is_null) {
            attributes.insert(name.to_owned(), json!(value));
        }
    }
}

/// The default of `[networking] reserved_ips`.
const METADATA_SERVICE: &str = "169.254.169.254";

/// Checks the address of a new member.
pub(crate) fn check_address(world: &World, member: &Map<String, Value>) -> Result<(), OctaviaFault> {
    let address = member.get("address").and_then(Value::as_str).unwrap_or_default();
    match address == METADATA_SERVICE || world.load_balancing.reserved_ips.contains(address) {
        true => {
            let (value, option) = (address.to_owned(), "member address".to_owned());
            Err(OctaviaFault::InvalidOption { value, option })
        }
        false => Ok(()),
    }
}

/// Checks that the project may have `more` objects of a kind.
pub(crate) fn check_quota(
    world: &World,
    project_id: &str,
    kind: ObjectKind,
    more: usize,
) -> Result<(), OctaviaFault> {
    let state = &world.load_balancing;
    let limit =
        state.quotas.get(project_id).and_then(|limits| limits.get(kind.quota())).copied().unwrap_or(-1);
    let Ok(limit) = usize::try_from(limit) else { return Ok(()) };
    if usage(world, project_id, kind) + more > limit { Err(OctaviaFault::Quota(kind)) } else { Ok(()) }
}

fn usage(world: &World, project_id: &str, kind: ObjectKind) -> usize {
    let state = &world.load_balancing;
    let mine = |project: &String| project == project_id;
    match kind {
        ObjectKind::LoadBalancer => {
            state.load_balancers.values().filter(|one| mine(&one.entity.project_id)).count()
        }
        ObjectKind::Listener => state.listeners.values().filter(|one| mine(&one.entity.project_id)).count(),
        ObjectKind::Pool => state.pools.values().filter(|one| mine(&one.entity.project_id)).count(),
        ObjectKind::Member => state.members.values().filter(|one| mine(&one.entity.project_id)).count(),
        ObjectKind::HealthMonitor => {
            state.health_monitors.values().filter(|one| mine(&one.entity.project_id)).count()
        }
    }
}
