//! What users of OCCM have asked for, and OCCM does not do.

mod addresses;
mod local_monitors;
mod member_addresses;
mod metrics;
mod ovn;
mod tags;
