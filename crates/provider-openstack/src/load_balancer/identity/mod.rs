//! Determines who owns a load balancer: ids that were written or published, what controllers wrote into Services, and the verdict.
//! Pure.

pub mod ids;
pub(crate) mod outputs;
pub(crate) mod ownership;
