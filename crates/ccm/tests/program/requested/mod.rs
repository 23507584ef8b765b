//! What users of OCCM have asked for, and OCCM does not do.

mod addresses;
mod by_address;
mod local_monitors;
mod member_addresses;
mod metrics;
mod ovn;
mod provider;
mod tags;
