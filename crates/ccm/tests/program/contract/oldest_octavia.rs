//! The scenarios that make load balancers, on the oldest Octavia.

use openstack_ccm_openstack_sim::OctaviaRelease;

use super::setup;

const RELEASE: OctaviaRelease = OctaviaRelease::V10;

#[path = "creation.rs"]
#[allow(clippy::duplicate_mod, reason = "the same scenarios, with the release above")]
mod creation;
