//! A whole world in one process on a paused clock: a Kubernetes, an OpenStack, and the program between them.

#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod canonical;
mod describe;
pub(crate) mod line;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod nodes;
mod objects;
#[allow(dead_code, reason = "the benchmark uses other parts")]
pub(crate) mod prediction;
mod world;

#[allow(unused_imports, reason = "the tests and the benchmark use different parts")]
pub(crate) use line::{Call, Side, Stop};
#[allow(unused_imports, reason = "the tests and the benchmark use different parts")]
pub(crate) use objects::{ADDRESS, ANNOTATION, PROXY, lb_name, node, service};
#[allow(unused_imports, reason = "the tests and the benchmark use different parts")]
pub(crate) use world::{OneFile, Settings, World};
