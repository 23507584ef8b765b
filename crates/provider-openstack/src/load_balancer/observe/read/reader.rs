//! Reads single load balancers, and listeners and pools of single load balancers; those of many at the same time in one list.

use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::Neutron;
use openstack_ccm_openstack_api::octavia::{
    Listener, ListenerFilter, LoadBalancer, LoadBalancerFilter, Octavia, Pool, PoolFilter,
};

use super::gathered::Gathered;

/// What all readings share.
#[derive(Debug)]
pub(crate) struct Reader {
    openstack: OpenStack,
    load_balancers: Gathered<LoadBalancer>,
    listeners: Gathered<Listener>,
    pools: Gathered<Pool>,
}

impl Reader {
    /// Reads from this cloud.
    pub(crate) fn new(openstack: OpenStack) -> Self {
        Self {
            openstack,
            load_balancers: Gathered::default(),
            listeners: Gathered::default(),
            pools: Gathered::default(),
        }
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
        let Some(project_id) = self.openstack.project_id.clone() else {
            return octavia.get_load_balancer(id).await;
        };
        let filter = LoadBalancerFilter { project_id: Some(project_id), ..LoadBalancerFilter::default() };
        let pick = |all: &[LoadBalancer]| all.iter().find(|one| one.id == id).cloned();
        let list = octavia.list_load_balancers(&filter);
        self.load_balancers.ask(octavia.get_load_balancer(id), list, pick).await
    }

    /// The listeners of a load balancer.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn listeners(&self, of: &LoadBalancer) -> Result<Vec<Listener>, ApiError> {
        let octavia = self.octavia();
        let filter = ListenerFilter::load_balancer(&of.id);
        let Some(project_id) = self.own_project(of) else { return octavia.list_listeners(&filter).await };
        let of_project = ListenerFilter { project_id: Some(project_id), ..ListenerFilter::default() };
        let hangs_on_it = |one: &&Listener| one.loadbalancers.iter().any(|other| other.id == of.id);
        let pick = |all: &[Listener]| Some(all.iter().filter(hangs_on_it).cloned().collect());
        let list = octavia.list_listeners(&of_project);
        self.listeners.ask(octavia.list_listeners(&filter), list, pick).await
    }

    /// The pools of a load balancer.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn pools(&self, of: &LoadBalancer) -> Result<Vec<Pool>, ApiError> {
        let octavia = self.octavia();
        let filter = PoolFilter::load_balancer(&of.id);
        let Some(project_id) = self.own_project(of) else { return octavia.list_pools(&filter).await };
        let of_project = PoolFilter { project_id: Some(project_id), ..PoolFilter::default() };
        let hangs_on_it = |one: &&Pool| one.loadbalancers.iter().any(|other| other.id == of.id);
        let pick = |all: &[Pool]| Some(all.iter().filter(hangs_on_it).cloned().collect());
        self.pools.ask(octavia.list_pools(&filter), octavia.list_pools(&of_project), pick).await
    }

    /// The project of the credentials, if the load balancer is in it: a list of it shows all that hangs on that.
    fn own_project(&self, of: &LoadBalancer) -> Option<String> {
        self.openstack.project_id.clone().filter(|own| of.project_id.as_ref() == Some(own))
    }
}
