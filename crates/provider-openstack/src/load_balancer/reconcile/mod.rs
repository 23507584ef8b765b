//! One reconciliation: of a Service that is to be served, and of one that goes.

pub(crate) mod addresses;
pub(crate) mod carry_out;
pub(crate) mod identity_tags;
mod release;
pub(crate) mod replacements;
pub(crate) mod report;
mod retain;
pub(crate) mod serve;
