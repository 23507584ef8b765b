//! The cloud-controller-manager as a library: command line, wiring and endpoints. The binary is a thin shell around
//! it, and tests run the whole program in process.

pub mod admin;
pub mod args;
pub mod health;
pub mod logging;
pub mod backoff;
pub mod call_metrics;
pub mod check_config;
pub mod kubernetes;
