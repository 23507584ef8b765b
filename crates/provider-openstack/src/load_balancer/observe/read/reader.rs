//! Reads single load balancers, and the listeners, pools and floating IPs of single load balancers; those of many at the same time in
//! one list.

use std::sync::Arc;

use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{FloatingIp, FloatingIpFilter, Neutron};
use openstack_ccm_openstack_api::octavia::{
    ChildFilter, Listener, LoadBalancer, LoadBalancerFilter, Octavia, Pool,
};

use super::gathered::Gathered;
use crate::load_balancer::list_length::ListLength;

/// What all readings share.
#[derive(Debug)]
pub(crate) struct Reader {
    openstack: OpenStack,
    load_balancers: Gathered<LoadBalancer>,
    listeners: Gathered<Listener>,
    pools: Gathered<Pool>,
    floating_ips: Gathered<FloatingIp>,
}

impl Reader {
    /// Reads from this cloud, whose project has so many load balancers.
    pub(crate) fn new(openstack: OpenStack, load_balancers: Arc<ListLength>) -> Self {
        Self {
            openstack,
            load_balancers: Gathered::of(load_balancers),
            listeners: Gathered::default(),
            pools: Gathered::default(),
            floating_ips: Gathered::default(),
        }
    }

    /// Notes how many load balancers and floating IPs the project has, so that nobody asks for lists that are too long. Most load balancers
    /// have a listener and a pool at least, and a list of pools names all their members.
    pub(in crate::load_balancer::observe) fn note_counts(&self, load_balancers: usize, floating_ips: usize) {
        self.load_balancers.list_length().note(load_balancers);
        self.listeners.list_length().note(load_balancers);
        self.pools.list_length().note(load_balancers);
        self.floating_ips.list_length().note(floating_ips);
    }

    pub(crate) fn octavia(&self) -> &Octavia {
        &self.openstack.octavia
    }

    pub(super) fn neutron(&self) -> &Neutron {
        &self.openstack.neutron
    }

    /// The load balancer with this id.
    ///
    /// # Errors
    /// Any failed call; [`openstack_ccm_openstack_api::error::ErrorKind::NotFound`] where there is none.
    pub(super) async fn load_balancer(&self, id: &str) -> Result<LoadBalancer, ApiError> {
        let octavia = self.octavia();
        let Some(of_project) = self.load_balancers_of_project() else {
            return octavia.get_load_balancer(id).await;
        };
        let pick = |all: &[LoadBalancer]| all.iter().find(|one| one.id == id).cloned();
        let list = || octavia.list_load_balancers(&of_project);
        self.load_balancers.ask(|| octavia.get_load_balancer(id), list, pick).await
    }

    /// The load balancers of this name in the project of the credentials: an administrator's list would show those of everybody.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn load_balancers_named(&self, name: String) -> Result<Vec<LoadBalancer>, ApiError> {
        let octavia = self.octavia();
        let Some(of_project) = self.load_balancers_of_project() else {
            return octavia.list_load_balancers(&LoadBalancerFilter::name(name)).await;
        };
        let filter = LoadBalancerFilter { name: Some(name.clone()), ..of_project.clone() };
        let pick = |all: &[LoadBalancer]| Some(all.iter().filter(|one| one.name == name).cloned().collect());
        let list = || octavia.list_load_balancers(&of_project);
        self.load_balancers.ask(|| octavia.list_load_balancers(&filter), list, pick).await
    }

    fn load_balancers_of_project(&self) -> Option<LoadBalancerFilter> {
        let project_id = self.openstack.project_id.clone()?;
        Some(LoadBalancerFilter::of_project(Some(project_id)))
    }

    /// The listeners of a load balancer.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn listeners(&self, of: &LoadBalancer) -> Result<Vec<Listener>, ApiError> {
        let octavia = self.octavia();
        let filter = ChildFilter::load_balancer(&of.id);
        let Some(project_id) = self.own_project(of) else { return octavia.list_listeners(&filter).await };
        let of_project = ChildFilter { project_id: Some(project_id), ..ChildFilter::default() };
        let hangs_on_it = |one: &&Listener| one.loadbalancers.iter().any(|other| other.id == of.id);
        let pick = |all: &[Listener]| Some(all.iter().filter(hangs_on_it).cloned().collect());
        let list = || octavia.list_listeners(&of_project);
        self.listeners.ask(|| octavia.list_listeners(&filter), list, pick).await
    }

    /// The pools of a load balancer.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn pools(&self, of: &LoadBalancer) -> Result<Vec<Pool>, ApiError> {
        let octavia = self.octavia();
        let filter = ChildFilter::load_balancer(&of.id);
        let Some(project_id) = self.own_project(of) else { return octavia.list_pools(&filter).await };
        let of_project = ChildFilter { project_id: Some(project_id), ..ChildFilter::default() };
        let hangs_on_it = |one: &&Pool| one.loadbalancers.iter().any(|other| other.id == of.id);
        let pick = |all: &[Pool]| Some(all.iter().filter(hangs_on_it).cloned().collect());
        self.pools.ask(|| octavia.list_pools(&filter), || octavia.list_pools(&of_project), pick).await
    }

    /// The floating IPs on a port.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn floating_ips_on(&self, port_id: &str) -> Result<Vec<FloatingIp>, ApiError> {
        let is_on_it = |one: &FloatingIp| one.port_id.as_deref() == Some(port_id);
        // One of another project may be on it.
        let found = |found: Vec<FloatingIp>| (!found.is_empty()).then_some(found);
        self.floating_ips(&FloatingIpFilter::port(port_id), is_on_it, found).await
    }

    /// The floating IPs with all of these tags, wherever they lead. None but those of the own project have tags of ours.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn floating_ips_tagged(&self, tags: Vec<String>) -> Result<Vec<FloatingIp>, ApiError> {
        let is_tagged = |one: &FloatingIp| tags.iter().all(|tag| one.tags.contains(tag));
        let filter = FloatingIpFilter { tags: tags.clone(), ..FloatingIpFilter::default() };
        self.floating_ips(&filter, is_tagged, Some).await
    }

    /// Those that a filter shows, or in a list of the project those that are `meant`, where that `is_answer`.
    async fn floating_ips(
        &self,
        filter: &FloatingIpFilter,
        meant: impl Fn(&FloatingIp) -> bool,
        is_answer: impl Fn(Vec<FloatingIp>) -> Option<Vec<FloatingIp>>,
    ) -> Result<Vec<FloatingIp>, ApiError> {
        let neutron = self.neutron();
        let project_id = self.openstack.project_id.as_deref();
        if project_id.is_none() {
            return neutron.list_floating_ips(filter).await;
        }
        let pick = |all: &[FloatingIp]| is_answer(all.iter().filter(|one| meant(one)).cloned().collect());
        let list = || neutron.list_floating_ips_of_project(project_id);
        self.floating_ips.ask(|| neutron.list_floating_ips(filter), list, pick).await
    }

    /// The project of the credentials, if the load balancer is in it: a list of it shows all that hangs on that.
    fn own_project(&self, of: &LoadBalancer) -> Option<String> {
        self.openstack.project_id.clone().filter(|own| of.project_id.as_ref() == Some(own))
    }
}
