//! The program under test in its roles, and the one that it replaces.

pub(crate) mod controller;
pub(crate) mod guide;
pub(crate) mod kept;
pub(crate) mod occm;
pub(crate) mod operator;
pub(crate) mod terminal;
