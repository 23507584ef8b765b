//! The load balancer of a Service, from what it wants to what is done in the cloud.
//!
//! | module | step |
//! | --- | --- |
//! | [`annotations`] | all annotations, as one table |
//! | [`settings`] | what the Service asks for: fields, annotations, class and cloud.conf as one |
//! | [`names`] | names, descriptions and tags of what is made, and whose they are |
//! | [`floating_subnet`] | which subnets a floating IP may come from |
//! | [`model`] | what is wanted and what is there, in the same comparable types |
//! | [`plan`] | the difference, as steps in an order that is right wherever it stops |
//! | [`step`] | the steps: one call to the cloud each |

pub mod annotations;
mod apply;
mod failure;
pub mod floating_subnet;
pub mod model;
pub mod names;
mod observe;
pub mod plan;
mod poller;
mod resolve;
pub mod settings;
pub mod step;
mod turns;
