//! Nova v2.1: servers and flavors.

mod microversion;
mod server;

use http::{HeaderName, HeaderValue};

pub use microversion::{Microversion, MicroversionRange};
pub use server::{ComputeFlavor, Server, ServerAddress, ServerFlavor, ServerStatus};

use crate::client::{Call, Client, Paths};
use crate::transport::Service;

const V2_1: Paths = Paths::new(Service::Compute, &["v2.1"]);

/// Calls to Nova. Without a chosen microversion every call has the behaviour of 2.1.
#[derive(Clone, Debug)]
pub struct Nova {
    client: Client,
    microversion: Option<Microversion>,
}

impl Nova {
    /// Calls over `client`, at microversion 2.1.
    pub const fn new(client: Client) -> Self {
        Self { client, microversion: None }
    }

    /// The same calls at another microversion. One that the service does not have makes it answer 406 to every call: see
    /// [`Nova::microversions`].
    pub const fn with_microversion(mut self, microversion: Microversion) -> Self {
        self.microversion = Some(microversion);
        self
    }

    fn get(&self, name: &'static str, segments: &[&str]) -> Call {
        let call = V2_1.get(name, segments);
        match self.microversion.map(|version| HeaderValue::from_str(&format!("compute {version}"))) {
            Some(Ok(value)) => call.header(HeaderName::from_static("openstack-api-version"), value),
            // Two numbers are always a valid header value.
            Some(Err(_)) | None => call,
        }
    }
}
