//! Hop 6: the PROXY protocol header that the load balancer adds.

use super::look::Look;
use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, PathFact, is_proxy_protocol};
use crate::finding::{Check, Finding, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::question::{Answer, questions, read};
use openstack_ccm_openstack_api::dry_run::{Fate, Kind, ObjectChange};

questions! {
    Questions at Header {
        /// Whether the pool of each TCP port has the wanted protocol.
        pools,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Result<Questions, Answer> {
    let cloud = look.served()?;
    let missing = "whether the Service asks for a PROXY protocol header is not known";
    let path = read(&look.path, missing, Stops::All)?;
    let none = || skipped("no port is one of TCP");
    Ok(Questions { pools: Answer::each(look.tcp(), none, |port| pool(look, cloud, path, port)) })
}

fn pool(look: &Look<'_>, cloud: &CloudFacts, path: &PathFact, port: Port) -> Check {
    let Some(pool) = cloud.pool(port) else {
        return match &cloud.children {
            Err(cause) => {
                unknown(format!("the pools cannot be read: {cause}")).about(Scope::port(port), Stops::Through)
            }
            Ok(_) => skipped(format!("port {port} has no pool: see the load balancer")),
        };
    };
    let Some(wanted) = path.pools.get(&port.number) else {
        return unknown(format!("the protocol that the pool of port {port} should have is not known"))
            .about(Scope::port(port), Stops::Through);
    };
    let actual = &pool.pool.protocol;
    // Who reads the header reads both versions of it.
    if is_proxy_protocol(wanted) == is_proxy_protocol(actual) {
        return ok(format!(
            "port {}: the pool speaks {actual}; {} asks for {wanted}",
            port.number, path.source
        ));
    }
    let text =
        format!("port {}: the pool speaks {actual}, but {} asks for {wanted}", port.number, path.source);
    Finding::new(Code::D601, text)
        .seen(format!("pool {}", pool.pool.id), "protocol", actual.as_str())
        .seen(look.object(), "the path", path.source.clone())
        .at(port)
        .surely(!look.takes(port, is_proxy_protocol(actual)).contains(&true))
        .into()
}

/// Returns whether the pool of a port has another protocol than it should have.
pub(super) fn is_wrong(look: &Look<'_>, cloud: &CloudFacts, port: Port) -> bool {
    look.path().is_ok_and(|path| matches!(pool(look, cloud, path, port), Check::Found(_)))
}

/// Returns whether a plan puts a pool of another protocol in the place of one, which this hop judges.
pub(super) fn swaps_a_pool(cloud: &CloudFacts) -> bool {
    cloud.changes_of(Kind::Pool).any(is_other_pool)
}

/// Returns whether a change of the plan is part of such a replacement, or follows from it.
pub(super) fn is_about_protocol(change: &ObjectChange, cloud: &CloudFacts) -> bool {
    match (change.kind, change.fate()) {
        (Kind::Pool, _) => is_other_pool(change),
        (Kind::Listener, Fate::Changed) => {
            swaps_a_pool(cloud) && change.differences().iter().all(|one| one.name == "default_pool_id")
        }
        (Kind::HealthMonitor, fate) => fate != Fate::Changed && swaps_a_pool(cloud),
        _ => false,
    }
}

fn is_other_pool(change: &ObjectChange) -> bool {
    match change.fate() {
        Fate::Created => true,
        Fate::Replaced => change.differences().iter().any(|one| one.name == "protocol"),
        Fate::Changed | Fate::Deleted => false,
    }
}
