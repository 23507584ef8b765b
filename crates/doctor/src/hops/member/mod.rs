//! Hop 7: the nodes as members of the pools.

mod doors;

use std::collections::BTreeSet;

use openstack_ccm_core::text::some_of;
use openstack_ccm_openstack_api::dry_run::{Fate, Kind, ObjectChange};
use openstack_ccm_openstack_api::octavia::HealthMonitor;

use super::load_balancer::only_names;
use super::look::Look;
use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, MemberFact, PoolFact};
use crate::finding::{Check, Finding, Fix, ok, skipped};
use crate::hop::Port;
use crate::question::{Answer, questions, read};
use doors::doors;

questions! {
    Questions at Member {
        /// Whether the members are the present nodes and node ports.
        current,
        /// Whether the members accept connections.
        usable,
        /// Whether the members' nodes are ready.
        nodes,
        /// Whether the security groups let the load balancer in.
        doors,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Result<Questions, Answer> {
    let cloud = look.served()?;
    read(&cloud.children, "the members cannot be read", Stops::All)?;
    let pools: Vec<Pool<'_>> =
        look.pools(cloud).into_iter().map(|(pool, ports)| Pool::of(look, cloud, pool, ports)).collect();
    let none = || skipped("no listener of the Service leads to a pool");
    Ok(Questions {
        current: current(look, cloud, &pools),
        usable: Answer::each(&pools, none, |pool| usable(look, pool)),
        nodes: nodes(look, &pools).into(),
        doors: Answer::each(&pools, none, |pool| doors(cloud, pool.fact, &pool.ports)),
    })
}

/// A pool of the Service, with its members.
struct Pool<'a> {
    fact: &'a PoolFact,
    ports: Vec<Port>,
    /// The changes that the controller would make to the members.
    changes: Vec<&'a ObjectChange>,
}

impl<'a> Pool<'a> {
    fn of(look: &Look<'_>, cloud: &'a CloudFacts, fact: &'a PoolFact, ports: Vec<Port>) -> Self {
        // A plan that replaces the pool lists the members of the new pool.
        let is_settled = !super::header::swaps_a_pool(cloud)
            && !look.is_being_deleted()
            && look.without_node_port().is_empty();
        let is_here = |change: &&ObjectChange| {
            is_settled && change.parent.as_ref() == Some(&fact.pool.id) && !only_names(change)
        };
        Self { fact, ports, changes: cloud.changes_of(Kind::Member).filter(is_here).collect() }
    }

    /// Lists the members that the controller would make, or remove.
    fn members(&self, fate: Fate) -> BTreeSet<String> {
        self.changes.iter().filter(|change| change.fate() == fate).map(|change| change.name()).collect()
    }

    /// Lists the members to which the load balancer sends connections.
    fn usable(&self) -> impl Iterator<Item = &'a MemberFact> {
        self.fact.members.iter().filter(|member| member.idle().is_none())
    }

    fn at(&self, finding: Finding) -> Finding {
        finding.at_each(self.ports.iter().copied())
    }

    fn title(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
        ports.join(", ")
    }

    fn object(&self) -> String {
        format!("pool {}", self.fact.pool.id)
    }
}

/// Judges whether the members are the present nodes and node ports.
fn current(look: &Look<'_>, cloud: &CloudFacts, pools: &[Pool<'_>]) -> Answer {
    let found: Vec<Check> = pools.iter().filter_map(|pool| differs(look, pool)).map(Check::from).collect();
    Answer::found(found, || match pools.is_empty() {
        true if cloud.pools().is_empty() => skipped("the load balancer has no members"),
        _ => ok("the members match the present nodes and node ports"),
    })
}

fn differs(look: &Look<'_>, pool: &Pool<'_>) -> Option<Finding> {
    if pool.changes.is_empty() {
        // The plan does not reach the members of a Service that is being deleted, or of a load balancer in a pending status.
        return look.without_node_port().is_empty().then(|| misdirected(look, pool)).flatten();
    }
    let (stale, missing) = (pool.members(Fate::Deleted), pool.members(Fate::Created));
    let named = |members: &BTreeSet<String>| -> Vec<String> {
        members.iter().map(|member| look.member_name(member)).collect()
    };
    let (gone, lacking) = (named(&stale), named(&missing));
    let one_or_many =
        |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
    let mut parts = Vec::new();
    if !lacking.is_empty() {
        let verb = one_or_many(lacking.len(), "is not a member", "are not members");
        parts.push(format!("{} {verb}", some_of(&lacking, 3)));
    }
    if !gone.is_empty() {
        let verb = one_or_many(gone.len(), "is a member and should not be", "are members and should not be");
        parts.push(format!("{} {verb}", some_of(&gone, 3)));
    }
    let lines: Vec<String> = pool.changes.iter().map(ToString::to_string).collect();
    if parts.is_empty() {
        parts.push("a member differs from what the controller would set".to_owned());
    }
    // Members that are right and accept connections still serve some of the packets.
    let right = pool.usable().filter(|member| !stale.contains(&member.name())).count();
    let text = format!("port {}: {}", pool.title(), parts.join("; "));
    let finding = Finding::new(Code::D701, text).seen("openstack-ccm", "would change", some_of(&lines, 5));
    Some(pool.at(finding.surely(right == 0)))
}

/// Finds members whose port is not a node port of the pool's Service ports.
fn misdirected(look: &Look<'_>, pool: &Pool<'_>) -> Option<Finding> {
    let of_pool = look.ports().filter(|(port, _)| pool.ports.contains(port));
    let node_ports: BTreeSet<i32> = of_pool.filter_map(|(_, spec)| spec.node_port).collect();
    let is_wrong = |member: &&MemberFact| !node_ports.contains(&i32::from(member.member.protocol_port));
    let wrong = pool.fact.members.iter().filter(is_wrong).map(|member| look.member_name(&member.name()));
    let wrong: Vec<String> = wrong.collect();
    let right = pool.usable().filter(|member| !is_wrong(member)).count();
    (!wrong.is_empty()).then(|| {
        let text = format!(
            "port {}: the member port is not the node port of the Service: {}",
            pool.title(),
            some_of(&wrong, 3)
        );
        let finding = Finding::new(Code::D701, text).seen(pool.object(), "members", some_of(&wrong, 5));
        pool.at(finding.surely(right == 0))
    })
}

/// Judges whether the members of a pool accept connections.
fn usable(look: &Look<'_>, pool: &Pool<'_>) -> Check {
    let count = pool.fact.members.len();
    if count == 0 {
        let finding = Finding::new(Code::D701, format!("port {}: the pool has no members", pool.title()))
            .seen(pool.object(), "members", "none");
        return pool.at(finding.surely(true)).into();
    }
    let idle: Vec<(&MemberFact, &str)> =
        pool.fact.members.iter().filter_map(|member| Some((member, member.idle()?))).collect();
    let named: Vec<String> =
        idle.iter().map(|(member, why)| format!("{} is {why}", look.member_name(&member.name()))).collect();
    let members = if count == 1 { "1 member".to_owned() } else { format!("{count} members") };
    if idle.is_empty() {
        let monitor = if pool.fact.monitor.is_some() { "" } else { " (no health monitor)" };
        return ok(format!("port {}: {members}, none reported down{monitor}", pool.title()));
    }
    let all_are_idle = idle.len() == count;
    // Members on nodes without endpoints have to be down.
    if look.is_local() && !all_are_idle && idle.iter().all(|(_, why)| *why == "down") {
        return ok(format!(
            "port {}: {} of {members} are down, as expected for nodes without endpoints",
            pool.title(),
            idle.len()
        ));
    }
    let (code, text) = match all_are_idle {
        true => (Code::D703, format!("port {}: no member takes connections", pool.title())),
        false => {
            (Code::D704, format!("port {}: {} of {members} take no connections", pool.title(), idle.len()))
        }
    };
    let finding = pool.at(Finding::new(code, text).seen(pool.object(), "members", some_of(&named, 5)));
    let checks = |monitor: &HealthMonitor| {
        let port = pool.fact.members.first().and_then(|member| member.member.monitor_port);
        let at = port.map(|port| format!(" at port {port}")).unwrap_or_default();
        let path = monitor.attributes.http.as_ref().map(|http| http.path.as_str()).unwrap_or_default();
        format!("{} {path}{at}", monitor.kind)
    };
    let finding = match &pool.fact.monitor {
        Some(monitor) => finding.seen("health monitor", "asks each member for", checks(monitor)),
        None => finding,
    };
    let disabled = idle.iter().find(|(_, why)| *why != "down").filter(|_| all_are_idle);
    match disabled {
        Some((member, why)) => finding.fix(enable(&pool.fact.pool.id, &member.member.id, why)).into(),
        None => finding.into(),
    }
}

fn enable(pool: &str, member: &str, why: &str) -> Fix {
    let change = if why == "disabled" { ["--enable"].as_slice() } else { ["--weight", "1"].as_slice() };
    let words = ["openstack", "loadbalancer", "member", "set"].iter().chain(change).copied();
    Fix::command(words.chain([pool, member]))
}

/// Finds members on nodes that are not ready, in pools without a health monitor to remove them.
fn nodes(look: &Look<'_>, pools: &[Pool<'_>]) -> Result<Answer, Answer> {
    read(&look.cluster.nodes, "the nodes cannot be read", Stops::Through)?;
    let mut found: Vec<Check> = Vec::new();
    for pool in pools.iter().filter(|pool| pool.fact.monitor.is_none()) {
        let not_ready: Vec<&str> = pool
            .usable()
            .filter_map(|member| look.node_at(member.address()?))
            .filter(|node| node.ready == Some(false))
            .map(|node| node.name.as_str())
            .collect();
        if let Some(first) = not_ready.first() {
            let verb = if not_ready.len() == 1 { "is" } else { "are" };
            let text = format!(
                "port {}: {} {verb} not ready, and the pool has no health monitor",
                pool.title(),
                some_of(&not_ready, 3)
            );
            let finding = Finding::new(Code::D705, text)
                .seen(format!("node {first}"), "condition Ready", "not True")
                .on(*first);
            found.push(pool.at(finding.fix(Fix::command(["kubectl", "describe", "node", first]))).into());
        }
    }
    Ok(Answer::found(found, || {
        ok("the nodes of all members that take connections are ready, or a health monitor watches them")
    }))
}
