//! What is known of a load balancer, and which look is needed before the next step. Pure.
//!
//! | module | does |
//! | --- | --- |
//! | `advance` | what is there once a step is done |
//! | `check` | whether a check shows what is expected |
//! | `looks` | which look a plan needs before it goes on |
//! | `observation` | what was read, with the accepted steps applied to it |
//! | `absence` | what it means that load balancers that Services name are not there |

pub(crate) mod absence;
pub(crate) mod advance;
pub(crate) mod check;
pub(crate) mod looks;
mod observation;

pub(crate) use observation::Observation;
