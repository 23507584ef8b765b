//! Hop 6: the PROXY protocol header that the load balancer adds.

use super::look::Look;
use crate::code::Code;
use crate::facts::{Change, CloudFacts, CloudObject};
use crate::finding::{Check, Finding, ok, skipped, unknown};

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    let path = match look.path() {
        Ok(path) => path,
        Err(cause) => return vec![unknown(format!("whether a header is asked for is not known: {cause}"))],
    };
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(cause) => return vec![unknown(cause)],
    };
    if cloud.load_balancer.is_none() {
        return vec![skipped("there is no load balancer")];
    }
    let mut checks = Vec::new();
    let mut wrong = Vec::new();
    for (port, wanted) in &path.pools {
        let Some(pool) = pool_of(cloud, *port) else { continue };
        let actual = pool.protocol.as_deref().unwrap_or_default();
        if sends_header(actual) == sends_header(wanted) && (!sends_header(wanted) || actual == wanted) {
            checks.push(ok(format!("port {port}: the pool speaks {actual}, as {} asks", path.source)));
            continue;
        }
        if !sends_header(actual) && !sends_header(wanted) {
            continue;
        }
        let text = format!("port {port}: the pool speaks {actual}, and {} asks for {wanted}", path.source);
        wrong.push(
            Finding::new(Code::D601, text)
                .seen(pool.title(), "protocol", actual)
                .seen(look.object(), "the path", path.source.clone())
                .fix(look.plan()),
        );
    }
    let concerned = wrong.len();
    checks.extend(wrong.into_iter().map(|finding| finding.of_ports(concerned, look.ports().len()).into()));
    if checks.is_empty() {
        checks.push(match &cloud.children.trouble {
            Some(trouble) => unknown(format!("the pools cannot be read: {trouble}")),
            None => skipped("no TCP port has a pool"),
        });
    }
    checks
}

/// The pool that a listener leads to.
fn pool_of(cloud: &CloudFacts, port: u16) -> Option<&CloudObject> {
    let objects = &cloud.children.objects;
    let is_tcp = |one: &&CloudObject| !matches!(one.protocol.as_deref(), Some("UDP" | "SCTP"));
    let mut listeners = objects.iter().filter(|one| one.kind == "listener" && one.port == Some(port));
    let listener = listeners.find(is_tcp)?;
    objects.iter().find(|one| one.kind == "pool" && Some(&one.id) == listener.pool.as_ref())
}

fn sends_header(protocol: &str) -> bool {
    matches!(protocol, "PROXY" | "PROXYV2")
}

/// Whether a plan swaps a pool for one of another protocol, which this hop is about.
pub(super) fn swaps_a_pool(changes: &[Change]) -> bool {
    changes.iter().any(is_other_pool)
}

/// Whether a change of the plan is part of such a swap, or follows from it.
pub(super) fn is_about_protocol(change: &Change, all: &[Change]) -> bool {
    let kind = change.kind.as_str();
    let mut fields = change.fields.iter();
    is_other_pool(change)
        || (kind == "listener" && change.mark == "~" && fields.all(|field| field.name == "default_pool"))
        || (kind == "health monitor" && change.mark != "~" && swaps_a_pool(all))
}

fn is_other_pool(change: &Change) -> bool {
    change.kind == "pool" && change.fields.iter().any(|field| field.name == "protocol")
}
