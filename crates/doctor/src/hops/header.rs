//! Hop 6: the PROXY protocol header that the load balancer adds.

use super::look::{Look, listener_of, pool_of};
use crate::code::{Code, Stops};
use crate::facts::{Change, CloudFacts, PathFact, is_proxy_protocol};
use crate::finding::{Check, Finding, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::question::{Answer, questions};

questions! {
    Questions at Header {
        /// Whether the pool of each TCP port has the wanted protocol.
        pools,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(check) => return Questions::all(&check),
    };
    if cloud.load_balancer.is_none() {
        return Questions::all(&skipped("there is no load balancer"));
    }
    let path = match look.path() {
        Ok(path) => path,
        Err(cause) => {
            return Questions::all(&unknown(format!(
                "whether the Service asks for a PROXY protocol header is not known: {cause}"
            )));
        }
    };
    let none = || skipped("no port is one of TCP");
    Questions { pools: Answer::each(look.tcp(), none, |port| pool(look, cloud, path, port)) }
}

fn pool(look: &Look<'_>, cloud: &CloudFacts, path: &PathFact, port: Port) -> Check {
    let pool = listener_of(cloud, port).and_then(|listener| pool_of(cloud, listener));
    let Some(pool) = pool else {
        return match &cloud.children.trouble {
            Some(trouble) => unknown(format!("the pools cannot be read: {trouble}"))
                .about(Scope::port(port), Stops::Through),
            None => skipped(format!("port {port} has no pool: see the load balancer")),
        };
    };
    let Some(wanted) = path.pools.get(&port.number) else {
        return unknown(format!("the protocol that the pool of port {port} should have is not known"))
            .about(Scope::port(port), Stops::Through);
    };
    let actual = pool.protocol.as_deref().unwrap_or_default();
    let is_right = if is_proxy_protocol(wanted) { actual == wanted } else { !is_proxy_protocol(actual) };
    if is_right {
        return ok(format!("port {}: the pool speaks {actual}, as {} asks", port.number, path.source));
    }
    let text =
        format!("port {}: the pool speaks {actual}, but {} asks for {wanted}", port.number, path.source);
    Finding::new(Code::D601, text)
        .seen(pool.title(), "protocol", actual)
        .seen(look.object(), "the path", path.source.clone())
        .at(port)
        .into()
}

/// Returns whether the pool of a port has another protocol than it should have.
pub(super) fn is_wrong(look: &Look<'_>, cloud: &CloudFacts, port: Port) -> bool {
    look.path().is_ok_and(|path| matches!(pool(look, cloud, path, port), Check::Found(_)))
}

/// Returns whether a plan replaces a pool by a pool of another protocol, which this hop judges.
pub(super) fn swaps_a_pool(changes: &[Change]) -> bool {
    changes.iter().any(is_other_pool)
}

/// Returns whether a change of the plan is part of such a replacement, or follows from it.
pub(super) fn is_about_protocol(change: &Change, all: &[Change]) -> bool {
    let kind = change.kind.as_str();
    let mut fields = change.fields.iter();
    is_other_pool(change)
        || (kind == "listener"
            && change.mark == "~"
            && fields.all(|field| field.name == "default_pool")
            && swaps_a_pool(all))
        || (kind == "health monitor" && change.mark != "~" && swaps_a_pool(all))
}

fn is_other_pool(change: &Change) -> bool {
    change.kind == "pool" && change.mark != "~" && change.fields.iter().any(|field| field.name == "protocol")
}
