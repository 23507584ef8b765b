//! Routes to the pods of nodes: extra routes of a Neutron router, and allowed address pairs on the ports of the nodes, without
//! which Neutron drops packets from and to addresses that are not the port's own.
//!
//! | module | does |
//! | --- | --- |
//! | `table` | writes the extra routes of the router, and keeps those of other clients |
//! | `ports` | finds the ports behind the router's internal interfaces |
//! | `pairs` | adds and removes allowed address pairs of ports |
//!
//! A pair exists only while its route does: the route is created before the pair and deleted after it. If the process dies in
//! between, the next round still finds the route, and so what is left to do.

mod pairs;
mod ports;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::route::plan::{Changes, Removal};
use openstack_ccm_core::route::{Applied, ListedRoute, NodeRoute, RouteTable, Routes, Support};
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::neutron::{Neutron, Router};
use openstack_ccm_openstack_api::transport::Service;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::config::Config;
use crate::load_balancer::failure::{Answered as _, present};
use pairs::PairChange;
use ports::NextHopPorts;
use table::Table;

/// The routes of one router.
pub struct OpenStackRoutes {
    neutron: Neutron,
    has_network_service: bool,
    router_id: Option<String>,
    abilities: OnceCell<Abilities>,
    verified: Verified,
}

/// The features of this Neutron, which do not change while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Abilities {
    /// Routers have extra routes.
    routes: bool,
    /// Single routes can be added and removed.
    atomic: bool,
    /// Ports have allowed address pairs.
    pairs: bool,
}

impl OpenStackRoutes {
    /// Creates the routes of the router in the configuration.
    pub fn new(openstack: &OpenStack, config: &Config) -> Self {
        Self {
            neutron: openstack.neutron.clone(),
            has_network_service: openstack.has(Service::Network),
            router_id: config.route.router_id.clone(),
            abilities: OnceCell::new(),
            verified: Verified::default(),
        }
    }

    async fn abilities(&self) -> Result<Abilities, Failure> {
        let find = || async {
            let extensions = self.neutron.list_extensions().await;
            let extensions = extensions.while_doing("looking up what Neutron can do")?;
            let has = |alias: &str| extensions.iter().any(|extension| extension.alias == alias);
            let atomic = has("extraroute-atomic");
            let (routes, pairs) = (atomic || has("extraroute"), has("allowed-address-pairs"));
            Ok(Abilities { routes, atomic, pairs })
        };
        self.abilities.get_or_try_init(find).await.copied()
    }

    fn router_id(&self) -> &str {
        self.router_id.as_deref().unwrap_or_default()
    }

    async fn router(&self) -> Result<Router, Failure> {
        let id = self.router_id();
        let router = present(self.neutron.get_router(id).await);
        router.when_asked(format_args!("reading router {id}"))?.ok_or_else(|| {
            Failure::user_input(format!(
                "router {id} does not exist, or the user of cloud.conf cannot see it: correct router-id in [Route] of \
                 cloud.conf"
            ))
        })
    }

    fn table<'a>(&'a self, abilities: Abilities) -> Table<'a> {
        Table { neutron: &self.neutron, router_id: self.router_id(), atomic: abilities.atomic }
    }

    /// Carries out the changes step by step; notes failures in `applied`.
    async fn carry_out(
        &self,
        abilities: Abilities,
        table: &RouteTable,
        changes: &Changes,
        applied: &mut Applied,
    ) -> Result<(), Failure> {
        let unverified = self.verified.missing(&changes.keep);
        let of_nodes = changes.remove.iter().any(|removal| removal.of_node.is_some());
        let look = abilities.pairs && (of_nodes || !changes.add.is_empty() || !unverified.is_empty());
        let ports = if look { Some(ports::find(&self.neutron, self.router_id()).await?) } else { None };
        let remove = self.release_pairs(ports.as_ref(), &changes.remove, applied).await;
        let add = with_port(ports.as_ref(), &changes.add, applied);
        let added = self.table(abilities).write(table, &add, &remove, applied).await;
        let Some(ports) = ports else { return Ok(()) };
        let whole: Vec<NodeRoute> = added.into_iter().chain(unverified).collect();
        let failed = pairs::change(&self.neutron, &ports, &whole, PairChange::Claim).await;
        self.verified.add(whole.iter().filter(|route| !failed.contains_key(*route)));
        applied.missing.extend(failed);
        Ok(())
    }

    /// Removes the pairs of routes to nodes. Returns the routes that may be deleted next.
    async fn release_pairs(
        &self,
        ports: Option<&NextHopPorts>,
        removals: &[Removal],
        applied: &mut Applied,
    ) -> Vec<ListedRoute> {
        let routes: Vec<NodeRoute> = removals.iter().filter_map(|removal| removal.of_node).collect();
        self.verified.forget(&routes);
        let failed = match ports {
            Some(ports) => pairs::change(&self.neutron, ports, &routes, PairChange::Release).await,
            None => BTreeMap::new(),
        };
        let mut free = Vec::new();
        for Removal { route, of_node } in removals {
            match of_node.and_then(|of_node| failed.get(&of_node)) {
                Some(failure) => applied.left.push((route.clone(), failure.clone())),
                None => free.push(route.clone()),
            }
        }
        free
    }
}

/// Returns the routes whose next hop is a visible port. Without a port, packets would be routed there and dropped.
fn with_port(ports: Option<&NextHopPorts>, add: &[NodeRoute], applied: &mut Applied) -> Vec<NodeRoute> {
    let Some(ports) = ports else { return add.to_vec() };
    let (found, lost): (Vec<NodeRoute>, Vec<NodeRoute>) =
        add.iter().copied().partition(|route| ports.at(route.next_hop).is_some());
    applied.missing.extend(lost.into_iter().map(|route| {
        let message = format!(
            "the credentials in cloud.conf see no port with the address {} on a network that is attached to the router: give the node a \
             port on such a network, in the project of these credentials",
            route.next_hop
        );
        (route, Failure::user_input(message))
    }));
    found
}

#[async_trait]
impl Routes for OpenStackRoutes {
    async fn support(&self) -> Result<Support, Failure> {
        let none = |reason: &str| Ok(Support::None(reason.to_owned()));
        if self.router_id.is_none() {
            return none("router-id in [Route] of cloud.conf is not set");
        }
        if !self.has_network_service {
            return none("the cloud's catalog has no endpoint of type network in the region");
        }
        if !self.abilities().await?.routes {
            return none("this Neutron has neither the extension extraroute nor extraroute-atomic");
        }
        Ok(Support::Full)
    }

    async fn list(&self) -> Result<RouteTable, Failure> {
        let router = self.router().await?;
        Ok(table::of_router(&router))
    }

    async fn apply(&self, table: &RouteTable, changes: &Changes) -> Applied {
        let mut applied = Applied::default();
        let done = match self.abilities().await {
            Ok(abilities) => self.carry_out(abilities, table, changes, &mut applied).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = done {
            // Nothing was written yet; existing routes do not count as missing because of that.
            tracing::warn!(error = %failure, "the routes could not be applied and are applied again later");
            applied.missing.extend(changes.add.iter().map(|route| (*route, failure.clone())));
            applied
                .left
                .extend(changes.remove.iter().map(|removal| (removal.route.clone(), failure.clone())));
        }
        applied
    }
}

/// Interval after which the ports are checked again, to find changes of other clients.
const PORT_CHECK_INTERVAL: Duration = Duration::from_secs(300);

/// The routes whose pair was seen or created, so that a round without changes needs no list of ports. Losing this is harmless.
#[derive(Debug, Default)]
struct Verified {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    routes: BTreeSet<NodeRoute>,
    since: Option<Instant>,
}

impl Verified {
    /// Returns those `routes` whose pair has to be checked.
    fn missing(&self, routes: &[NodeRoute]) -> Vec<NodeRoute> {
        let mut known = self.known();
        if known.since.is_some_and(|since| since.elapsed() >= PORT_CHECK_INTERVAL) {
            *known = Known::default();
        }
        routes.iter().filter(|route| !known.routes.contains(route)).copied().collect()
    }

    /// Notes that the pairs of these routes exist.
    fn add<'a>(&self, routes: impl Iterator<Item = &'a NodeRoute>) {
        let mut known = self.known();
        known.routes.extend(routes);
        known.since.get_or_insert_with(Instant::now);
    }

    /// Removes routes that are about to be deleted.
    fn forget(&self, routes: &[NodeRoute]) {
        let mut known = self.known();
        known.routes.retain(|route| !routes.contains(route));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}
