//! Looks up what the tree needs to know.

mod external_network;
mod node_subnet;
mod remembered;
