//! An OpenStack to run against: Keystone, Nova, Neutron, Octavia and Barbican in memory.
//!
//! Two faces: [`Sim::call`] takes requests without a socket and works under a paused tokio clock; [`Sim::serve`] serves all
//! services on a TCP port. The behaviour, error texts included, is that of recorded exchanges with the real services, which
//! the contract test replays.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use openstack_ccm_openstack_sim::Sim;
//!
//! let sim = Sim::new();
//! let request = http::Request::builder()
//!     .uri("/v2.0/lbaas/loadbalancers")
//!     .header("x-auth-token", sim.token())
//!     .body(bytes::Bytes::new())?;
//! let response = sim.call("load-balancer", request).await?;
//! assert_eq!(response.status(), 200);
//! # Ok(())
//! # }
//! ```

mod actor;
mod barbican;
mod builder;
mod client_config;
mod controls;
mod end_state;
mod faults;
mod filters;
pub mod forward;
mod front_end;
mod inspect;
mod keystone;
mod lacks;
mod log;
mod neutron;
mod nova;
mod octavia;
mod odd;
mod paging;
mod python_repr;
mod reply;
mod request;
mod seed;
mod server;
mod server_controls;
mod service;
mod sim;
mod traffic;
mod world;

pub use actor::Actor;
pub use builder::SimBuilder;
pub use faults::{Fault, FaultId, Faults, WorkerFault};
pub use forward::{Delivery, Loss, Packet, Transport};
pub use front_end::Rewrite;
pub use lacks::Lack;
pub use log::{Call, CallLog};
pub use octavia::capacity::Capacity;
pub use octavia::major_version::OctaviaRelease;
pub use odd::OddCloud;
pub use seed::{Node, PASSWORD, PROJECT, Seed, USER};
pub use server::Server;
pub use service::Service;
pub use sim::{ConnectionDropped, Sim};
pub use traffic::{
    FloatingIpTraffic, ListenerTraffic, LoadBalancerTraffic, MemberTraffic, PoolTraffic, Traffic, Write,
};
pub use world::World;
pub use world::operation::OperationKind;
