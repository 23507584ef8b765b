//! A model of Octavia and Neutron that applies steps to an observation, and panics where the real ones would refuse.

mod neutron;

use std::collections::BTreeSet;
use std::sync::Arc;

use openstack_ccm_openstack_api::octavia::{
    ListenerProtocol, OperatingStatus, PoolProtocol, ProvisioningStatus,
};

use crate::load_balancer::known::advance::{advance, new_listener, new_monitor, new_pool};
use crate::load_balancer::objects::observed::MadeWith;
use crate::load_balancer::objects::step::Answer;
use crate::load_balancer::objects::step::{
    Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step,
};
use crate::load_balancer::objects::{
    Children, Desired, DesiredListener, ListenerSpec, LoadBalancerSpec, Member, MemberKey, MonitorSpec,
    Observed, ObservedListener, ObservedLoadBalancer, ObservedMember, ObservedMonitor, ObservedPool,
    Ownership, PoolSpec, ReleaseTerms,
};
use crate::load_balancer::plan::{self, Plan, Then};

/// More reconciliations than any change of the test states takes.
const BOUND: usize = 200;

/// The state of the cloud, as one Service sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cloud {
    pub(crate) observed: Observed,
    made: u32,
}

impl Cloud {
    /// A cloud in which a Service is served.
    pub(crate) fn serving(desired: &Desired) -> Self {
        let mut cloud = Self::default();
        cloud.converge(desired, |_| {});
        cloud
    }

    pub(crate) fn load_balancer(&mut self) -> &mut ObservedLoadBalancer {
        self.observed.load_balancer.as_mut().expect("there is a load balancer")
    }

    pub(crate) fn children(&mut self) -> &mut Children {
        self.load_balancer().children.as_mut().expect("the children are known")
    }

    /// Reconciles until the plan is empty. `look` sees the state after every single step.
    pub(crate) fn converge(&mut self, desired: &Desired, mut look: impl FnMut(&Observed)) -> Plan {
        self.run(|observed| plan::serve(desired, observed), &mut look)
    }

    /// Reconciles until nothing of the Service is left.
    pub(crate) fn release(&mut self, terms: &ReleaseTerms) -> Plan {
        self.run(|observed| plan::release(terms, observed), &mut |_| {})
    }

    fn run(&mut self, plan: impl Fn(&Observed) -> Plan, look: &mut dyn FnMut(&Observed)) -> Plan {
        let mut repaired = None;
        for _ in 0..BOUND {
            let plan = plan(&self.observed);
            let ends = plan.then == Then::Done || matches!(plan.then, Then::Blocked(_) | Then::Held(_));
            let mut next = plan.steps.first().cloned();
            if plan.repairs.contains(&0) && std::mem::replace(&mut repaired, next.clone()) == next {
                // A repair that did not help rests, and lets others go first.
                next = plan.without_repairs().steps.first().cloned().or(next);
            }
            // One step, then a new plan: as if the process died after each.
            match &next {
                Some(step) => self.apply(step),
                None if ends => return plan,
                None => {}
            }
            look(&self.observed);
            self.finish_pending();
            look(&self.observed);
        }
        panic!("no end after {BOUND} reconciliations; still planned:\n{}", plan(&self.observed));
    }

    /// Octavia finishes what it is doing.
    pub(crate) fn finish_pending(&mut self) {
        let Some(load_balancer) = &mut self.observed.load_balancer else { return };
        match load_balancer.status {
            ProvisioningStatus::PendingDelete => {
                let port = load_balancer.vip_port_id.take();
                for floating_ip in self.observed.floating_ips.iter_mut().filter(|one| one.port_id == port) {
                    floating_ip.port_id = None;
                }
                self.observed.load_balancer = None;
            }
            ProvisioningStatus::PendingCreate | ProvisioningStatus::PendingUpdate => {
                load_balancer.status = ProvisioningStatus::Active;
            }
            ProvisioningStatus::Active
            | ProvisioningStatus::Error
            | ProvisioningStatus::Deleted
            | ProvisioningStatus::Other(_) => {}
        }
    }

    fn id(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}-{}", self.made)
    }

    fn lock(&mut self) {
        let load_balancer = self.load_balancer();
        assert_eq!(load_balancer.status, ProvisioningStatus::Active, "409: the load balancer is immutable");
        load_balancer.status = ProvisioningStatus::PendingUpdate;
    }

    /// Does what one call does.
    pub(crate) fn apply(&mut self, step: &Step) {
        assert!(step.is_applicable(), "the step needs an object that does not exist yet: {step}");
        match step {
            Step::LoadBalancer(LoadBalancerStep::Create { load_balancer, listeners }) => {
                self.create_tree(load_balancer, listeners);
            }
            Step::LoadBalancer(LoadBalancerStep::Update { id, .. }) => {
                self.lock();
                assert_eq!(self.load_balancer().id, *id);
                self.advance(step, "");
            }
            Step::LoadBalancer(LoadBalancerStep::Failover { id }) => {
                let load_balancer = self.load_balancer();
                assert_eq!(load_balancer.id, *id);
                assert!(!load_balancer.status.is_pending(), "409: the load balancer is immutable");
                load_balancer.status = ProvisioningStatus::PendingUpdate;
            }
            Step::LoadBalancer(LoadBalancerStep::Delete { id, cascade }) => {
                self.delete_load_balancer(id, *cascade);
            }
            Step::Listener(ListenerStep::Create { listener, default_pool, .. }) => {
                self.lock();
                self.create_listener(listener, default_pool.as_ref());
            }
            Step::Listener(ListenerStep::Update { id, .. } | ListenerStep::Delete { id, .. }) => {
                self.lock();
                self.own_listener(id);
                self.advance(step, "");
            }
            Step::Listener(ListenerStep::SwapDefaultPool { listener_id, pool, .. }) => {
                self.lock();
                self.assert_fits(listener_id, pool.id().expect("applicable"));
                self.advance(step, "");
            }
            Step::Pool(PoolStep::Create { .. }) => {
                self.lock();
                self.advance(step, "pool");
            }
            Step::Pool(PoolStep::Update { id, .. }) => {
                self.lock();
                self.own_pool(id);
                self.advance(step, "");
            }
            Step::Pool(PoolStep::Delete { id, .. }) => {
                self.lock();
                self.own_pool(id);
                let users =
                    self.children().listeners.iter().filter(|one| one.default_pool_id.as_ref() == Some(id));
                assert!(users.into_iter().all(|listener| listener.ours), "a foreign listener loses its pool");
                self.advance(step, "");
            }
            Step::Member(MemberStep::ReplaceAll { pool, members }) => {
                self.lock();
                self.replace_members(pool.id().expect("applicable"), members);
            }
            Step::Member(MemberStep::Add { pool, members }) => self.add_members(step, pool, members),
            Step::Member(MemberStep::Create { pool, member }) => {
                self.add_members(step, pool, std::slice::from_ref(member));
            }
            Step::Member(MemberStep::Update { pool_id, id, .. }) => {
                self.lock();
                self.advance(step, "");
                let mut members = self.own_pool(pool_id).members.iter_mut();
                let updated = members.find(|member| member.id == *id).expect("404: member");
                if updated.member.subnet_id.as_deref() == Some("unknown") {
                    updated.status = ProvisioningStatus::Error;
                }
            }
            Step::Member(MemberStep::Delete { pool_id, id, .. }) => {
                self.lock();
                assert!(self.own_pool(pool_id).members.iter().any(|member| member.id == *id), "404: member");
                self.advance(step, "");
            }
            Step::Monitor(MonitorStep::Create { pool, .. }) => {
                self.lock();
                let pool = self.own_pool(pool.id().expect("applicable"));
                assert!(pool.monitor.is_none(), "409: this pool already has a health monitor");
                self.advance(step, "monitor");
            }
            Step::Monitor(MonitorStep::Update { id, .. } | MonitorStep::Delete { id, .. }) => {
                self.lock();
                self.own_monitor(id);
                self.advance(step, "");
            }
            Step::FloatingIp(step) => self.apply_to_neutron(step),
        }
    }

    /// What the program itself takes for the result; the object that is made is of this kind.
    fn advance(&mut self, step: &Step, kind: &str) {
        let answer = if kind.is_empty() { Answer::Nothing } else { Answer::Child(self.id(kind)) };
        advance(&mut self.observed, step, &answer).expect("the step names what is there");
    }

    fn add_members(&mut self, step: &Step, pool: &Handle, members: &[Arc<Member>]) {
        self.lock();
        let pool_id = pool.id().expect("applicable").to_owned();
        let known = self.own_pool(&pool_id).members.clone();
        let is_there = |member: &Arc<Member>| known.iter().any(|known| known.key() == member.key());
        assert!(!members.iter().any(is_there), "a member that is there is put back to its defaults");
        self.advance(step, "");
        let ids: Vec<String> = members.iter().map(|_| self.id("member")).collect();
        let without_id = self.own_pool(&pool_id).members.iter_mut().filter(|member| member.id.is_empty());
        without_id.zip(ids).for_each(|(member, id)| member.id = id);
    }

    fn create_tree(&mut self, spec: &LoadBalancerSpec, listeners: &[DesiredListener]) {
        assert!(self.observed.load_balancer.is_none(), "a second load balancer");
        let id = self.id("lb");
        self.observed.load_balancer = Some(ObservedLoadBalancer {
            name: spec.name.clone(),
            description: spec.description.clone(),
            status: ProvisioningStatus::PendingCreate,
            operating: OperatingStatus::Online,
            vip_address: spec.vip.address.or_else(|| Some("10.0.0.100".parse().unwrap())),
            vip_port_id: spec.vip.port_id.clone().or_else(|| Some(format!("vip-of-{id}"))),
            vip_subnet_id: spec.vip.subnet_id.clone(),
            additional_vips: Vec::new(),
            made_with: MadeWith::default(),
            tags: spec.tags.clone(),
            ownership: Ownership::Sole,
            previous_name: None,
            children: Some(Children::default()),
            id,
        });
        for DesiredListener { listener, pool } in listeners {
            let pool_id = self.create_pool(&pool.pool);
            self.replace_members(&pool_id, &pool.members);
            if let Some(monitor) = &pool.monitor {
                self.create_monitor(&pool_id, monitor);
            }
            self.create_listener(listener, Some(&Handle::Id(pool_id)));
        }
    }

    fn delete_load_balancer(&mut self, id: &str, cascade: bool) {
        let load_balancer = self.load_balancer();
        assert_eq!(load_balancer.id, id);
        assert!(!load_balancer.status.is_pending(), "409: the load balancer is immutable");
        assert_eq!(load_balancer.ownership, Ownership::Sole, "a load balancer of others is deleted");
        let children = load_balancer.children.clone().unwrap_or_default();
        let foreign = children.listeners.iter().any(|listener| !listener.ours)
            || children.pools.iter().any(|pool| !pool.ours);
        assert!(!foreign, "a foreign child is deleted with the load balancer");
        assert!(cascade || children == Children::default(), "400: the load balancer has children");
        load_balancer.status = ProvisioningStatus::PendingDelete;
    }

    pub(crate) fn create_listener(&mut self, spec: &ListenerSpec, pool: Option<&Handle>) -> String {
        let id = self.id("listener");
        let taken = self.children().listeners.iter().any(|listener| listener.key() == spec.key());
        assert!(!taken, "409: another listener is already using {}", spec.key());
        self.children().listeners.push(new_listener(&id, spec));
        if let Some(pool) = pool {
            self.swap(&id, pool.id().expect("applicable"));
        }
        id
    }

    pub(crate) fn create_pool(&mut self, spec: &PoolSpec) -> String {
        let id = self.id("pool");
        self.children().pools.push(new_pool(&id, spec));
        id
    }

    fn assert_fits(&mut self, listener_id: &str, pool_id: &str) {
        let protocol = self.own_pool(pool_id).protocol.clone();
        let listener = self.own_listener(listener_id);
        assert!(
            fits(&listener.protocol, &protocol),
            "400: pool {protocol} on listener {}",
            listener.protocol
        );
    }

    /// Gives a listener another default pool.
    pub(crate) fn swap(&mut self, listener_id: &str, pool_id: &str) {
        self.assert_fits(listener_id, pool_id);
        let pool = Handle::Id(pool_id.to_owned());
        self.children().set_default_pool(listener_id, &pool).expect("both are there");
    }

    pub(crate) fn replace_members(&mut self, pool_id: &str, members: &[Arc<Member>]) {
        let keys: BTreeSet<MemberKey> = members.iter().map(|member| member.key()).collect();
        assert_eq!(keys.len(), members.len(), "400: member must be updated only once in the same request");
        let before = self.own_pool(pool_id).members.clone();
        let mut after = Vec::new();
        for member in members {
            let existing = before.iter().find(|existing| existing.key() == member.key());
            let id = existing.map_or_else(|| self.id("member"), |existing| existing.id.clone());
            let mut member = member.as_ref().clone();
            let mut status = ProvisioningStatus::Active;
            if let Some(existing) = existing {
                member.subnet_id.clone_from(&existing.member.subnet_id);
                if existing.status == ProvisioningStatus::Error
                    && member.subnet_id.as_deref() == Some("unknown")
                {
                    status = ProvisioningStatus::Error;
                }
            }
            after.push(ObservedMember { id, status, member: Arc::new(member) });
        }
        self.own_pool(pool_id).members = after;
    }

    fn create_monitor(&mut self, pool_id: &str, spec: &MonitorSpec) {
        let id = self.id("monitor");
        let pool = self.own_pool(pool_id);
        assert!(pool.monitor.is_none(), "409: this pool already has a health monitor");
        pool.monitor = Some(new_monitor(&id, spec));
    }

    fn own_listener(&mut self, id: &str) -> &mut ObservedListener {
        let listener = self.children().listeners.iter_mut().find(|one| one.id == *id).expect("404: listener");
        assert!(listener.ours, "the foreign listener {id} is changed");
        listener
    }

    fn own_pool(&mut self, id: &str) -> &mut ObservedPool {
        let pool = self.children().pools.iter_mut().find(|one| one.id == *id).expect("404: pool");
        assert!(pool.ours, "the foreign pool {id} is changed");
        pool
    }

    fn own_monitor(&mut self, id: &str) -> &mut Option<ObservedMonitor> {
        let has = |pool: &&mut ObservedPool| pool.monitor.as_ref().is_some_and(|monitor| monitor.id == *id);
        let pool = self.children().pools.iter_mut().find(has).expect("404: health monitor");
        assert!(pool.ours, "the monitor of a foreign pool is changed");
        &mut pool.monitor
    }
}

/// The pairs that Octavia allows.
fn fits(listener: &ListenerProtocol, pool: &PoolProtocol) -> bool {
    use PoolProtocol::{Http, Https, Proxy, ProxyV2, Sctp, Tcp, Udp};
    match listener {
        ListenerProtocol::Tcp => matches!(pool, Tcp | Http | Https | Proxy | ProxyV2),
        ListenerProtocol::Http | ListenerProtocol::TerminatedHttps => matches!(pool, Http | Proxy | ProxyV2),
        ListenerProtocol::Https => matches!(pool, Https | Tcp | Proxy | ProxyV2),
        ListenerProtocol::Udp => *pool == Udp,
        ListenerProtocol::Sctp => *pool == Sctp,
        ListenerProtocol::Prometheus | ListenerProtocol::Other(_) => false,
    }
}
