//! Real forwarding: what an ACTIVE listener of a load balancer does with connections.
//!
//! [`Wanted`] says what listens where and for whom; [`Forwarder::apply`] makes sockets agree with it. Nothing here knows the
//! world of the simulator. The behaviour is that of HAProxy under Octavia's templates: PROXY headers and health checks were
//! compared byte by byte with those of HAProxy 2.6.
//!
//! No privileges are needed: every address and port of a load balancer is stood for by a free port on loopback, which
//! [`Forwarder::endpoint`] names; two translations turn the members' addresses into ones that can be dialled here and the
//! clients' loopback addresses into the ones they have in the world.

mod connection;
mod environment;
mod forwarder;
mod health;
mod http;
mod listener;
mod probe;
mod proxy_header;
mod statistics;
mod upstream;
mod wanted;

pub use forwarder::{BindError, Forwarder};
pub use health::MemberStatus;
pub use statistics::{ListenerStatistics, Statistics};
pub use wanted::{
    Address, ExpectedCodes, Listener, ListenerProtocol, Member, Monitor, MonitorKind, Pool, PoolProtocol,
    Wanted,
};

/// The state of forwarding: off until started.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {}
