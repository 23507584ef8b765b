//! What tests may rely on beyond the recordings: time, faults, older versions, other people, real connections.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what it expects by panicking, its helpers too"
)]

mod client;
mod faults;
mod forwarding;
mod identity;
mod network;
mod operations;
mod packets;
mod tcp_face;
mod versions;
