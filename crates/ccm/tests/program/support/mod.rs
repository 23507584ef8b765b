//! A whole world in one process on a paused clock: a Kubernetes, an OpenStack, and the program between them.

mod describe;
pub(crate) mod line;
mod objects;
mod world;

pub(crate) use line::{Call, Side, Stop};
pub(crate) use objects::{ADDRESS, ANNOTATION, PROXY, lb_name, node, service};
pub(crate) use world::{Settings, World};
