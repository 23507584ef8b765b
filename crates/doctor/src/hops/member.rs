//! Hop 7: the nodes as members of the pools.

use std::collections::BTreeMap;

use super::look::Look;
use crate::code::Code;
use crate::facts::{CloudFacts, CloudObject, Door};
use crate::finding::{Check, Finding, ok, skipped, unknown};
use openstack_ccm_core::text::some_of;

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(cause) => return vec![unknown(cause)],
    };
    if cloud.load_balancer.is_none() {
        return vec![skipped("there is no load balancer")];
    }
    let mut checks: Vec<Check> = cloud
        .changes
        .iter()
        .filter(|change| matches!(change.kind.as_str(), "members" | "member"))
        .filter(|_| !super::header::swaps_a_pool(&cloud.changes) && look.without_node_port().is_empty())
        .map(|change| {
            Finding::new(Code::D701, "the members are not the nodes and ports of today")
                .seen(look.object(), "plan", change.line())
                .fix(look.plan())
                .into()
        })
        .collect();
    checks.extend(health(look, cloud));
    checks.extend(doors(cloud));
    checks
}

/// What health monitors say.
fn health(look: &Look<'_>, cloud: &CloudFacts) -> Vec<Check> {
    if let Some(trouble) = &cloud.children.trouble {
        return vec![unknown(format!("the members cannot be read: {trouble}"))];
    }
    let members = cloud.children.objects.iter().filter(|object| object.kind == "member");
    let mut pools: BTreeMap<&str, Vec<&CloudObject>> = BTreeMap::new();
    for member in members {
        pools.entry(member.pool.as_deref().unwrap_or_default()).or_default().push(member);
    }
    let (mut checks, mut dead) = (Vec::new(), Vec::new());
    let mut well = 0_usize;
    for (pool, members) in &pools {
        let is_down = |member: &&&CloudObject| matches!(member.operating.as_str(), "ERROR" | "OFFLINE");
        let down: Vec<&str> = members.iter().filter(is_down).map(|member| member.name.as_str()).collect();
        let seen = |code, text: String| {
            let value = format!("down: {}", some_of(&down, 5));
            Finding::new(code, text).seen(format!("pool {pool}"), "operating_status of members", value)
        };
        if down.is_empty() {
            well += members.len();
        } else if down.len() == members.len() {
            dead.push(seen(Code::D703, format!("all {} members of pool {pool} are down", down.len())));
        } else if look.is_local() {
            checks.push(ok(format!(
                "{} of {} members of pool {pool} are down, as it has to be of nodes without endpoints",
                down.len(),
                members.len()
            )));
        } else {
            let text = format!("{} of {} members of pool {pool} are down", down.len(), members.len());
            checks.push(seen(Code::D704, text).into());
        }
    }
    let concerned = dead.len();
    checks.extend(dead.into_iter().map(|finding| finding.of_ports(concerned, pools.len()).into()));
    if pools.is_empty() {
        checks.push(
            Finding::new(Code::D701, "the load balancer has no members")
                .seen(look.object(), "members", "none")
                .fix(look.plan())
                .into(),
        );
    } else if checks.is_empty() {
        checks.push(ok(format!("{well} members in {} pools, none of them down", pools.len())));
    }
    checks
}

fn doors(cloud: &CloudFacts) -> Vec<Check> {
    let doors = match &cloud.doors {
        None => return vec![unknown("the security groups of the nodes were not looked at")],
        Some(Err(cause)) => {
            return vec![unknown(format!("the security groups of the nodes cannot be read: {cause}"))];
        }
        Some(Ok(doors)) => doors,
    };
    let shut = doors.iter().filter(|door| !is_open(door));
    let (hidden, closed): (Vec<&Door>, Vec<&Door>) = shut.partition(|door| door.hidden);
    let names = |doors: Vec<&Door>| -> Vec<String> {
        doors.into_iter().map(|door| format!("{}:{}", door.address, door.port)).collect()
    };
    let (hidden, closed) = (names(hidden), names(closed));
    if !hidden.is_empty() {
        let text = format!("not all security groups of {} can be seen", some_of(&hidden, 5));
        return vec![unknown(text)];
    }
    if closed.is_empty() {
        return vec![match doors.len() {
            0 => skipped("no member is a machine of this project"),
            open => ok(format!("security groups let the load balancer in at {open} node ports")),
        }];
    }
    let text = format!("no security group lets the load balancer in at {}", some_of(&closed, 5));
    vec![
        Finding::new(Code::D702, text)
            .seen("Neutron", "rules of the security groups of the nodes", "none fits the node port")
            .fix("openstack security group rule create --protocol tcp --dst-port 30000:32767 --remote-ip SUBNET GROUP")
            .into(),
    ]
}

/// Whether some rule lets the load balancer in. One whose sources are another group may, so it counts.
fn is_open(door: &Door) -> bool {
    let fits = |rule: &crate::facts::DoorRule| {
        rule.protocol.as_deref().is_none_or(|protocol| protocol.eq_ignore_ascii_case("tcp"))
            && rule.ports.is_none_or(|(first, last)| (first..=last).contains(&door.port))
            && (rule.from_group
                || rule.from.is_none_or(|from| door.from.iter().any(|address| from.contains(address))))
    };
    !door.guarded || door.rules.iter().any(fits)
}
