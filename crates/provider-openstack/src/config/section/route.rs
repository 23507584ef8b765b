//! `[Route]`.

use super::key::{Field, Key, key};

/// Routes of pod networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Router that gets a route per node; without it there is no route support.
    pub router_id: Option<String>,
}

impl Route {
    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[key(
        "router-id",
        Field::Text(|route| &mut route.router_id),
        "Neutron router that gets a route for the pod network of each node. Without it there is no route support.",
    )];
}
