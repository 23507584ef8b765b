//! All load balancers and floating IPs, listed once for all Services that ask at about the same time: after a start,
//! and when their checks for drift fall together.

use std::collections::HashMap;
use std::time::Duration;

use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::FloatingIp;
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::read::Reader;
use crate::compressed::Compressed;

/// For how long the lists stand for the present. What changed in between is found by the next check.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The lists.
pub(crate) struct BulkLists {
    openstack: OpenStack,
    lists: Mutex<Option<Listing>>,
}

struct Listing {
    asked: Instant,
    load_balancers: ById,
    floating_ips: ByPort,
}

/// Load balancers by id.
#[derive(Default)]
struct ById(HashMap<String, Compressed<LoadBalancer>>);

impl ById {
    fn take(&mut self, id: &str) -> Option<LoadBalancer> {
        self.0.remove(id)?.get()
    }
}

impl Extend<LoadBalancer> for ById {
    fn extend<I: IntoIterator<Item = LoadBalancer>>(&mut self, listed: I) {
        self.0
            .extend(listed.into_iter().map(|one| (Compressed::of(&one), one.id)).map(|(one, id)| (id, one)));
    }
}

/// Floating IPs by the port that they lead to; without those that lead nowhere.
#[derive(Default)]
struct ByPort(HashMap<String, Vec<Compressed<FloatingIp>>>);

impl ByPort {
    fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn take(&mut self, port: &str) -> Option<Vec<FloatingIp>> {
        self.0.remove(port).unwrap_or_default().iter().map(Compressed::get).collect()
    }
}

impl Extend<FloatingIp> for ByPort {
    fn extend<I: IntoIterator<Item = FloatingIp>>(&mut self, listed: I) {
        for one in listed {
            let compressed = Compressed::of(&one);
            if let Some(port) = one.port_id {
                // Hardly ever more than one.
                self.0.entry(port).or_insert_with(|| Vec::with_capacity(1)).push(compressed);
            }
        }
    }
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

    /// What is listed of a load balancer. Each is handed out once, so that the lists shrink while they are used. `reader` learns how long
    /// they are.
    ///
    /// # Errors
    /// Any failed call.
    pub(crate) async fn take(
        &self,
        load_balancer_id: &str,
        reader: &Reader,
    ) -> Result<Option<Listed>, ApiError> {
        let mut lists = self.lists.lock().await;
        let good = lists.take().filter(|lists| lists.asked.elapsed() < GOOD_FOR);
        let known = match good {
            Some(good) => lists.insert(good),
            None => {
                let listed = lists.insert(self.list().await?);
                reader.note_counts(listed.load_balancers.0.len(), listed.floating_ips.count());
                listed
            }
        };
        let Some(load_balancer) = known.load_balancers.take(load_balancer_id) else { return Ok(None) };
        let port = load_balancer.vip_port_id.as_ref();
        let on_port = port.map_or(Some(Vec::new()), |port| known.floating_ips.take(port));
        let Some(floating_ips) = on_port else { return Ok(None) };
        if known.load_balancers.0.is_empty() {
            // A table keeps its room.
            known.load_balancers = ById::default();
            known.floating_ips.0.shrink_to_fit();
        }
        Ok(Some(Listed { load_balancer, floating_ips }))
    }

    /// Those of the project of the credentials: an administrator's would show the whole cloud. What is in another project
    /// is not listed, and looked at by its id.
    ///
    /// One list after the other: two answers of megabytes at the same time are what most memory would be needed for.
    async fn list(&self) -> Result<Listing, ApiError> {
        let asked = Instant::now();
        let project_id = self.openstack.project_id.as_deref();
        let load_balancers = self.openstack.octavia.list_load_balancers_of_project(project_id).await?;
        let floating_ips = self.openstack.neutron.list_floating_ips_of_project(project_id).await?;
        Ok(Listing { asked, load_balancers, floating_ips })
    }
}
