//! Lists of a project's objects, shared by all readers of the same moment: reconciliations and the poller.
//!
//! A single reader asks for what it needs by id or name. When several read at once, one list of the project serves all of them. An
//! answer is recent enough if it was begun after the cause of the read, and after this process last wrote to the load balancer (for
//! floating IPs: to any). Objects of another project are requested individually.

mod shared;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use openstack_ccm_core::lock::lock;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{FloatingIp, FloatingIpFilter};
use openstack_ccm_openstack_api::octavia::{
    ChildFilter, IdRef, Listener, LoadBalancer, LoadBalancerFilter, Pool,
};
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

    fn last_write_to(&self, id_or_name: &str) -> Option<Moment> {
        lock(&self.shared.written).load_balancers.get(id_or_name).map(|(wrote, _)| *wrote)
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
        let list = self.ask_for_load_balancers()(LoadBalancerFilter::of_project(Some(project_id.to_owned())));
        self.shared.load_balancers.list(project_id, Moment::now(), list).await
    }

    fn ask_for_load_balancers(&self) -> impl Fn(LoadBalancerFilter) -> Request<Vec<LoadBalancer>> + use<> {
        let octavia = self.shared.openstack.octavia.clone();
        move |filter| {
            let octavia = octavia.clone();
            Box::pin(async move { octavia.list_load_balancers(&filter).await })
        }
    }
}

/// A request that goes on although nobody waits for its answer any more.
type Request<T> = BoxFuture<'static, Result<T, ApiError>>;

/// Reads through lists that are new enough.
#[derive(Clone, Copy, Debug)]
pub(in crate::load_balancer) struct Reader<'a> {
    lists: &'a Lists,
    needs: Needs,
}

/// How new a list has to be.
#[derive(Clone, Copy, Debug)]
enum Needs {
    /// Begun after this moment. Who reads alone asks alone.
    Since(Moment),
    /// Not older than this. Even who reads alone asks for the list, which serves all that check for drift meanwhile.
    Age(Duration),
}

impl<'a> Reader<'a> {
    pub(in crate::load_balancer) fn new(lists: &'a Lists, since: Moment) -> Self {
        Self { lists, needs: Needs::Since(since) }
    }

    /// Reads for a check for drift.
    pub(in crate::load_balancer) fn for_drift(lists: &'a Lists, age: Duration) -> Self {
        Self { lists, needs: Needs::Age(age) }
    }

    pub(in crate::load_balancer) fn openstack(&self) -> &'a OpenStack {
        self.lists.openstack()
    }

    /// Returns the load balancer with this id. One of another project is requested individually.
    ///
    /// # Errors
    /// Any failed call; [`ErrorKind::NotFound`] where there is none.
    pub(in crate::load_balancer) async fn load_balancer(&self, id: &str) -> Listed<LoadBalancer> {
        let alone = self.openstack().octavia.get_load_balancer(id);
        let pick = |all: &[LoadBalancer]| all.iter().find(|one| one.id == id).cloned();
        self.load_balancers(id, alone, pick).await
    }

    /// Returns the load balancers of this name in the project of the credentials: an administrator's list would show all projects.
    pub(in crate::load_balancer) async fn load_balancers_named(
        &self,
        name: &str,
    ) -> Listed<Vec<LoadBalancer>> {
        let of_project = LoadBalancerFilter::of_project(self.lists.own_project().map(str::to_owned));
        let filter = LoadBalancerFilter { name: Some(name.to_owned()), ..of_project };
        let alone = self.openstack().octavia.list_load_balancers(&filter);
        let pick = |all: &[LoadBalancer]| Some(all.iter().filter(|one| one.name == name).cloned().collect());
        self.load_balancers(name, alone, pick).await
    }

    async fn load_balancers<A>(
        &self,
        id_or_name: &str,
        alone: impl Future<Output = Result<A, ApiError>>,
        pick: impl Fn(&[LoadBalancer]) -> Option<A>,
    ) -> Listed<A> {
        let ask = self.lists.ask_for_load_balancers();
        let all = |project_id| ask(LoadBalancerFilter::of_project(Some(project_id)));
        let list = &self.lists.shared.load_balancers;
        self.look(list, self.lists.own_project(), self.lists.last_write_to(id_or_name), alone, all, pick)
            .await
    }

    pub(in crate::load_balancer) async fn listeners(&self, of: &LoadBalancer) -> Listed<Vec<Listener>> {
        let octavia = &self.openstack().octavia;
        let ask = |filter: ChildFilter| -> Request<Vec<Listener>> {
            let octavia = octavia.clone();
            Box::pin(async move { octavia.list_listeners(&filter).await })
        };
        self.children(&self.lists.shared.listeners, of, |one| &one.loadbalancers, ask).await
    }

    pub(in crate::load_balancer) async fn pools(&self, of: &LoadBalancer) -> Listed<Vec<Pool>> {
        let octavia = &self.openstack().octavia;
        let ask = |filter: ChildFilter| -> Request<Vec<Pool>> {
            let octavia = octavia.clone();
            Box::pin(async move { octavia.list_pools(&filter).await })
        };
        self.children(&self.lists.shared.pools, of, |one| &one.loadbalancers, ask).await
    }

    /// Returns the children of a load balancer. Those of one in another project are requested individually.
    async fn children<T: Clone + Send + Sync + 'static>(
        &self,
        list: &Arc<SharedList<T>>,
        of: &LoadBalancer,
        parents: fn(&T) -> &[IdRef],
        ask: impl Fn(ChildFilter) -> Request<Vec<T>>,
    ) -> Listed<Vec<T>> {
        let project_id = self.lists.own_project().filter(|own| of.project_id.as_deref() == Some(own));
        let is_child = |one: &&T| parents(one).iter().any(|parent| parent.id == of.id);
        let pick = |all: &[T]| Some(all.iter().filter(is_child).cloned().collect());
        let all = |project_id| ask(ChildFilter { project_id: Some(project_id), ..ChildFilter::default() });
        let alone = ask(ChildFilter::load_balancer(&of.id));
        self.look(list, project_id, self.lists.last_write_to(&of.id), alone, all, pick).await
    }

    /// Returns the floating IPs on a port. One of another project may be attached, which the project's list does not show.
    pub(in crate::load_balancer) async fn floating_ips_on(&self, port_id: &str) -> Listed<Vec<FloatingIp>> {
        let is_on_it = |one: &FloatingIp| one.port_id.as_deref() == Some(port_id);
        self.floating_ips(&FloatingIpFilter::port(port_id), is_on_it, |found| !found.is_empty()).await
    }

    pub(in crate::load_balancer) async fn floating_ips_described(
        &self,
        text: String,
    ) -> Listed<Vec<FloatingIp>> {
        let filter = FloatingIpFilter { description: Some(text.clone()), ..FloatingIpFilter::default() };
        self.floating_ips(&filter, |one| one.description == text, |_| true).await
    }

    /// Returns the floating IPs with all of these tags, attached or not. Only those of the own project have tags of ours.
    pub(in crate::load_balancer) async fn floating_ips_tagged(
        &self,
        tags: Vec<String>,
    ) -> Listed<Vec<FloatingIp>> {
        let filter = FloatingIpFilter { tags: tags.clone(), ..FloatingIpFilter::default() };
        let is_tagged = |one: &FloatingIp| tags.iter().all(|tag| one.tags.contains(tag));
        self.floating_ips(&filter, is_tagged, |_| true).await
    }

    /// `is_it`: which floating IPs of the project are asked for; `counts`: whether the project's list shows them all.
    async fn floating_ips(
        &self,
        filter: &FloatingIpFilter,
        is_it: impl Fn(&FloatingIp) -> bool,
        counts: impl Fn(&[FloatingIp]) -> bool,
    ) -> Listed<Vec<FloatingIp>> {
        let neutron = &self.openstack().neutron;
        let all = |project_id: String| -> Request<Vec<FloatingIp>> {
            let neutron = neutron.clone();
            Box::pin(async move { neutron.list_floating_ips_of_project(Some(&project_id)).await })
        };
        let pick = |all: &[FloatingIp]| {
            let found: Vec<FloatingIp> = all.iter().filter(|one| is_it(one)).cloned().collect();
            counts(&found).then_some(found)
        };
        let (list, last_write) =
            (&self.lists.shared.floating_ips, lock(&self.lists.shared.written).floating_ips);
        let alone = neutron.list_floating_ips(filter);
        self.look(list, self.lists.own_project(), last_write, alone, all, pick).await
    }

    /// Picks from the list of a project; `alone` is the narrower request of a single reader, `all` that for the list. Without a project
    /// there is no list.
    async fn look<T: Send + Sync + 'static, A>(
        &self,
        list: &Arc<SharedList<T>>,
        project_id: Option<&str>,
        last_write: Option<Moment>,
        alone: impl Future<Output = Result<A, ApiError>>,
        all: impl Fn(String) -> Request<Vec<T>>,
        pick: impl Fn(&[T]) -> Option<A>,
    ) -> Listed<A> {
        let Some(project_id) = project_id else { return alone.await.map_err(Arc::new) };
        let request = all(project_id.to_owned());
        match self.needs {
            Needs::Since(since) => {
                let since = last_write.map_or(since, |wrote| since.max(wrote));
                list.look(project_id, since, alone, request, pick).await
            }
            Needs::Age(age) => list.look_for_drift(project_id, age, alone, request, pick).await,
        }
    }
}
