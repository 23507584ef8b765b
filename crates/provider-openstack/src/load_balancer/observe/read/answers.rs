//! What the answer to a read means where it is an error.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ApiError;

use crate::load_balancer::failure::{self, Missing};

/// An object deleted between two reads counts as absent.
pub(super) fn present<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The failure of a read.
pub(in crate::load_balancer::observe) fn reading(error: &ApiError) -> Failure {
    failure::of_call(error, "reading the load balancer", Missing::Race)
}
