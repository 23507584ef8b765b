//! Finishing accepted work: what the worker does to the world when it succeeds, and what it leaves when it fails.

use std::time::Duration;

use http::Method;

use super::capacity::{Capacity, JobId, Threads, Workload};
use super::kind::ObjectKind;
use super::{ovn, status, vip};
use crate::faults::WorkerFaults;
use crate::neutron;
use crate::neutron::ports::Wanted;
use crate::request::Request;
use crate::service::Service;
use crate::world::World;
use crate::world::load_balancing::{Entity, Operating, Provisioning};
use crate::world::operation::{Operation, OperationKind, Outcome};

impl World {
    /// Finishes all work that is due and that nothing holds. Returns whether anything changed.
    pub(crate) fn run_worker(&mut self, faults: &mut WorkerFaults) -> bool {
        let mut changed = self.work_off();
        while let Some(operation) = self.take_ready(faults) {
            let names = operation_names(self, &operation);
            let failed = faults.fails(operation.kind, &names) || must_fail(self, &operation);
            let outcome = if failed { Outcome::Failed } else { Outcome::Done };
            finish(self, &operation, outcome);
            status::refresh(&mut self.load_balancing, &operation.load_balancer_id);
            changed = true;
        }
        changed
    }

    fn take_ready(&mut self, faults: &WorkerFaults) -> Option<Operation> {
        let now = self.now();
        let ready = self.load_balancing.operations.iter().position(|operation| {
            operation.job.is_none()
                && operation.due <= now
                && !faults.holds(operation.kind, &operation_names(self, operation))
        })?;
        Some(self.load_balancing.operations.remove(ready))
    }

    /// When the next work will be finished, if time is all that it waits for.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let workload = self.load_balancing.workload.as_ref().and_then(Workload::next_end);
        let waiting = self.load_balancing.operations.iter().filter(|operation| operation.job.is_none());
        waiting.map(|operation| operation.due).chain(workload).min()
    }

    /// Does the work that fits into the time. Returns whether something ended.
    fn work_off(&mut self) -> bool {
        let now = self.now();
        let ended = self.load_balancing.workload.as_mut().map(|workload| workload.work(now));
        let ended = ended.unwrap_or_default();
        for operation in &mut self.load_balancing.operations {
            if let Some((_, at)) = ended.iter().find(|(id, _)| operation.job == Some(*id)) {
                (operation.job, operation.due) = (None, *at);
            }
        }
        !ended.is_empty()
    }

    /// Octavia has so much capacity from now on; without a bound it does everything at once.
    pub(crate) fn set_capacity(&mut self, capacity: Option<Capacity>) {
        let now = self.now();
        self.load_balancing.workload = capacity.map(|capacity| Workload::new(capacity, now));
        // What was begun under another bound is not held up.
        self.load_balancing.operations.iter_mut().for_each(|operation| operation.job = None);
    }

    /// Begins the work of a request that takes the API long, before it is answered: the creation of a load balancer, whose port
    /// Neutron makes meanwhile.
    pub(crate) fn begin_request(&mut self, request: &Request) -> Option<JobId> {
        let creates = request.service == Service::LoadBalancer
            && request.method == Method::POST
            && request.path.ends_with("/loadbalancers");
        let workload = self.load_balancing.workload.as_mut().filter(|_| creates)?;
        Some(workload.begin(Threads::Api, workload.capacity().creation_request))
    }

    /// The time after which to look again whether the work of a request is done; absent when it is.
    pub(crate) fn request_rests(&self, job: JobId) -> Option<Duration> {
        let workload = self.load_balancing.workload.as_ref().filter(|workload| workload.is_under_way(job))?;
        Some(workload.next_end()?.saturating_sub(self.now()))
    }

    /// Makes all unfinished work due at once.
    pub(crate) fn hurry(&mut self) {
        let now = self.now();
        for operation in &mut self.load_balancing.operations {
            operation.due = now;
            operation.job = None;
        }
    }
}

/// What a rule can call an operation by: ids of the load balancer and of the object, and their names.
fn operation_names(world: &World, operation: &Operation) -> Vec<String> {
    let state = &world.load_balancing;
    let mut names = vec![operation.load_balancer_id.clone(), operation.target_id.clone()];
    let entities = [
        state.load_balancers.get(&operation.load_balancer_id).map(|one| &one.entity),
        state.listeners.get(&operation.target_id).map(|one| &one.entity),
        state.pools.get(&operation.target_id).map(|one| &one.entity),
        state.members.get(&operation.target_id).map(|one| &one.entity),
        state.health_monitors.get(&operation.target_id).map(|one| &one.entity),
    ];
    names.extend(entities.into_iter().flatten().map(|entity| entity.text("name").to_owned()));
    names
}

/// What the API accepts and the worker cannot do: members in subnets that do not exist, two load balancers on one port.
fn must_fail(world: &World, operation: &Operation) -> bool {
    let state = &world.load_balancing;
    let bad_member = |pool_id: &str| {
        state.members_of(pool_id).into_iter().any(|member| {
            let subnet = member.entity.text("subnet_id");
            member.entity.provisioning != Provisioning::PendingDelete
                && !subnet.is_empty()
                && !world.network.subnets.contains_key(subnet)
        })
    };
    match operation.kind {
        OperationKind::LoadBalancerCreate => {
            let pools = state.pools_of(&operation.target_id);
            pools.into_iter().any(|pool| bad_member(&pool.entity.id))
                || port_is_taken(world, &operation.target_id)
        }
        OperationKind::MemberBatch => bad_member(&operation.target_id),
        OperationKind::LoadBalancerUpdate
        | OperationKind::LoadBalancerDelete
        | OperationKind::LoadBalancerFailover
        | OperationKind::ListenerCreate
        | OperationKind::ListenerUpdate
        | OperationKind::ListenerDelete
        | OperationKind::PoolCreate
        | OperationKind::PoolUpdate
        | OperationKind::PoolDelete
        | OperationKind::MemberCreate
        | OperationKind::MemberUpdate
        | OperationKind::MemberDelete
        | OperationKind::HealthMonitorCreate
        | OperationKind::HealthMonitorUpdate
        | OperationKind::HealthMonitorDelete => false,
    }
}

fn port_is_taken(world: &World, load_balancer_id: &str) -> bool {
    let lbs = &world.load_balancing.load_balancers;
    let Some(lb) = lbs.get(load_balancer_id) else { return true };
    lbs.values().any(|other| {
        other.entity.id != load_balancer_id && other.vip.port_id == lb.vip.port_id && other.built
    })
}

fn finish(world: &mut World, operation: &Operation, outcome: Outcome) {
    let target = &operation.target_id;
    let lb_id = &operation.load_balancer_id;
    match operation.kind {
        OperationKind::LoadBalancerCreate => finish_create(world, lb_id, outcome),
        OperationKind::LoadBalancerUpdate => finish_update(world, lb_id, outcome),
        OperationKind::LoadBalancerDelete => finish_delete(world, lb_id, outcome),
        OperationKind::LoadBalancerFailover => finish_failover(world, lb_id, outcome),
        OperationKind::ListenerCreate | OperationKind::ListenerUpdate => {
            settle(world, ObjectKind::Listener, target, outcome);
        }
        OperationKind::ListenerDelete => {
            if outcome == Outcome::Done {
                world.load_balancing.listeners.remove(target);
            } else {
                settle(world, ObjectKind::Listener, target, outcome);
            }
        }
        OperationKind::PoolCreate | OperationKind::PoolUpdate => {
            settle(world, ObjectKind::Pool, target, outcome);
            settle_listeners_of(world, target);
        }
        OperationKind::PoolDelete => {
            settle_listeners_of(world, target);
            if outcome == Outcome::Done {
                world.load_balancing.remove_pool(target);
            } else {
                settle(world, ObjectKind::Pool, target, outcome);
            }
        }
        OperationKind::MemberBatch => finish_batch(world, target, outcome),
        OperationKind::MemberCreate | OperationKind::MemberUpdate | OperationKind::MemberDelete => {
            finish_member(world, operation, outcome);
        }
        OperationKind::HealthMonitorCreate
        | OperationKind::HealthMonitorUpdate
        | OperationKind::HealthMonitorDelete => {
            finish_monitor(world, operation, outcome);
        }
    }
    unlock(world, lb_id);
}

/// A failed change of a child leaves the load balancer ACTIVE: only the child's status shows it.
fn unlock(world: &mut World, lb_id: &str) {
    let now = world.plain_time();
    if let Some(lb) = world.load_balancing.load_balancers.get_mut(lb_id)
        && lb.entity.provisioning == Provisioning::PendingUpdate
    {
        lb.entity.set_provisioning(Provisioning::Active, &now);
    }
}

fn result(outcome: Outcome) -> Provisioning {
    match outcome {
        Outcome::Done => Provisioning::Active,
        Outcome::Failed => Provisioning::Error,
    }
}

fn entity_mut<'a>(world: &'a mut World, kind: ObjectKind, id: &str) -> Option<&'a mut Entity> {
    let state = &mut world.load_balancing;
    match kind {
        ObjectKind::LoadBalancer => state.load_balancers.get_mut(id).map(|one| &mut one.entity),
        ObjectKind::Listener => state.listeners.get_mut(id).map(|one| &mut one.entity),
        ObjectKind::Pool => state.pools.get_mut(id).map(|one| &mut one.entity),
        ObjectKind::Member => state.members.get_mut(id).map(|one| &mut one.entity),
        ObjectKind::HealthMonitor => state.health_monitors.get_mut(id).map(|one| &mut one.entity),
    }
}

pub(super) fn settle(world: &mut World, kind: ObjectKind, id: &str, outcome: Outcome) {
    let now = world.plain_time();
    if let Some(entity) = entity_mut(world, kind, id) {
        entity.set_provisioning(result(outcome), &now);
    }
}

pub(super) fn settle_listeners_of(world: &mut World, pool_id: &str) {
    let listeners: Vec<String> =
        world.load_balancing.listeners_using(pool_id).into_iter().map(|one| one.entity.id.clone()).collect();
    for id in listeners {
        settle(world, ObjectKind::Listener, &id, Outcome::Done);
    }
}

fn settle_pool_and_listeners(world: &mut World, pool_id: &str) {
    settle(world, ObjectKind::Pool, pool_id, Outcome::Done);
    settle_listeners_of(world, pool_id);
}

fn finish_create(world: &mut World, lb_id: &str, outcome: Outcome) {
    settle(world, ObjectKind::LoadBalancer, lb_id, outcome);
    if outcome == Outcome::Done {
        bring_up(world, lb_id);
        return;
    }
    // The flow's revert gives a port that Octavia made back, and leaves a user's own with the group that it was given. The
    // children keep PENDING_CREATE for ever.
    let owns = world.load_balancing.load_balancers.get(lb_id).is_some_and(|lb| lb.owns_vip_port);
    if owns {
        release_vip_port(world, lb_id);
    } else {
        plug_security_group(world, lb_id);
    }
}

/// Marks the whole tree ACTIVE.
fn bring_up(world: &mut World, lb_id: &str) {
    let now = world.plain_time();
    for entity in world.load_balancing.children_mut(lb_id) {
        entity.set_provisioning(Provisioning::Active, &now);
    }
    if let Some(lb) = world.load_balancing.load_balancers.get_mut(lb_id) {
        lb.built = true;
    }
    plug_security_group(world, lb_id);
}

/// Puts Octavia's security group on the VIP port, beside the user's own choice.
fn plug_security_group(world: &mut World, lb_id: &str) {
    let Some(lb) = world.load_balancing.load_balancers.get(lb_id) else { return };
    let (port_id, present) = (lb.vip.port_id.clone(), lb.security_group_id.clone());
    let chosen = lb.entity.attributes.get("vip_sg_ids").and_then(serde_json::Value::as_array).cloned();
    let group = present.unwrap_or_else(|| neutron::security_groups::create_for_load_balancer(world, lb_id));
    if let Some(lb) = world.load_balancing.load_balancers.get_mut(lb_id) {
        lb.security_group_id = Some(group.clone());
    }
    let mut groups = vec![group];
    groups.extend(chosen.iter().flatten().filter_map(serde_json::Value::as_str).map(str::to_owned));
    neutron::ports::set_security_groups(world, &port_id, groups);
}

fn finish_update(world: &mut World, lb_id: &str, outcome: Outcome) {
    settle(world, ObjectKind::LoadBalancer, lb_id, outcome);
    if outcome == Outcome::Done {
        plug_security_group(world, lb_id);
    } else {
        let listeners: Vec<String> =
            world.load_balancing.listeners_of(lb_id).into_iter().map(|one| one.entity.id.clone()).collect();
        for id in listeners {
            settle(world, ObjectKind::Listener, &id, Outcome::Failed);
        }
    }
}

fn finish_delete(world: &mut World, lb_id: &str, outcome: Outcome) {
    if outcome == Outcome::Failed {
        settle(world, ObjectKind::LoadBalancer, lb_id, outcome);
        return;
    }
    release_vip_port(world, lb_id);
    let state = &mut world.load_balancing;
    let pools: Vec<String> = state.pools_of(lb_id).into_iter().map(|pool| pool.entity.id.clone()).collect();
    for pool in pools {
        state.remove_pool(&pool);
    }
    state.listeners.retain(|_, listener| listener.load_balancer_id != lb_id);
    let removed = state.load_balancers.remove(lb_id);
    if let Some(group) = removed.and_then(|lb| lb.security_group_id) {
        neutron::security_groups::remove_unused(world, &group);
    }
}

fn release_vip_port(world: &mut World, lb_id: &str) {
    let Some(lb) = world.load_balancing.load_balancers.get(lb_id) else { return };
    let (port_id, owns, group) = (lb.vip.port_id.clone(), lb.owns_vip_port, lb.security_group_id.clone());
    if owns {
        neutron::ports::remove(world, &port_id);
    } else if let Some(group) = group {
        neutron::ports::drop_security_group(world, &port_id, &group);
    }
}

/// A failover builds everything anew, a lost VIP port included: it heals what no other call can.
fn finish_failover(world: &mut World, lb_id: &str, outcome: Outcome) {
    settle(world, ObjectKind::LoadBalancer, lb_id, outcome);
    if outcome == Outcome::Failed {
        return;
    }
    let Some(lb) = world.load_balancing.load_balancers.get(lb_id).cloned() else { return };
    if lb.owns_vip_port && !world.network.ports.contains_key(&lb.vip.port_id) {
        let mut wanted = vec![Wanted { subnet_id: Some(lb.vip.subnet_id), ip_address: Some(lb.vip.address) }];
        wanted.extend(
            lb.additional_vips
                .into_iter()
                .map(|(subnet, address)| Wanted { subnet_id: Some(subnet), ip_address: Some(address) }),
        );
        let port = vip::vip_port(&lb.entity, &lb.vip.network_id, wanted);
        match neutron::ports::create(world, port) {
            Ok(port_id) => {
                if let Some(lb) = world.load_balancing.load_balancers.get_mut(lb_id) {
                    lb.vip.port_id = port_id;
                }
            }
            Err(_) => {
                settle(world, ObjectKind::LoadBalancer, lb_id, Outcome::Failed);
                return;
            }
        }
    }
    bring_up(world, lb_id);
}

fn finish_batch(world: &mut World, pool_id: &str, outcome: Outcome) {
    let now = world.plain_time();
    let is_ovn = ovn::has_pool(world, pool_id);
    let members = &mut world.load_balancing.members;
    members.retain_in(pool_id, |member| member.entity.provisioning != Provisioning::PendingDelete);
    for member in members.of_mut(pool_id) {
        // With amphora a failed batch marks every member of the pool, those that it did not name too. The driver ovn makes a request of each
        // member that is named (`member_batch_update` in `driver.py`).
        let is_named = member.entity.provisioning != Provisioning::Active;
        if is_named || !is_ovn {
            member.entity.set_provisioning(result(outcome), &now);
        }
    }
    settle_pool_and_listeners(world, pool_id);
}

fn finish_member(world: &mut World, operation: &Operation, outcome: Outcome) {
    let id = &operation.target_id;
    let Some(pool_id) = world.load_balancing.members.get(id).map(|member| member.pool_id.clone()) else {
        return;
    };
    if operation.kind == OperationKind::MemberDelete && outcome == Outcome::Done {
        world.load_balancing.members.remove(id);
    } else {
        settle(world, ObjectKind::Member, id, outcome);
    }
    settle_pool_and_listeners(world, &pool_id);
}

fn finish_monitor(world: &mut World, operation: &Operation, outcome: Outcome) {
    let id = &operation.target_id;
    let found = world.load_balancing.health_monitors.get(id).map(|monitor| monitor.pool_id.clone());
    let Some(pool_id) = found else { return };
    if operation.kind == OperationKind::HealthMonitorDelete && outcome == Outcome::Done {
        world.load_balancing.health_monitors.remove(id);
        for member in world.load_balancing.members.of_mut(&pool_id) {
            member.entity.operating = Operating::NoMonitor;
        }
    } else {
        settle(world, ObjectKind::HealthMonitor, id, outcome);
    }
    settle_pool_and_listeners(world, &pool_id);
}
