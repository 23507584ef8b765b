//! Routers and their extra routes.

use serde::{Deserialize, Serialize};

use super::{FixedIp, Neutron, V2, only_if_revision};
use crate::decode::null_as_default;
use crate::error::ApiError;

/// A router as Neutron shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Router {
    pub id: String,
    /// Extra routes, in no fixed order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub routes: Vec<Route>,
    /// The external gateway.
    pub external_gateway_info: Option<ExternalGateway>,
    /// Increases with each change; see [`Neutron::replace_extra_routes`].
    pub revision_number: Option<u64>,
}

/// A router's external gateway.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ExternalGateway {
    pub network_id: String,
    /// The router's addresses in the external network. Traffic without a floating IP comes from them.
    #[serde(default, deserialize_with = "null_as_default")]
    pub external_fixed_ips: Vec<FixedIp>,
}

/// An extra route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// The network, as a CIDR.
    pub destination: String,
    /// The address of the next hop, which must be on a network of the router.
    pub nexthop: String,
}

#[derive(Serialize)]
struct Routes<'a> {
    routes: &'a [Route],
}

impl Neutron {
    pub async fn get_router(&self, id: &str) -> Result<Router, ApiError> {
        self.client.fetch(&V2.get("router_get", &["routers", id]), "router").await
    }

    /// Replaces all extra routes of a router. With `revision`, only if the router still has that revision.
    ///
    /// # Errors
    /// [`crate::ConflictCause::Stale`] if the router has another revision; any other [`ApiError`].
    pub async fn replace_extra_routes(
        &self,
        router_id: &str,
        routes: &[Route],
        revision: Option<u64>,
    ) -> Result<Router, ApiError> {
        let call = V2.put("router_update", &["routers", router_id]).body("router", &Routes { routes });
        self.client.fetch(&only_if_revision(call, revision), "router").await
    }

    /// Adds routes and keeps the others; an existing route is no error. Needs the extension `extraroute-atomic`.
    pub async fn add_extra_routes(&self, router_id: &str, routes: &[Route]) -> Result<Router, ApiError> {
        let call = V2
            .put("router_update", &["routers", router_id, "add_extraroutes"])
            .body("router", &Routes { routes });
        self.client.fetch(&call, "router").await
    }

    /// Removes routes and keeps the others; a missing route is no error. Needs the extension `extraroute-atomic`.
    pub async fn remove_extra_routes(&self, router_id: &str, routes: &[Route]) -> Result<Router, ApiError> {
        let call = V2
            .put("router_update", &["routers", router_id, "remove_extraroutes"])
            .body("router", &Routes { routes });
        self.client.fetch(&call, "router").await
    }
}
