//! Neutron v2.0: networks, subnets, ports, floating IPs, security groups, routers.
//!
//! The typed calls of the `openstack` crate for some of these are not used: its `Port` fails on an allowed address pair that is a
//! CIDR and on the status `N/A`, and one such port makes the whole list fail; its look-ups fall back from id to name; and its
//! `Cloud` needs a session, so that code above it could not be tested without sockets. All services use
//! [`crate::transport::Transport`] in the same way; the crate's session, endpoint cache and authentication trait lie below it.

mod floating_ip;
mod network;
mod port;
mod router;
mod security_group;
mod tag;

pub use floating_ip::{CreateFloatingIp, FloatingIp, FloatingIpFilter, PortDetails};
pub use network::{Extension, Network, NetworkFilter, Subnet, SubnetFilter};
pub use port::{
    AllowedAddressPair, FixedIp, Port, PortFilter, PortStatus, SubPort, TrunkDetails, UpdatePort,
};
pub use router::{ExternalGateway, Route, Router};
pub use security_group::{
    CreateSecurityGroup, CreateSecurityGroupRule, Direction, EtherType, SecurityGroup, SecurityGroupFilter,
    SecurityGroupRule,
};
pub use tag::Tagged;

use http::HeaderValue;
use http::header::IF_MATCH;

use crate::client::{Call, Client, Paths};
use crate::optional::OptionalPart;
use crate::transport::Service;

const V2: Paths = Paths::new(Service::Network, &["v2.0"]);

/// Calls to Neutron.
#[derive(Clone, Debug)]
pub struct Neutron {
    client: Client,
}

impl Neutron {
    /// Returns whether the cloud is known to lack a part.
    pub fn lacks(&self, part: OptionalPart) -> bool {
        self.client.lacks(part)
    }

    /// Creates a Neutron client over `client`.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }
}

/// Makes a call fail with [`crate::ConflictCause::Stale`] unless the object still has this revision.
fn only_if_revision(call: Call, revision: Option<u64>) -> Call {
    match revision.map(|number| HeaderValue::from_str(&format!("revision_number={number}"))) {
        Some(Ok(value)) => call.header(IF_MATCH, value),
        // A number is always a valid header value.
        Some(Err(_)) | None => call,
    }
}
