//! The scenarios of the contract with OCCM, by section. Each test is named by its id; its documentation says what it
//! shows, and whether that is the same as in OCCM or better.

mod changes;
mod classes;
mod creation;
mod deletion;
mod families;
mod floating;
mod framework;
mod health_monitors;
mod node_pass;
mod nodes;
mod oldest_octavia;
mod rename;
mod routes;
mod security_groups;
mod serial;
pub(crate) mod setup;
mod sharing;
mod source_ranges;

use openstack_ccm_openstack_sim::OctaviaRelease;

/// The Octavia of the scenarios that make load balancers.
const RELEASE: OctaviaRelease = OctaviaRelease::V19;
