//! The settings of one Service, from its fields, annotations, class and cloud.conf.

// Clippy's permission for tests stops at functions that several tests share.
#![allow(clippy::unwrap_used, clippy::panic)]

mod fixture;
mod floating_subnets;
mod messages;
mod networks;
mod nodes;
mod ports;
mod properties;
mod reference;
mod release;
mod values;
