//! Typed OpenStack calls: the only place that knows URLs and JSON of OpenStack.
//!
//! Requests are sent by a transport of this crate's own (docs/adr/0002): errors of the `openstack` crate's session hide whether a request
//! can have been processed. That crate supplies the types of the catalog and of authentication, and a session for calls that are not here.
//!
//! | Module | What |
//! |---|---|
//! | [`identity`] | credentials and Keystone |
//! | [`transport`] | the seam under which tests replace HTTP |
//! | [`client`] | retries, metrics, logging |
//! | [`cache`] | answers that many ask for, shared and kept for a while |
//! | [`dry_run`] | a cloud to plan on: reads are real, writes are recorded |
//! | [`octavia`], [`neutron`], [`nova`], [`barbican`] | the calls |
//! | [`optional`] | what calls there are, and what is known of those that a cloud can lack |
//! | [`error`] | what a failed call means |
//!
//! Every call may fail with any [`ApiError`]; where its documentation names one, that one says something about the object. A
//! list comes whole or not at all.
//!
//! ```
//! use openstack_ccm_openstack_api::client::Client;
//! use openstack_ccm_openstack_api::octavia::{LoadBalancerFilter, Octavia};
//! use openstack_ccm_openstack_api::transport::{FnTransport, Response};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let transport = FnTransport::new(|_request| async {
//!     let body = r#"{"loadbalancers": [], "loadbalancers_links": []}"#;
//!     Ok(Response { status: http::StatusCode::OK, headers: Default::default(), body: body.into() })
//! });
//! let octavia = Octavia::new(Client::over(transport));
//! let found = octavia.list_load_balancers(&LoadBalancerFilter::name("web")).await.unwrap();
//! assert!(found.is_empty());
//! # });
//! ```

pub mod barbican;
mod body;
pub mod cache;
pub mod change;
pub mod client;
mod cloud;
mod decode;
pub mod dry_run;
mod endpoint;
pub mod error;
pub mod identity;
pub mod neutron;
pub mod nova;
pub mod octavia;
mod open_enum;
pub mod optional;
mod service;
mod session_transport;
pub mod transport;

pub use change::Change;
pub use cloud::{OpenStack, connect, connect_through};
pub use error::{ApiError, ConflictCause, ErrorKind, Fault};
pub use session_transport::SessionTransport;
