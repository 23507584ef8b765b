//! Computes what exists after Octavia or Neutron has done a step. Pure.
//!
//! While a plan is under way, each accepted step is applied to what was read, so that the rest of the plan follows without reading
//! everything after every step. A look confirms the result before anything relies on it: see
//! [`crate::load_balancer::known::looks`].

mod attributes;

use std::collections::BTreeSet;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{CreatedLoadBalancer, ProvisioningStatus};

use crate::load_balancer::objects::step::Answer;
use crate::load_balancer::objects::step::{
    FloatingIpStep, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step,
};
use crate::load_balancer::objects::{
    Children, ListenerSpec, Member, MonitorSpec, Observed, ObservedFloatingIp, ObservedListener,
    ObservedLoadBalancer, ObservedMember, ObservedMonitor, ObservedPool, Ownership, PoolSpec, convert,
};
use attributes::{update_listener, update_load_balancer, update_monitor, update_pool};

/// Applies an accepted step. `None` where its answer does not say what exists now: everything has to be read.
pub(crate) fn advance(observed: &mut Observed, step: &Step, answer: &Answer) -> Option<()> {
    let made = match answer {
        Answer::Child(id) => Some(id.as_str()),
        Answer::LoadBalancer(_) | Answer::Nothing => None,
    };
    match step {
        Step::FloatingIp(step) => return floating_ip(&mut observed.floating_ips, step),
        Step::LoadBalancer(LoadBalancerStep::Create { .. }) => {
            let Answer::LoadBalancer(made) = answer else { return None };
            observed.load_balancer = Some(created(made)?);
            return Some(());
        }
        Step::LoadBalancer(LoadBalancerStep::Delete { .. } | LoadBalancerStep::Failover { .. }) => {
            return None;
        }
        Step::LoadBalancer(LoadBalancerStep::Update { changes, id: _ }) => {
            update_load_balancer(observed.load_balancer.as_mut()?, changes);
            return Some(());
        }
        Step::Listener(_) | Step::Pool(_) | Step::Member(_) | Step::Monitor(_) => {}
    }
    let children = observed.load_balancer.as_mut()?.children.as_mut()?;
    match step {
        Step::Listener(step) => listener(children, step, made),
        Step::Pool(step) => pool(children, step, made),
        Step::Member(step) => member(children, step),
        Step::Monitor(step) => monitor(children, step, made),
        Step::LoadBalancer(_) | Step::FloatingIp(_) => None,
    }
}

/// Returns a load balancer that was created with all its children, as it will be when Octavia has built it.
fn created(made: &CreatedLoadBalancer) -> Option<ObservedLoadBalancer> {
    let CreatedLoadBalancer { load_balancer, tree } = made;
    if load_balancer.vip_address.is_none() || load_balancer.vip_port_id.is_none() {
        return None;
    }
    let tree = tree.as_ref()?;
    let there = convert::load_balancer(load_balancer.clone(), Ownership::Sole, None).ok()?;
    let listeners = tree.listeners.iter().map(|listener| convert::listener(listener.clone(), true));
    let pools = tree.pools.iter().map(|pool| convert::created_pool(pool.clone()));
    let mut children = Children {
        listeners: listeners.collect::<Result<_, _>>().ok()?,
        pools: pools.collect::<Result<_, _>>().ok()?,
    };
    children.count_as_active();
    Some(ObservedLoadBalancer { status: ProvisioningStatus::Active, children: Some(children), ..there })
}

impl Children {
    /// Marks everything ACTIVE, since Octavia is expected to finish its work.
    fn count_as_active(&mut self) {
        self.listeners.iter_mut().for_each(|listener| listener.status = ProvisioningStatus::Active);
        for pool in &mut self.pools {
            pool.status = ProvisioningStatus::Active;
            pool.members.iter_mut().for_each(|member| member.status = ProvisioningStatus::Active);
            pool.monitor.iter_mut().for_each(|monitor| monitor.status = ProvisioningStatus::Active);
        }
    }

    fn listener(&mut self, id: &str) -> Option<&mut ObservedListener> {
        self.listeners.iter_mut().find(|listener| listener.id == id)
    }

    fn pool(&mut self, id: &str) -> Option<&mut ObservedPool> {
        self.pools.iter_mut().find(|pool| pool.id == id)
    }

    /// Gives the listener another default pool.
    pub(crate) fn set_default_pool(&mut self, listener_id: &str, pool: &Handle) -> Option<()> {
        let id = pool.id()?;
        self.pool(id)?;
        let listener = self.listener(listener_id)?;
        let before = listener.default_pool_id.replace(id.to_owned());
        listener.status = ProvisioningStatus::Active;
        for pool in self.pools.iter_mut().filter(|pool| Some(&pool.id) == before.as_ref()) {
            pool.used_by.remove(listener_id);
        }
        self.pool(id)?.used_by.insert(listener_id.to_owned());
        Some(())
    }
}

fn listener(children: &mut Children, step: &ListenerStep, made: Option<&str>) -> Option<()> {
    match step {
        ListenerStep::Create { listener, default_pool, load_balancer_id: _ } => {
            let id = made?;
            children.listeners.push(new_listener(id, listener));
            if let Some(pool) = default_pool {
                children.set_default_pool(id, pool)?;
            }
        }
        ListenerStep::Update { id, changes, key: _ } => {
            update_listener(children.listener(id)?, changes);
        }
        ListenerStep::SwapDefaultPool { listener_id, pool, key: _ } => {
            children.set_default_pool(listener_id, pool)?;
        }
        ListenerStep::Delete { id, key: _ } => {
            children.listeners.retain(|listener| listener.id != *id);
            children.pools.iter_mut().for_each(|pool| {
                pool.used_by.remove(id);
            });
        }
    }
    Some(())
}

/// Returns a listener as it is right after its creation, without a pool.
pub(crate) fn new_listener(id: &str, spec: &ListenerSpec) -> ObservedListener {
    ObservedListener {
        id: id.to_owned(),
        name: spec.name.clone(),
        ours: true,
        status: ProvisioningStatus::Active,
        protocol: spec.protocol.clone(),
        port: spec.port,
        default_pool_id: None,
        has_policies: false,
        attributes: spec.attributes.clone(),
        tags: spec.tags.clone(),
    }
}

fn pool(children: &mut Children, step: &PoolStep, made: Option<&str>) -> Option<()> {
    match step {
        PoolStep::Create { pool, load_balancer_id: _ } => children.pools.push(new_pool(made?, pool)),
        PoolStep::Update { id, changes } => update_pool(children.pool(id)?, changes),
        PoolStep::Delete { id, name: _ } => {
            children.pools.retain(|pool| pool.id != *id);
            for listener in &mut children.listeners {
                listener.default_pool_id.take_if(|default| default == id);
            }
        }
    }
    Some(())
}

/// Returns a pool as it is right after its creation.
pub(crate) fn new_pool(id: &str, spec: &PoolSpec) -> ObservedPool {
    ObservedPool {
        id: id.to_owned(),
        name: spec.name.clone(),
        ours: true,
        status: ProvisioningStatus::Active,
        admin_state_up: true,
        protocol: spec.protocol.clone(),
        attributes: spec.attributes.clone(),
        tags: spec.tags.clone(),
        used_by: BTreeSet::new(),
        members: Vec::new(),
        members_from_status: false,
        monitor: None,
    }
}

fn member(children: &mut Children, step: &MemberStep) -> Option<()> {
    match step {
        MemberStep::ReplaceAll { pool, members } => {
            let pool = children.pool(pool.id()?)?;
            let before = std::mem::take(&mut pool.members);
            pool.members = members.iter().map(|member| put(&before, member)).collect();
            pool.members_from_status = false;
        }
        MemberStep::Add { pool, members } => {
            let pool = children.pool(pool.id()?)?;
            pool.members.extend(members.iter().map(|member| put(&[], member)));
            // Octavia sets this status on all members of the pool after a successful batch.
            pool.members.iter_mut().for_each(|member| member.status = ProvisioningStatus::Active);
        }
        MemberStep::Create { pool, member } => children.pool(pool.id()?)?.members.push(put(&[], member)),
        MemberStep::Update { pool_id, id, member } => {
            let mut members = children.pool(pool_id)?.members.iter_mut();
            let updated = members.find(|known| known.id == *id)?;
            updated.member = Arc::clone(member);
            updated.status = ProvisioningStatus::Active;
        }
        MemberStep::Delete { pool_id, id, name: _ } => {
            children.pool(pool_id)?.members.retain(|member| member.id != *id);
        }
    }
    Some(())
}

/// Returns a member after a batch that names it. It keeps a known id; a new member has none until the members are read.
fn put(before: &[ObservedMember], member: &Arc<Member>) -> ObservedMember {
    let id = before.iter().find(|one| one.key() == member.key()).map(|one| one.id.clone());
    ObservedMember {
        id: id.unwrap_or_default(),
        status: ProvisioningStatus::Active,
        member: Arc::clone(member),
    }
}

fn monitor(children: &mut Children, step: &MonitorStep, made: Option<&str>) -> Option<()> {
    match step {
        MonitorStep::Create { pool, monitor } => {
            children.pool(pool.id()?)?.monitor = Some(new_monitor(made?, monitor));
        }
        MonitorStep::Update { id, pool_id, changes } => {
            let monitor = children.pool(pool_id)?.monitor.as_mut().filter(|monitor| monitor.id == *id)?;
            update_monitor(monitor, changes);
        }
        MonitorStep::Delete { id, pool_id } => {
            children.pool(pool_id)?.monitor.take_if(|monitor| monitor.id == *id);
        }
    }
    Some(())
}

/// Returns a monitor as it is right after its creation.
pub(crate) fn new_monitor(id: &str, spec: &MonitorSpec) -> ObservedMonitor {
    ObservedMonitor {
        id: id.to_owned(),
        name: spec.name.clone(),
        status: ProvisioningStatus::Active,
        kind: spec.kind.clone(),
        attributes: spec.attributes.clone(),
        tags: spec.tags.clone(),
    }
}

/// Applies a step on a floating IP. The caller adds a created one, with the id and the address in Neutron's answer.
fn floating_ip(floating_ips: &mut Vec<ObservedFloatingIp>, step: &FloatingIpStep) -> Option<()> {
    let find = |floating_ips: &mut Vec<ObservedFloatingIp>, id: &str| {
        floating_ips.iter().position(|one| one.id == id)
    };
    match step {
        FloatingIpStep::Create { .. } => {}
        FloatingIpStep::Attach { id, port, instead_of, address: _, vip: _ } => {
            let former = instead_of.as_ref().and_then(|former| find(floating_ips, &former.id));
            if let Some(former) = former.and_then(|place| floating_ips.get_mut(place)) {
                former.port_id = None;
            }
            let place = find(floating_ips, id)?;
            floating_ips.get_mut(place)?.port_id = Some(port.id()?.to_owned());
        }
        FloatingIpStep::Detach { id, address: _ } => {
            let place = find(floating_ips, id)?;
            floating_ips.get_mut(place)?.port_id = None;
        }
        FloatingIpStep::Tag { id, tags, description: _, port_id: _ } => {
            let place = find(floating_ips, id)?;
            floating_ips.get_mut(place)?.tags.clone_from(tags);
        }
        FloatingIpStep::Delete { id, address: _ } => floating_ips.retain(|one| one.id != *id),
    }
    Some(())
}
