//! Writing the extra routes of a router.
//!
//! With the extension `extraroute-atomic` only the changed routes are named. Without it the whole list is replaced; the request
//! then names the revision that the list was read at, so that a route which somebody else made meanwhile is not lost.

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::route::{ListedRoute, NodeRoute, RouteTable};
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::neutron::{Neutron, Route, Router, UpdateRouter};

use crate::load_balancer::failure::{Missing, of_call};

/// Tries to replace a list that somebody else changes as well.
const TRIES: usize = 4;
/// Neutron's name for a route that it does not accept; other routes in the same request may be fine.
const INVALID_ROUTES: &str = "InvalidRoutes";

/// The extra routes of a router.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) neutron: &'a Neutron,
    pub(super) router_id: &'a str,
    pub(super) atomic: bool,
}

/// What is to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    pub(super) add: Vec<NodeRoute>,
    pub(super) remove: Vec<ListedRoute>,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) added: Vec<NodeRoute>,
    pub(super) not_added: Vec<(NodeRoute, Failure)>,
    pub(super) not_removed: Vec<(ListedRoute, Failure)>,
}

/// The table as a router has it.
pub(super) fn of_router(router: &Router) -> RouteTable {
    let listed = |route: &Route| ListedRoute {
        destination: route.destination.clone(),
        next_hop: route.nexthop.clone(),
    };
    RouteTable { routes: router.routes.iter().map(listed).collect(), revision: router.revision_number }
}

fn of_listed(route: &ListedRoute) -> Route {
    Route { destination: route.destination.clone(), nexthop: route.next_hop.clone() }
}

fn of_node(route: &NodeRoute) -> Route {
    Route { destination: route.destination.to_string(), nexthop: route.next_hop.to_string() }
}

impl Table<'_> {
    /// Takes routes away and makes others. Where one of several new routes is refused, the others are made.
    pub(super) async fn write(&self, table: &RouteTable, writes: &Writes) -> Written {
        let mut written = Written::default();
        let mut current = table.clone();
        let Writes { add, remove } = writes;
        let gone: Vec<Route> = remove.iter().map(of_listed).collect();
        let made: Vec<Route> = add.iter().map(of_node).collect();
        let not_removed =
            |failure: &Failure| remove.iter().map(|route| (route.clone(), failure.clone())).collect();
        match self.send(&mut current, &gone, &made).await {
            Ok(()) => {
                written.added.clone_from(add);
                return written;
            }
            Err(error) if error.api_kind() != Some(ErrorKind::BadRequest) || add.is_empty() => {
                let failure = self.failure(&error);
                written.not_added = add.iter().map(|route| (*route, failure.clone())).collect();
                written.not_removed = not_removed(&failure);
                return written;
            }
            Err(_refused) => {}
        }
        if let Err(error) = self.send(&mut current, &gone, &[]).await {
            written.not_removed = not_removed(&self.failure(&error));
        }
        self.add_each(&mut current, add, &mut written).await;
        written
    }

    /// Makes one route at a time, up to a refusal that the next one would meet as well.
    async fn add_each(&self, current: &mut RouteTable, add: &[NodeRoute], written: &mut Written) {
        let mut rest = add.iter();
        while let Some(route) = rest.next() {
            match self.send(current, &[], &[of_node(route)]).await {
                Ok(()) => written.added.push(*route),
                Err(error) => {
                    let failure = self.failure(&error);
                    written.not_added.push((*route, failure.clone()));
                    if !error.is_about_this_route() {
                        written.not_added.extend(rest.by_ref().map(|route| (*route, failure.clone())));
                    }
                }
            }
        }
    }

    async fn send(
        &self,
        current: &mut RouteTable,
        remove: &[Route],
        add: &[Route],
    ) -> Result<(), WriteError> {
        if !self.atomic {
            return self.send_list(current, remove, add).await;
        }
        if !remove.is_empty() {
            self.neutron.remove_extra_routes(self.router_id, remove).await?;
        }
        if !add.is_empty() {
            self.neutron.add_extra_routes(self.router_id, add).await?;
        }
        Ok(())
    }

    /// Replaces the whole list, based on what is there at that moment.
    async fn send_list(
        &self,
        current: &mut RouteTable,
        remove: &[Route],
        add: &[Route],
    ) -> Result<(), WriteError> {
        for _ in 0..TRIES {
            let before: Vec<Route> = current.routes.iter().map(of_listed).collect();
            let mut after: Vec<Route> =
                before.iter().filter(|route| !remove.contains(route)).cloned().collect();
            after.extend(add.iter().filter(|route| !before.contains(route)).cloned());
            if after == before {
                return Ok(());
            }
            let changes = UpdateRouter { routes: Some(after) };
            match self.neutron.update_router(self.router_id, &changes, current.revision).await {
                Ok(router) => {
                    *current = of_router(&router);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Conflict(ConflictCause::Stale) => {
                    *current = of_router(&self.neutron.get_router(self.router_id).await?);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(WriteError::Overtaken)
    }

    fn failure(&self, error: &WriteError) -> Failure {
        let doing = format!("changing the routes of router {}", self.router_id);
        match error {
            WriteError::Refused(error) => of_call(error, doing, Missing::Race),
            WriteError::Overtaken => {
                Failure::new(FailureClass::Busy, format!("{doing}: others keep changing them"))
            }
        }
    }
}

/// Why routes are not written.
enum WriteError {
    Refused(ApiError),
    /// Somebody else was faster each time.
    Overtaken,
}

impl From<ApiError> for WriteError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl WriteError {
    fn api_kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Refused(error) => Some(error.kind()),
            Self::Overtaken => None,
        }
    }

    /// Whether another route may be accepted all the same.
    fn is_about_this_route(&self) -> bool {
        match self {
            Self::Refused(error) => {
                error.fault().is_some_and(|fault| fault.name.as_deref() == Some(INVALID_ROUTES))
            }
            Self::Overtaken => false,
        }
    }
}
