//! `cilium-dbg service list`: a table of frontends with their backends.

use std::net::SocketAddr;

use super::target::{Target, Transport};
use super::{Format, Listed, RulesError, Walk};

/// Follows packets to the target through the table.
pub(super) fn walk(text: &str, target: &Target) -> Result<Walk, RulesError> {
    let wanted = SocketAddr::new(target.address, target.port);
    let (mut rows, mut found, mut is_target) = (0_usize, None::<String>, false);
    let mut pods = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A row begins with a number and a frontend; further backends follow on their own lines.
        if let Some((frontend, kind)) = row(&words) {
            rows += 1;
            is_target = is_same(frontend, wanted, target.transport);
            if is_target {
                found = Some(kind.to_owned());
            }
        }
        if is_target {
            pods.extend(backend(&words));
        }
    }
    if rows == 0 && !text.contains("Frontend") {
        return Err(RulesError::Unknown);
    }
    let found = found.map(|kind| format!("frontend {target} {kind}"));
    let listed = Listed { kind: "frontend", to_pod: "a backend", count: rows, found, pods };
    Ok(listed.walk(Format::Cilium, target))
}

/// Returns frontend and type of a row.
fn row<'a>(words: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let [id, frontend, kind, ..] = words else { return None };
    // `1 => 10.0.0.1:80` is a backend.
    (id.parse::<u32>().is_ok() && *frontend != "=>").then_some((*frontend, *kind))
}

/// Compares a frontend `203.0.113.10:443/TCP`; older versions omit the transport, and internal traffic has `/i` at the end.
fn is_same(frontend: &str, wanted: SocketAddr, transport: Transport) -> bool {
    let mut parts = frontend.split('/');
    let place = parts.next().and_then(|place| place.parse::<SocketAddr>().ok());
    place == Some(wanted)
        && parts.all(|part| Transport::parse(part).is_none_or(|written| written == transport))
}

/// Returns the pod in `1 => 10.244.3.7:443/TCP (active)`.
fn backend(words: &[&str]) -> Option<String> {
    let place = words.iter().position(|word| *word == "=>")?;
    let pod = words.get(place + 1)?;
    Some(pod.split('/').next().unwrap_or(pod).to_owned())
}
