//! What is there: from what reconciliations know, from bulk lists, or read.

pub(crate) mod allowed;
pub(crate) mod bulk_lists;
mod cached;
pub(crate) mod listed;
pub(crate) mod missing;
pub(crate) mod read;
