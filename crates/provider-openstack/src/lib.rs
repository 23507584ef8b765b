//! The OpenStack provider: its configuration, how it turns what a Service wants into a load balancer, how it finds the
//! servers behind nodes, and how it keeps the routes to the pods of nodes. [`cloud::ENTRY`] is what a binary lists.

pub mod cloud;
pub mod config;
pub mod instances;
mod limits;
pub mod load_balancer;
pub mod provider_id;
pub mod released;
pub mod routes;
mod user_tag;
