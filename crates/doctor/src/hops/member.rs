//! Hop 7: the nodes as members of the pools.

use std::collections::BTreeSet;

use super::look::{Look, pools, transport};
use crate::code::{Code, Stops};
use crate::facts::{Change, CloudFacts, CloudObject, Door, DoorRule, GroupSource};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::question::{Answer, questions};
use openstack_ccm_core::text::some_of;

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

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(check) => return Questions::all(&check),
    };
    if cloud.load_balancer.is_none() {
        return Questions::all(&skipped("there is no load balancer"));
    }
    if let Some(trouble) = &cloud.children.trouble {
        let unread = unknown(format!("the members cannot be read: {trouble}"));
        return Questions { doors: doors(look, cloud), ..Questions::all(&unread) };
    }
    let pools: Vec<Pool<'_>> =
        pools(look, cloud).into_iter().map(|(pool, ports)| Pool::of(look, cloud, pool, ports)).collect();
    let none = || skipped("no listener of the Service leads to a pool");
    Questions {
        current: current(look, cloud, &pools),
        usable: Answer::each(&pools, none, |pool| usable(look, pool)),
        nodes: nodes(look, &pools),
        doors: doors(look, cloud),
    }
}

/// A pool of the Service, with its members.
struct Pool<'a> {
    pool: &'a CloudObject,
    ports: Vec<Port>,
    members: Vec<&'a CloudObject>,
    /// The changes that the controller would make to the members.
    changes: Vec<&'a Change>,
    monitored: bool,
}

impl<'a> Pool<'a> {
    fn of(look: &Look<'_>, cloud: &'a CloudFacts, pool: &'a CloudObject, ports: Vec<Port>) -> Self {
        let of_pool = |kind: &'static str| {
            let objects = cloud.children.objects.iter();
            objects.filter(move |object| object.kind == kind && object.pool.as_ref() == Some(&pool.id))
        };
        // A plan that replaces the pool lists the members of the new pool.
        let is_settled = !super::header::swaps_a_pool(&cloud.changes) && !look.is_being_deleted();
        let changes = cloud.changes.iter().filter(|change| {
            matches!(change.kind.as_str(), "members" | "member")
                && change.parent.as_ref().is_none_or(|parent| *parent == pool.id)
                && is_settled
                && look.without_node_port().is_empty()
        });
        Self {
            pool,
            ports,
            members: of_pool("member").collect(),
            changes: changes.collect(),
            monitored: of_pool("health monitor").next().is_some(),
        }
    }

    /// Lists the members that the controller would remove.
    fn stale(&self) -> BTreeSet<&'a str> {
        self.changes
            .iter()
            .flat_map(|change| &change.fields)
            .flat_map(|field| &field.removed)
            .map(String::as_str)
            .collect()
    }

    fn missing(&self) -> BTreeSet<&'a str> {
        self.changes
            .iter()
            .flat_map(|change| &change.fields)
            .flat_map(|field| &field.added)
            .map(String::as_str)
            .collect()
    }

    /// Lists the members to which the load balancer sends connections.
    fn usable(&self) -> Vec<&'a CloudObject> {
        self.members.iter().copied().filter(|member| idle(member).is_none()).collect()
    }

    fn at(&self, finding: Finding) -> Finding {
        self.ports.iter().fold(finding, |finding, port| finding.at(*port))
    }

    fn title(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
        ports.join(", ")
    }
}

/// Returns why a member gets no connections; absent where it gets some.
fn idle(member: &CloudObject) -> Option<&'static str> {
    if member.disabled {
        Some("disabled")
    } else if member.weight == Some(0) {
        Some("of weight 0")
    } else if matches!(member.operating.as_str(), "ERROR" | "OFFLINE") {
        Some("down")
    } else {
        None
    }
}

/// Judges whether the members are the present nodes and node ports.
fn current(look: &Look<'_>, cloud: &CloudFacts, pools: &[Pool<'_>]) -> Answer {
    let found: Vec<Check> = pools.iter().filter_map(|pool| differs(look, pool)).map(Check::from).collect();
    Answer::found(found, || match pools.is_empty() {
        true if look.ports().next().is_some() && cloud.children.objects.is_empty() => {
            skipped("the load balancer has no members")
        }
        _ => ok("the members match the present nodes and node ports"),
    })
}

fn differs(look: &Look<'_>, pool: &Pool<'_>) -> Option<Finding> {
    if pool.changes.is_empty() {
        // The plan does not reach the members of a Service that is being deleted, or of a load balancer in a pending status.
        return look.without_node_port().is_empty().then(|| misdirected(look, pool)).flatten();
    }
    let (stale, missing) = (pool.stale(), pool.missing());
    let named = |members: &BTreeSet<&str>| -> Vec<String> {
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
    let lines: Vec<String> = pool.changes.iter().map(|change| change.line()).collect();
    if parts.is_empty() {
        parts.push("a member differs from what the controller would set".to_owned());
    }
    // Members that are right and accept connections still serve some of the packets.
    let right = pool.usable().into_iter().filter(|member| !stale.contains(member.name.as_str())).count();
    let text = format!("port {}: {}", pool.title(), parts.join("; "));
    let finding = Finding::new(Code::D701, text).seen(look.object(), "plan", lines.join("; "));
    Some(pool.at(finding.surely(right == 0)))
}

/// Finds members whose port is not a node port of the pool's Service ports.
fn misdirected(look: &Look<'_>, pool: &Pool<'_>) -> Option<Finding> {
    let of_pool = look.ports().filter(|(port, _)| pool.ports.contains(port));
    let node_ports: BTreeSet<i32> = of_pool.filter_map(|(_, spec)| spec.node_port).collect();
    let is_wrong =
        |member: &CloudObject| member.port.is_some_and(|port| !node_ports.contains(&i32::from(port)));
    let wrong: Vec<String> = pool
        .members
        .iter()
        .filter(|member| is_wrong(member))
        .map(|member| look.member_name(&member.name))
        .collect();
    let right = pool.usable().into_iter().filter(|member| !is_wrong(member)).count();
    (!wrong.is_empty()).then(|| {
        let text = format!(
            "port {}: the member port is not the node port of the Service: {}",
            pool.title(),
            some_of(&wrong, 3)
        );
        let finding = Finding::new(Code::D701, text).seen(pool.pool.title(), "members", some_of(&wrong, 5));
        pool.at(finding.surely(right == 0))
    })
}

/// Judges whether the members of a pool accept connections.
fn usable(look: &Look<'_>, pool: &Pool<'_>) -> Check {
    let count = pool.members.len();
    if count == 0 {
        let finding = Finding::new(Code::D701, format!("port {}: the pool has no members", pool.title()))
            .seen(pool.pool.title(), "members", "none");
        return pool.at(finding.surely(true)).into();
    }
    let idle: Vec<(&CloudObject, &str)> =
        pool.members.iter().filter_map(|member| Some((*member, idle(member)?))).collect();
    let named: Vec<String> =
        idle.iter().map(|(member, why)| format!("{} is {why}", look.member_name(&member.name))).collect();
    let members = if count == 1 { "1 member".to_owned() } else { format!("{count} members") };
    if idle.is_empty() {
        let monitor = if pool.monitored { "" } else { " (no health monitor)" };
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
    let finding = pool.at(Finding::new(code, text).seen(pool.pool.title(), "members", some_of(&named, 5)));
    let disabled = idle.iter().find(|(_, why)| *why != "down").filter(|_| all_are_idle);
    match disabled {
        Some((member, why)) => finding.fix(enable(pool.pool, member, why)).into(),
        None => finding.into(),
    }
}

fn enable(pool: &CloudObject, member: &CloudObject, why: &str) -> Fix {
    let change = if why == "disabled" { ["--enable"].as_slice() } else { ["--weight", "1"].as_slice() };
    let words = ["openstack", "loadbalancer", "member", "set"].iter().chain(change).copied();
    Fix::command(words.chain([pool.id.as_str(), member.id.as_str()]))
}

/// Finds members on nodes that are not ready, in pools without a health monitor to remove them.
fn nodes(look: &Look<'_>, pools: &[Pool<'_>]) -> Answer {
    if let Err(cause) = &look.cluster.nodes {
        return unknown(format!("the nodes cannot be read: {cause}"))
            .about(Scope::default(), Stops::Through)
            .into();
    }
    let mut found: Vec<Check> = Vec::new();
    for pool in pools.iter().filter(|pool| !pool.monitored) {
        let usable = pool.usable();
        let not_ready: Vec<&str> = usable
            .iter()
            .filter_map(|member| look.node_at(member.name.rsplit_once(':')?.0.parse().ok()?))
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
    Answer::found(found, || {
        ok("the nodes of all members that take connections are ready, or a health monitor watches them")
    })
}

/// Returns whether the member behind a door gets no connections.
fn is_idle_at(cloud: &CloudFacts, pool: &str, door: &Door) -> bool {
    let members = cloud.children.objects.iter().filter(|one| one.kind == "member");
    let mut members = members.filter(|one| one.pool.as_deref() == Some(pool));
    let name = format!("{}:{}", door.address, door.port);
    members.any(|member| member.name == name && idle(member).is_some())
}

/// Whether the security groups of a member let the load balancer in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    Unknown,
}

fn doors(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let doors = match &cloud.doors {
        None => return unknown("the security groups of the nodes were not checked").into(),
        Some(Err(cause)) => {
            return unknown(format!("the security groups of the nodes cannot be read: {cause}")).into();
        }
        Some(Ok(doors)) => doors,
    };
    if doors.is_empty() {
        return skipped("no member is a server of this project").into();
    }
    let pools = pools(look, cloud);
    Answer::each(
        pools,
        || skipped("no listener of the Service leads to a pool"),
        |(pool, ports)| {
            let mut of_pool: Vec<&Door> = doors.iter().filter(|door| door.pool == pool.id).collect();
            // A load balancer sends nothing to idle members as long as the pool has others.
            let is_used = |door: &Door| !is_idle_at(cloud, &pool.id, door);
            if of_pool.iter().any(|door| is_used(door)) {
                of_pool.retain(|door| is_used(door));
            }
            let protocol = transport(pool.protocol.as_deref()).as_str().to_ascii_lowercase();
            door(&of_pool, &ports, &protocol, cloud.subnet.as_deref())
        },
    )
}

fn door(doors: &[&Door], ports: &[Port], protocol: &str, subnet: Option<&str>) -> Check {
    let names = |state: State| -> Vec<String> {
        let those = doors.iter().filter(|door| state_of(door) == state);
        those.map(|door| format!("{}:{}/{protocol}", door.address, door.port)).collect()
    };
    let (closed, dark) = (names(State::Closed), names(State::Unknown));
    let scope = Scope { ports: Some(ports.iter().copied().collect()), to: None };
    if !closed.is_empty() {
        let text =
            format!("no security group allows traffic from the load balancer to {}", some_of(&closed, 5));
        let mut finding = Finding::new(Code::D702, text).seen(
            "Neutron",
            "rules of the security groups of the nodes",
            "none fits protocol, port and source",
        );
        let shut = doors.iter().find(|door| state_of(door) == State::Closed);
        if let (Some(group), Some(subnet)) = (shut.and_then(|door| door.group.as_ref()), subnet) {
            finding = finding.seen("security group", "of the node", group).fix(Fix::command([
                "openstack",
                "security",
                "group",
                "rule",
                "create",
                "--protocol",
                protocol,
                "--dst-port",
                "30000:32767",
                "--remote-ip",
                subnet,
                group,
            ]));
        }
        finding.scope = scope;
        return finding.surely(closed.len() == doors.len()).into();
    }
    if !dark.is_empty() {
        let text = format!(
            "whether security groups allow traffic from the load balancer to {} cannot be determined",
            some_of(&dark, 5)
        );
        return unknown(text).about(scope, Stops::Through);
    }
    ok(format!("security groups allow traffic from the load balancer ({protocol})"))
}

/// Evaluates the security group rules of a member.
fn state_of(door: &Door) -> State {
    if !door.guarded {
        return State::Open;
    }
    let fits = |rule: &&DoorRule| {
        is_protocol(rule.protocol.as_deref(), &door.protocol)
            && rule.ipv6 == door.address.is_ipv6()
            && rule.ports.is_none_or(|(first, last)| (first..=last).contains(&door.port))
    };
    let lets_in = |rule: &DoorRule| match rule.from_group {
        Some(GroupSource::Holds) => State::Open,
        Some(GroupSource::Lacks) => State::Closed,
        Some(GroupSource::Unknown) => State::Unknown,
        None => match (rule.from, door.from) {
            (None, _) => State::Open,
            (Some(from), Some(sender)) if from.contains(&sender) => State::Open,
            (Some(from), Some(sender)) if !sender.contains(&from) => State::Closed,
            // The rule admits a part of the load balancer's network, or the network is not known.
            (Some(_), _) => State::Unknown,
        },
    };
    let states: Vec<State> = door.rules.iter().filter(fits).map(lets_in).collect();
    if states.contains(&State::Open) {
        State::Open
    } else if door.hidden || states.contains(&State::Unknown) {
        State::Unknown
    } else {
        State::Closed
    }
}

/// Compares protocols: a rule of Neutron may have a name or a number.
fn is_protocol(of_rule: Option<&str>, wanted: &str) -> bool {
    let number = match wanted {
        "udp" => "17",
        "sctp" => "132",
        _ => "6",
    };
    of_rule.is_none_or(|protocol| {
        protocol.eq_ignore_ascii_case(wanted) || protocol == number || protocol.eq_ignore_ascii_case("any")
    })
}
