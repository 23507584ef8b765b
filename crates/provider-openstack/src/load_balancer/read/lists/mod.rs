//! Lists of a project's objects, shared by all readers of the same moment: reconciliations and the poller.
//!
//! A single reader asks for what it needs by id or name. When several read at once, one list of the project serves all of them. An
//! answer is recent enough if it was begun after the cause of the read, and after this process last wrote to the load balancer (for
//! floating IPs: to any). Objects of another project are requested individually.

mod shared;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use openstack_ccm_core::lock::lock;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{FloatingIp, FloatingIpFilter};
use openstack_ccm_openstack_api::octavia::{ChildFilter, Listener, LoadBalancer, LoadBalancerFilter, Pool};
use tokio::time::Instant;

use shared::{LIST_LIFETIME, SharedList};

type Listed<T> = Result<T, Arc<ApiError>>;

/// The shared lists of one cloud. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::load_balancer) struct Lists {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    openstack: OpenStack,
    load_balancers: Arc<SharedList<LoadBalancer>>,
    listeners: Arc<SharedList<Listener>>,
    pools: Arc<SharedList<Pool>>,
    floating_ips: Arc<SharedList<FloatingIp>>,
    written: Mutex<Writes>,
}

/// When this process last wrote to the cloud.
#[derive(Debug, Default)]
struct Writes {
    /// To load balancers and their children, by load balancer id; creations, by the name in the request.
    load_balancers: HashMap<String, (Moment, Instant)>,
    /// To any floating IP.
    floating_ips: Option<Moment>,
}

impl Lists {
    pub(in crate::load_balancer) fn new(openstack: OpenStack) -> Self {
        let shared = Shared {
            openstack,
            load_balancers: Arc::default(),
            listeners: Arc::default(),
            pools: Arc::default(),
            floating_ips: Arc::default(),
            written: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(in crate::load_balancer) fn openstack(&self) -> &OpenStack {
        &self.shared.openstack
    }

    /// Notes that this process wrote to the load balancer with this id or its children, or sent the creation of one with this name:
    /// older lists are out of date.
    pub(in crate::load_balancer) fn wrote_to_load_balancer(&self, id_or_name: &str) {
        let mut written = lock(&self.shared.written);
        // No list is older than that, so older writes do not matter.
        written.load_balancers.retain(|_, (_, at)| at.elapsed() < LIST_LIFETIME);
        written.load_balancers.insert(id_or_name.to_owned(), (Moment::now(), Instant::now()));
    }

    /// Notes that this process wrote to a floating IP: older lists are out of date.
    pub(in crate::load_balancer) fn wrote_to_floating_ips(&self) {
        lock(&self.shared.written).floating_ips = Some(Moment::now());
    }

    fn since_write_to(&self, id_or_name: &str, since: Moment) -> Moment {
        let written = lock(&self.shared.written);
        written.load_balancers.get(id_or_name).map_or(since, |(wrote, _)| since.max(*wrote))
    }

    fn since_write_to_floating_ips(&self, since: Moment) -> Moment {
        let written = lock(&self.shared.written);
        written.floating_ips.map_or(since, |wrote| since.max(wrote))
    }

    fn own_project(&self) -> Option<&str> {
        self.shared.openstack.project_id.as_deref()
    }

    /// Returns all load balancers of a project, for the poller; `None` where the list is not available.
    ///
    /// # Errors
    /// A failure that concerns more than the list.
    pub(in crate::load_balancer) async fn all_load_balancers(
        &self,
        project_id: &str,
    ) -> Listed<Option<Arc<Vec<LoadBalancer>>>> {
        let filter = LoadBalancerFilter::of_project(Some(project_id.to_owned()));
        self.shared.load_balancers.list(project_id, Moment::now(), self.list_of_load_balancers(filter)).await
    }

    fn list_of_load_balancers(
        &self,
        filter: LoadBalancerFilter,
    ) -> impl Future<Output = Result<Vec<LoadBalancer>, ApiError>> + Send + use<> {
        let octavia = self.shared.openstack.octavia.clone();
        async move { octavia.list_load_balancers(&filter).await }
    }

    /// Returns the load balancer with this id. One of another project is requested individually.
    ///
    /// # Errors
    /// Any failed call; [`ErrorKind::NotFound`] where there is none.
    async fn load_balancer(&self, id: &str, since: Moment) -> Listed<LoadBalancer> {
        let octavia = &self.shared.openstack.octavia;
        let alone = octavia.get_load_balancer(id);
        let Some(project_id) = self.own_project() else { return alone.await.map_err(Arc::new) };
        let since = self.since_write_to(id, since);
        let list = self.list_of_load_balancers(LoadBalancerFilter::of_project(Some(project_id.to_owned())));
        let pick = |all: &[LoadBalancer]| all.iter().find(|one| one.id == id).cloned();
        self.shared.load_balancers.look(project_id, since, alone, list, pick).await
    }

    /// Returns the load balancers of this name in the project of the credentials: an administrator's list would show all projects.
    async fn load_balancers_named(&self, name: &str, since: Moment) -> Listed<Vec<LoadBalancer>> {
        let octavia = &self.shared.openstack.octavia;
        let project_id = self.own_project();
        let of_project = LoadBalancerFilter::of_project(project_id.map(str::to_owned));
        let filter = LoadBalancerFilter { name: Some(name.to_owned()), ..of_project.clone() };
        let alone = octavia.list_load_balancers(&filter);
        let Some(project_id) = project_id else { return alone.await.map_err(Arc::new) };
        let since = self.since_write_to(name, since);
        let list = self.list_of_load_balancers(of_project);
        let pick = |all: &[LoadBalancer]| Some(all.iter().filter(|one| one.name == name).cloned().collect());
        self.shared.load_balancers.look(project_id, since, alone, list, pick).await
    }

    async fn listeners(&self, of: &LoadBalancer, since: Moment) -> Listed<Vec<Listener>> {
        let octavia = &self.shared.openstack.octavia;
        let filter = ChildFilter::load_balancer(&of.id);
        let alone = octavia.list_listeners(&filter);
        let Some(project_id) = self.project_shared_with(of) else { return alone.await.map_err(Arc::new) };
        let since = self.since_write_to(&of.id, since);
        let of_project = ChildFilter { project_id: Some(project_id.to_owned()), ..ChildFilter::default() };
        let is_child = |one: &&Listener| one.loadbalancers.iter().any(|parent| parent.id == of.id);
        let pick = |all: &[Listener]| Some(all.iter().filter(is_child).cloned().collect());
        let octavia = octavia.clone();
        let list = async move { octavia.list_listeners(&of_project).await };
        self.shared.listeners.look(project_id, since, alone, list, pick).await
    }

    async fn pools(&self, of: &LoadBalancer, since: Moment) -> Listed<Vec<Pool>> {
        let octavia = &self.shared.openstack.octavia;
        let filter = ChildFilter::load_balancer(&of.id);
        let alone = octavia.list_pools(&filter);
        let Some(project_id) = self.project_shared_with(of) else { return alone.await.map_err(Arc::new) };
        let since = self.since_write_to(&of.id, since);
        let of_project = ChildFilter { project_id: Some(project_id.to_owned()), ..ChildFilter::default() };
        let is_child = |one: &&Pool| one.loadbalancers.iter().any(|parent| parent.id == of.id);
        let pick = |all: &[Pool]| Some(all.iter().filter(is_child).cloned().collect());
        let octavia = octavia.clone();
        let list = async move { octavia.list_pools(&of_project).await };
        self.shared.pools.look(project_id, since, alone, list, pick).await
    }

    /// Returns the floating IPs on a port. One of another project may be attached, which the project's list does not show.
    async fn floating_ips_on(&self, port_id: &str, since: Moment) -> Listed<Vec<FloatingIp>> {
        let is_on_it = |one: &&FloatingIp| one.port_id.as_deref() == Some(port_id);
        let pick = |all: &[FloatingIp]| {
            let found: Vec<FloatingIp> = all.iter().filter(is_on_it).cloned().collect();
            (!found.is_empty()).then_some(found)
        };
        self.floating_ips(&FloatingIpFilter::port(port_id), since, pick).await
    }

    /// Returns the floating IPs with all of these tags, attached or not. Only those of the own project have tags of ours.
    async fn floating_ips_tagged(&self, tags: Vec<String>, since: Moment) -> Listed<Vec<FloatingIp>> {
        let is_tagged = |one: &&FloatingIp| tags.iter().all(|tag| one.tags.contains(tag));
        let filter = FloatingIpFilter { tags: tags.clone(), ..FloatingIpFilter::default() };
        let pick = |all: &[FloatingIp]| Some(all.iter().filter(is_tagged).cloned().collect());
        self.floating_ips(&filter, since, pick).await
    }

    async fn floating_ips_described(&self, text: String, since: Moment) -> Listed<Vec<FloatingIp>> {
        let filter = FloatingIpFilter { description: Some(text.clone()), ..FloatingIpFilter::default() };
        let is_described = |one: &&FloatingIp| one.description == text;
        let pick = |all: &[FloatingIp]| Some(all.iter().filter(is_described).cloned().collect());
        self.floating_ips(&filter, since, pick).await
    }

    async fn floating_ips(
        &self,
        filter: &FloatingIpFilter,
        since: Moment,
        pick: impl Fn(&[FloatingIp]) -> Option<Vec<FloatingIp>>,
    ) -> Listed<Vec<FloatingIp>> {
        let neutron = &self.shared.openstack.neutron;
        let alone = neutron.list_floating_ips(filter);
        let Some(project_id) = self.own_project() else { return alone.await.map_err(Arc::new) };
        let since = self.since_write_to_floating_ips(since);
        let (neutron, of_project) = (neutron.clone(), project_id.to_owned());
        let list = async move { neutron.list_floating_ips_of_project(Some(&of_project)).await };
        self.shared.floating_ips.look(project_id, since, alone, list, pick).await
    }

    /// Returns the project of the credentials if the load balancer is in it: then its lists show all children.
    fn project_shared_with(&self, of: &LoadBalancer) -> Option<&str> {
        self.own_project().filter(|own| of.project_id.as_deref() == Some(own))
    }
}

/// Reads through lists that were begun after `since`.
#[derive(Clone, Copy, Debug)]
pub(in crate::load_balancer) struct Reader<'a> {
    lists: &'a Lists,
    since: Moment,
}

impl<'a> Reader<'a> {
    pub(in crate::load_balancer) fn new(lists: &'a Lists, since: Moment) -> Self {
        Self { lists, since }
    }

    pub(in crate::load_balancer) fn openstack(&self) -> &'a OpenStack {
        self.lists.openstack()
    }

    pub(in crate::load_balancer) async fn load_balancer(&self, id: &str) -> Listed<LoadBalancer> {
        self.lists.load_balancer(id, self.since).await
    }

    pub(in crate::load_balancer) async fn load_balancers_named(
        &self,
        name: &str,
    ) -> Listed<Vec<LoadBalancer>> {
        self.lists.load_balancers_named(name, self.since).await
    }

    pub(in crate::load_balancer) async fn listeners(&self, of: &LoadBalancer) -> Listed<Vec<Listener>> {
        self.lists.listeners(of, self.since).await
    }

    pub(in crate::load_balancer) async fn pools(&self, of: &LoadBalancer) -> Listed<Vec<Pool>> {
        self.lists.pools(of, self.since).await
    }

    pub(in crate::load_balancer) async fn floating_ips_on(&self, port_id: &str) -> Listed<Vec<FloatingIp>> {
        self.lists.floating_ips_on(port_id, self.since).await
    }

    pub(in crate::load_balancer) async fn floating_ips_described(
        &self,
        text: String,
    ) -> Listed<Vec<FloatingIp>> {
        self.lists.floating_ips_described(text, self.since).await
    }

    pub(in crate::load_balancer) async fn floating_ips_tagged(
        &self,
        tags: Vec<String>,
    ) -> Listed<Vec<FloatingIp>> {
        self.lists.floating_ips_tagged(tags, self.since).await
    }
}
