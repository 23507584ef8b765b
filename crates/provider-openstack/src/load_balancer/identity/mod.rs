//! Whose a load balancer is: ids that somebody wrote or published, what a controller wrote into Services, and the judgement. Pure.

pub mod ids;
pub(crate) mod outputs;
pub(crate) mod ownership;
