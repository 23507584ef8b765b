//! Steps as text, for logs, plans and golden tests. One line each, except the creation of a whole load balancer, which is a tree.
//! `{:#}` omits the tags of new objects.

mod words;

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use super::{
    FloatingIpStep, FormerFloatingIp, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep,
    PoolStep, Step,
};
use crate::load_balancer::objects::{DesiredListener, LoadBalancerSpec, Member, SubnetChoice};
use words::{Pairs, list};

impl Display for Handle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::New(name) => write!(f, "(new) {name}"),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoadBalancer(step) => step.fmt(f),
            Self::Listener(step) => step.fmt(f),
            Self::Pool(step) => step.fmt(f),
            Self::Member(step) => step.fmt(f),
            Self::Monitor(step) => step.fmt(f),
            Self::FloatingIp(step) => step.fmt(f),
        }
    }
}

impl Display for LoadBalancerStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { load_balancer, listeners } => tree(f, load_balancer, listeners),
            Self::Update { id, changes } => {
                write!(f, "update load balancer {id}: {}", words::of_load_balancer(changes))
            }
            Self::Delete { id, cascade: true } => {
                write!(f, "delete load balancer {id} with its listeners and pools")
            }
            Self::Delete { id, cascade: false } => write!(f, "delete load balancer {id}"),
            Self::Failover { id } => write!(f, "fail load balancer {id} over"),
        }
    }
}

impl Display for ListenerStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { listener, default_pool, .. } => {
                f.write_str("create ")?;
                listener.fmt(f)?;
                default_pool.as_ref().map_or(Ok(()), |pool| write!(f, " with pool {pool}"))
            }
            Self::Update { id, key, changes } => {
                write!(f, "update listener {id} ({key}): {}", words::of_child(changes))
            }
            Self::SwapDefaultPool { listener_id, key, pool } => {
                write!(f, "set default pool of listener {listener_id} ({key}): {pool}")
            }
            Self::Delete { id, key } => write!(f, "delete listener {id} ({key})"),
        }
    }
}

impl Display for PoolStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { pool, .. } => {
                f.write_str("create ")?;
                pool.fmt(f)
            }
            Self::Update { id, changes } => write!(f, "update pool {id}: {}", words::of_child(changes)),
            Self::Delete { id, name } => write!(f, "delete pool {id} ({name})"),
        }
    }
}

impl Display for MemberStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplaceAll { pool, members } => {
                write!(f, "set members of pool {pool}: {}", beginning_of(members))
            }
            Self::Add { pool, members } => {
                write!(f, "add members to pool {pool}: {}", beginning_of(members))
            }
            Self::Create { pool, member } => write!(f, "add member {member} to pool {pool}"),
            Self::Update { pool_id, id, member } => {
                write!(f, "update member {id} of pool {pool_id}: {member}")
            }
            Self::Delete { pool_id, id, name } => {
                write!(f, "remove member {id} ({name}) from pool {pool_id}")
            }
        }
    }
}

impl Display for MonitorStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { pool, monitor } => {
                f.write_str("create ")?;
                monitor.fmt(f)?;
                write!(f, " of pool {pool}")
            }
            Self::Update { id, changes, pool_id: _ } => {
                write!(f, "update health monitor {id}: {}", words::of_child(changes))
            }
            Self::Delete { id, pool_id: _ } => write!(f, "delete health monitor {id}"),
        }
    }
}

impl Display for FloatingIpStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { network_id, subnet, address, port, .. } => {
                write!(f, "create floating IP")?;
                if let Some(address) = address {
                    write!(f, " {address}")?;
                }
                write!(f, " on network {network_id}")?;
                match subnet {
                    SubnetChoice::Any => {}
                    SubnetChoice::Id(id) => write!(f, " subnet {id}")?,
                    SubnetChoice::FirstFree(ids) => write!(f, " first free subnet of {}", list(ids))?,
                }
                write!(f, " for port {port}")
            }
            Self::Attach { id, address, port, instead_of, vip: _ } => {
                write!(f, "attach floating IP {id} ({address}) to port {port}")?;
                let Some(FormerFloatingIp { id, address }) = instead_of else { return Ok(()) };
                write!(f, " in place of {id} ({address})")
            }
            Self::Detach { id, address } => write!(f, "detach floating IP {id} ({address})"),
            Self::Tag { id, tags, .. } => write!(f, "tag floating IP {id}: {}", list(tags)),
            Self::Delete { id, address } => write!(f, "delete floating IP {id} ({address})"),
        }
    }
}

fn tree(f: &mut Formatter<'_>, spec: &LoadBalancerSpec, listeners: &[DesiredListener]) -> fmt::Result {
    let additional = &spec.vip.additional;
    let pairs = Pairs::default()
        .add("provider", spec.provider.as_ref())
        .add("vip_port_id", spec.vip.port_id.as_ref())
        .add("vip_subnet_id", spec.vip.subnet_id.as_ref())
        .add("vip_network_id", spec.vip.network_id.as_ref())
        .add("vip_address", spec.vip.address)
        .add("additional_vips", (!additional.is_empty()).then(|| list(additional)))
        .add("flavor_id", spec.flavor_id.as_ref())
        .add("availability_zone", spec.availability_zone.as_ref())
        .tags(&spec.tags, f);
    write!(f, "create load balancer {}", spec.name)?;
    pairs.append(f)?;
    for DesiredListener { listener, pool } in listeners {
        write!(f, "\n  {listener}\n    {}", pool.pool)?;
        for member in &pool.members {
            write!(f, "\n      member {member}")?;
        }
        if let Some(monitor) = &pool.monitor {
            write!(f, "\n      {monitor}")?;
        }
    }
    Ok(())
}

/// Maximum number of members in a text: a pool may have thousands, and each change of a node writes a line for every pool.
const MAX_LISTED_MEMBERS: usize = 10;

fn beginning_of(members: &[Arc<Member>]) -> String {
    let mut items: Vec<String> = members.iter().take(MAX_LISTED_MEMBERS).map(ToString::to_string).collect();
    if members.len() > MAX_LISTED_MEMBERS {
        items.push(format!("and {} others", members.len() - MAX_LISTED_MEMBERS));
    }
    list(items)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(0, "[]")]
    #[case::all_are_named(2, "[node-0 10.0.0.1:30080, node-1 10.0.0.1:30080]")]
    #[case::the_last_that_is_named(10, "node-8 10.0.0.1:30080, node-9 10.0.0.1:30080]")]
    #[case::many(1000, "node-9 10.0.0.1:30080, and 990 others]")]
    fn a_change_of_many_members_is_one_short_line(#[case] count: usize, #[case] end: &str) {
        let member = |number: usize| Member {
            name: format!("node-{number}"),
            address: [10, 0, 0, 1].into(),
            port: 30080,
            subnet_id: None,
            monitor_port: None,
            monitor_address: None,
            weight: 1,
            backup: false,
            admin_state_up: true,
        };
        let members = (0..count).map(|number| Arc::new(member(number))).collect();
        let line = MemberStep::ReplaceAll { pool: Handle::Id("pool-1".into()), members }.to_string();
        assert!(line.starts_with("set members of pool pool-1: ["), "{line}");
        assert!(line.ends_with(end) && line.len() < 400, "{line}");
    }
}
