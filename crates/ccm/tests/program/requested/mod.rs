//! What users of OCCM have asked for, and OCCM does not do.

mod local_monitors;
mod member_addresses;
mod metrics;
mod ovn;
mod tags;
