//! What is known of a load balancer, and which look is needed before the next step. Pure.
//!
//! | module | does |
//! | --- | --- |
//! | `advance` | what exists after a step |
//! | `check` | whether statuses show what is expected |
//! | `looks` | which look a plan needs before it continues |
//! | `observation` | what was read, with the accepted steps applied to it |
//! | `absence` | what it means that load balancers which Services name are missing |

pub(crate) mod absence;
pub(crate) mod advance;
pub(crate) mod check;
pub(crate) mod looks;
mod observation;

pub(crate) use observation::Observation;
