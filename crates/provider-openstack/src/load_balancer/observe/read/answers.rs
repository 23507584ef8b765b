//! What the answer to a read means where it is an error.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ApiError;

pub(super) use crate::load_balancer::failure::present;
use crate::load_balancer::failure::{self, Missing};

/// The failure of a read.
pub(in crate::load_balancer::observe) fn reading(error: &ApiError) -> Failure {
    failure::of_call(error, "reading the load balancer", Missing::Race)
}
