//! Writes the extra routes of a router.
//!
//! With the extension `extraroute-atomic` a request contains only the changed routes. Without it, the whole list is replaced; the
//! request then contains the revision of the list that was read, so that a route that another client added meanwhile is not lost.

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::route::{Applied, ListedRoute, NodeRoute, RouteTable};
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::neutron::{Neutron, Route, Router};

use crate::limits::MAX_TRIES;
use crate::load_balancer::failure::{Missing, of_call};

/// Neutron's error type for an invalid route; other routes of the request may be valid.
const INVALID_ROUTES: &str = "InvalidRoutes";

/// The extra routes of a router.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) neutron: &'a Neutron,
    pub(super) router_id: &'a str,
    pub(super) atomic: bool,
}

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
    /// Deletes and adds routes. If one of several new routes is refused, the others are still added. Returns the added routes;
    /// notes failures in `applied`.
    pub(super) async fn write(
        &self,
        table: &RouteTable,
        add: &[NodeRoute],
        remove: &[ListedRoute],
        applied: &mut Applied,
    ) -> Vec<NodeRoute> {
        let mut current = table.clone();
        let gone: Vec<Route> = remove.iter().map(of_listed).collect();
        let made: Vec<Route> = add.iter().map(of_node).collect();
        let Err(refused) = self.send(&mut current, &gone, &made).await else { return add.to_vec() };
        let one_by_one =
            refused.0.as_ref().map(ApiError::kind) == Some(ErrorKind::BadRequest) && !add.is_empty();
        let removed = if one_by_one { self.send(&mut current, &gone, &[]).await } else { Err(refused) };
        if let Err(error) = removed {
            let failure = self.failure(&error);
            applied.left.extend(remove.iter().map(|route| (route.clone(), failure.clone())));
            if !one_by_one {
                applied.missing.extend(add.iter().map(|route| (*route, failure.clone())));
                return Vec::new();
            }
        }
        self.add_each(&mut current, add, applied).await
    }

    /// Adds one route at a time, up to a refusal that the next one would meet too.
    async fn add_each(
        &self,
        current: &mut RouteTable,
        add: &[NodeRoute],
        applied: &mut Applied,
    ) -> Vec<NodeRoute> {
        let (mut added, mut rest) = (Vec::new(), add.iter());
        while let Some(route) = rest.next() {
            let Err(error) = self.send(current, &[], &[of_node(route)]).await else {
                added.push(*route);
                continue;
            };
            let failure = self.failure(&error);
            applied.missing.push((*route, failure.clone()));
            if !error.is_about_this_route() {
                applied.missing.extend(rest.by_ref().map(|route| (*route, failure.clone())));
            }
        }
        added
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

    /// Replaces the whole list, based on its present content.
    async fn send_list(
        &self,
        current: &mut RouteTable,
        remove: &[Route],
        add: &[Route],
    ) -> Result<(), WriteError> {
        for _ in 0..MAX_TRIES {
            let before: Vec<Route> = current.routes.iter().map(of_listed).collect();
            let mut after: Vec<Route> =
                before.iter().filter(|route| !remove.contains(route)).cloned().collect();
            after.extend(add.iter().filter(|route| !before.contains(route)).cloned());
            if after == before {
                return Ok(());
            }
            match self.neutron.replace_extra_routes(self.router_id, &after, current.revision).await {
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
        Err(WriteError(None))
    }

    fn failure(&self, error: &WriteError) -> Failure {
        let doing = format!("changing the routes of router {}", self.router_id);
        match &error.0 {
            Some(error) => of_call(error, doing, Missing::Race),
            None => Failure::new(FailureClass::Busy, format!("{doing}: other clients keep changing them")),
        }
    }
}

/// Why routes were not written: Neutron's error; absent if another client was faster each time.
struct WriteError(Option<ApiError>);

impl From<ApiError> for WriteError {
    fn from(error: ApiError) -> Self {
        Self(Some(error))
    }
}

impl WriteError {
    /// Returns whether another route may still be accepted.
    fn is_about_this_route(&self) -> bool {
        let fault = self.0.as_ref().and_then(ApiError::fault);
        fault.is_some_and(|fault| fault.name.as_deref() == Some(INVALID_ROUTES))
    }
}
