//! All load balancers and floating IPs, listed once for all Services that ask at about the same time: after a start,
//! and when their checks for drift fall together.

use std::collections::HashMap;
use std::time::Duration;

use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{FloatingIp, FloatingIpFilter};
use openstack_ccm_openstack_api::octavia::{LoadBalancer, LoadBalancerFilter};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// For how long the lists stand for the present. What changed in between is found by the next check.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The lists.
pub(crate) struct BulkLists {
    openstack: OpenStack,
    lists: Mutex<Option<Listing>>,
}

struct Listing {
    asked: Instant,
    /// By id; each on its own, because a table has room for up to twice as many as it holds.
    load_balancers: HashMap<String, Box<LoadBalancer>>,
    /// By port.
    floating_ips: HashMap<String, Vec<FloatingIp>>,
}

/// What the lists show of one load balancer.
pub(crate) struct Listed {
    pub(crate) load_balancer: LoadBalancer,
    /// Those on the VIP.
    pub(crate) floating_ips: Vec<FloatingIp>,
}

impl BulkLists {
    pub(crate) fn new(openstack: OpenStack) -> Self {
        Self { openstack, lists: Mutex::default() }
    }

    /// What is listed of a load balancer. Each is handed out once, so that the lists shrink while they are used.
    ///
    /// # Errors
    /// Any failed call.
    pub(crate) async fn take(&self, load_balancer_id: &str) -> Result<Option<Listed>, ApiError> {
        let mut lists = self.lists.lock().await;
        let good = lists.take().filter(|lists| lists.asked.elapsed() < GOOD_FOR);
        let known = match good {
            Some(good) => lists.insert(good),
            None => lists.insert(self.list().await?),
        };
        let Some(load_balancer) = known.load_balancers.remove(load_balancer_id) else { return Ok(None) };
        let port = load_balancer.vip_port_id.as_ref();
        let floating_ips = port.and_then(|port| known.floating_ips.remove(port)).unwrap_or_default();
        if known.load_balancers.is_empty() {
            // A table keeps its room.
            known.load_balancers = HashMap::new();
            known.floating_ips.shrink_to_fit();
        }
        Ok(Some(Listed { load_balancer: *load_balancer, floating_ips }))
    }

    /// Those of the project of the credentials: an administrator's would show the whole cloud. What is in another project
    /// is not listed, and looked at by its id.
    ///
    /// One list after the other: two answers of megabytes at the same time are what most memory would be needed for.
    async fn list(&self) -> Result<Listing, ApiError> {
        let asked = Instant::now();
        let filter = LoadBalancerFilter::of_project(self.openstack.project_id.clone());
        let all = self.openstack.octavia.list_load_balancers(&filter).await?;
        let load_balancers = all.into_iter().map(|one| (one.id.clone(), Box::new(one))).collect();
        let filter = FloatingIpFilter::of_project(self.openstack.project_id.clone());
        let all = self.openstack.neutron.list_floating_ips(&filter).await?;
        let mut floating_ips: HashMap<String, Vec<FloatingIp>> = HashMap::new();
        for one in all {
            if let Some(port) = one.port_id.clone() {
                // Hardly ever more than one.
                floating_ips.entry(port).or_insert_with(|| Vec::with_capacity(1)).push(one);
            }
        }
        Ok(Listing { asked, load_balancers, floating_ips })
    }
}
