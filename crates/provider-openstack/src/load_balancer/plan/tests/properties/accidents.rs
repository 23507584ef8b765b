//! What happens to a cloud while nobody looks.

use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{OperatingStatus, ProvisioningStatus};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::load_balancer::objects::Children;
use crate::load_balancer::plan::tests::cloud::Cloud;

/// What may happen to a cloud behind the back of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accident {
    ListenerError,
    PoolError,
    MemberError,
    MemberOnWrongSubnet,
    MonitorError,
    ListenerLosesPool,
    PoolGone,
    ListenerGone,
    MonitorGone,
    MembersGone,
    SharedPool,
    Untagged,
    ForeignListener,
    ForeignPoolOnOwnListener,
    ForeignPool,
    Broken,
    FloatingIpGone,
    FloatingIpDetached,
    FloatingIpForeign,
}

const ACCIDENTS: [Accident; 19] = [
    Accident::ListenerError,
    Accident::PoolError,
    Accident::MemberError,
    Accident::MemberOnWrongSubnet,
    Accident::MonitorError,
    Accident::ListenerLosesPool,
    Accident::PoolGone,
    Accident::ListenerGone,
    Accident::MonitorGone,
    Accident::MembersGone,
    Accident::SharedPool,
    Accident::Untagged,
    Accident::ForeignListener,
    Accident::ForeignPoolOnOwnListener,
    Accident::ForeignPool,
    Accident::Broken,
    Accident::FloatingIpGone,
    Accident::FloatingIpDetached,
    Accident::FloatingIpForeign,
];

pub(super) fn accidents() -> impl Strategy<Value = Vec<(Accident, usize)>> {
    vec((select(ACCIDENTS.to_vec()), 0..5_usize), 0..4)
}

/// The element that an accident meets.
fn pick<T>(items: &mut [T], which: usize) -> Option<&mut T> {
    let count = items.len();
    items.get_mut(which.checked_rem(count)?)
}

pub(super) fn happen(cloud: &mut Cloud, accident: Accident, which: usize) {
    if cloud.observed.load_balancer.is_none() {
        return;
    }
    match accident {
        Accident::Broken => {
            cloud.load_balancer().status = ProvisioningStatus::Error;
            cloud.load_balancer().operating = OperatingStatus::Error;
        }
        Accident::Untagged => untag(cloud),
        Accident::FloatingIpGone => drop(cloud.observed.floating_ips.pop()),
        Accident::FloatingIpDetached => {
            cloud.observed.floating_ips.iter_mut().for_each(|floating_ip| floating_ip.port_id = None);
        }
        Accident::FloatingIpForeign => {
            cloud.observed.floating_ips.iter_mut().for_each(|floating_ip| floating_ip.ours = false);
        }
        Accident::ListenerError
        | Accident::ListenerLosesPool
        | Accident::ListenerGone
        | Accident::ForeignListener
        | Accident::ForeignPoolOnOwnListener
        | Accident::SharedPool => happen_to_listener(cloud.children(), accident, which),
        Accident::PoolError
        | Accident::MemberError
        | Accident::MemberOnWrongSubnet
        | Accident::MonitorError
        | Accident::PoolGone
        | Accident::MonitorGone
        | Accident::MembersGone
        | Accident::ForeignPool => happen_to_pool(cloud.children(), accident, which),
    }
}

fn untag(cloud: &mut Cloud) {
    cloud.load_balancer().tags.clear();
    for pool in cloud.children().pools.iter_mut().filter(|pool| pool.ours) {
        // Without the tag which records that something was set here it stays for good.
        pool.tags.retain(|tag| tag.starts_with("openstack-ccm-sets="));
        pool.monitor.iter_mut().for_each(|monitor| monitor.tags.clear());
    }
    cloud.observed.floating_ips.iter_mut().for_each(|floating_ip| floating_ip.tags.clear());
}

fn happen_to_listener(children: &mut Children, accident: Accident, which: usize) {
    let pools: Vec<String> = children.pools.iter().map(|pool| pool.id.clone()).collect();
    let Some(listener) = pick(&mut children.listeners, which).filter(|listener| listener.ours) else {
        return;
    };
    let mut uses = listener.default_pool_id.clone();
    match accident {
        Accident::ListenerError => listener.status = ProvisioningStatus::Error,
        Accident::ListenerLosesPool => uses = None,
        Accident::SharedPool => uses = pools.get(which).cloned().or(uses),
        Accident::ForeignListener => listener.ours = false,
        _ => {}
    }
    let (id, protocol) = (listener.id.clone(), listener.protocol.clone());
    if let Accident::ForeignPoolOnOwnListener = accident {
        let used = children.pools.iter_mut().find(|pool| Some(&pool.id) == uses.as_ref());
        used.into_iter().for_each(|pool| pool.ours = false);
    }
    // A shared pool has to be one that the listener could really have.
    let twin = children.listeners.iter().find(|other| other.default_pool_id == uses && other.id != id);
    if twin.is_some_and(|twin| twin.protocol != protocol || !twin.ours) {
        return;
    }
    let fits = accident != Accident::SharedPool || twin.is_some();
    if fits {
        relink(children, &id, uses.as_ref());
    }
    if let Accident::ListenerGone = accident {
        relink(children, &id, None);
        children.listeners.retain(|listener| listener.id != id);
    }
}

fn relink(children: &mut Children, listener_id: &str, pool_id: Option<&String>) {
    for pool in &mut children.pools {
        pool.used_by.remove(listener_id);
        if Some(&pool.id) == pool_id {
            pool.used_by.insert(listener_id.to_owned());
        }
    }
    let listener = children.listeners.iter_mut().find(|listener| listener.id == listener_id);
    listener.into_iter().for_each(|listener| listener.default_pool_id = pool_id.cloned());
}

fn happen_to_pool(children: &mut Children, accident: Accident, which: usize) {
    let Some(pool) = pick(&mut children.pools, which).filter(|pool| pool.ours) else { return };
    match accident {
        Accident::PoolError => pool.status = ProvisioningStatus::Error,
        Accident::MonitorError => {
            pool.monitor.iter_mut().for_each(|monitor| monitor.status = ProvisioningStatus::Error);
        }
        Accident::MonitorGone => pool.monitor = None,
        Accident::MembersGone => pool.members.clear(),
        Accident::MemberError | Accident::MemberOnWrongSubnet => {
            if let Some(member) = pick(&mut pool.members, which) {
                member.status = ProvisioningStatus::Error;
                if let Accident::MemberOnWrongSubnet = accident {
                    Arc::make_mut(&mut member.member).subnet_id = Some("unknown".into());
                }
            }
        }
        Accident::ForeignPool => {
            let mut foreign = pool.clone();
            foreign.id = format!("foreign-{}", foreign.id);
            foreign.ours = false;
            foreign.used_by.clear();
            if children.pools.iter().all(|pool| pool.id != foreign.id) {
                children.pools.push(foreign);
            }
        }
        Accident::PoolGone => {
            let id = pool.id.clone();
            let users: Vec<String> = pool.used_by.iter().cloned().collect();
            let own = |user: &String| children.listeners.iter().any(|one| one.ours && one.id == *user);
            if users.iter().all(own) {
                users.iter().for_each(|user| relink(children, user, None));
                children.pools.retain(|pool| pool.id != id);
            }
        }
        _ => {}
    }
}
