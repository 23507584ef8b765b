//! Plans against a small model of Octavia and Neutron: golden texts for each kind of change, and properties over
//! generated states.

pub(crate) mod cloud;
mod golden;
pub(crate) mod properties;
mod recovery;
pub(crate) mod shape;
