//! The OpenStack provider: its configuration, and how it turns what a Service wants into a load balancer.

pub mod config;
pub mod load_balancer;
