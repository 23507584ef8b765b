//! What tests may rely on beyond the recordings: time, faults, older versions, other people, real connections.

mod client;
mod faults;
mod forwarding;
mod identity;
mod network;
mod operations;
mod tcp_face;
mod versions;
