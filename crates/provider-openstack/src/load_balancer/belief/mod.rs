//! What is believed of load balancers without asking the cloud, and when that ends.

pub(crate) mod cached;
pub(crate) mod store;
mod unconfirmed;
