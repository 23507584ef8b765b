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
    /// Way to the outside.
    pub external_gateway_info: Option<ExternalGateway>,
    /// Rises with each change; see [`Neutron::replace_extra_routes`].
    pub revision_number: Option<u64>,
}

/// A router's way to the outside.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ExternalGateway {
    pub network_id: String,
    /// Addresses of the router there. Traffic without a floating IP comes from them.
    #[serde(default, deserialize_with = "null_as_default")]
    pub external_fixed_ips: Vec<FixedIp>,
}

/// An extra route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// Network, as a CIDR.
    pub destination: String,
    /// Address of the next hop; must be on a network of the router.
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

    /// Makes the extra routes of a router exactly these. With `revision` only if the router still has that revision.
    ///
    /// # Errors
    /// [`crate::ConflictCause::Stale`] when the revision is another one; any other [`ApiError`].
    pub async fn replace_extra_routes(
        &self,
        router_id: &str,
        routes: &[Route],
        revision: Option<u64>,
    ) -> Result<Router, ApiError> {
        let call = V2.put("router_update", &["routers", router_id]).body("router", &Routes { routes });
        self.client.fetch(&only_if_revision(call, revision), "router").await
    }

    /// Adds routes without touching others; one that is there already is no error. Needs the extension `extraroute-atomic`.
    pub async fn add_extra_routes(&self, router_id: &str, routes: &[Route]) -> Result<Router, ApiError> {
        let call = V2
            .put("router_update", &["routers", router_id, "add_extraroutes"])
            .body("router", &Routes { routes });
        self.client.fetch(&call, "router").await
    }

    /// Takes routes away without touching others; one that is gone already is no error. Needs the extension `extraroute-atomic`.
    pub async fn remove_extra_routes(&self, router_id: &str, routes: &[Route]) -> Result<Router, ApiError> {
        let call = V2
            .put("router_update", &["routers", router_id, "remove_extraroutes"])
            .body("router", &Routes { routes });
        self.client.fetch(&call, "router").await
    }
}
