//! What runs in the namespaces of pods and outside of the cluster.

pub(crate) mod gateway;
pub(crate) mod ingress;
pub(crate) mod pebble;
pub(crate) mod stream;
