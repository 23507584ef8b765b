//! Plans against a small model of Octavia and Neutron: golden texts for each kind of change, and properties over
//! generated states.

mod cloud;
mod golden;
mod properties;
mod recovery;
mod shape;
