//! The scenarios of the contract with OCCM, by section. Each test is named by its id; its documentation says what it
//! shows, and whether that is the same as in OCCM or better.

mod changes;
mod classes;
mod creation;
mod deletion;
mod families;
mod floating;
mod framework;
mod health_monitors;
mod node_pass;
mod nodes;
mod rename;
mod routes;
mod security_groups;
mod serial;
pub(crate) mod setup;
mod sharing;
mod source_ranges;
