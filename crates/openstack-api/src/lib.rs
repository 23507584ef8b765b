//! Typed OpenStack calls: the only place that knows URLs and JSON of OpenStack.
//!
//! This crate's own transport sends the requests (docs/adr/0002): errors of the `openstack` crate's session hide whether a request
//! may have been processed. That crate supplies the types of catalog and authentication, and a session for calls that this crate lacks.
//!
//! | Module | What |
//! |---|---|
//! | [`identity`] | credentials and Keystone |
//! | [`transport`] | the interface at which tests replace HTTP |
//! | [`client`] | retries, metrics, logging |
//! | [`cache`] | answers that many callers share, kept for a while |
//! | [`dry_run`] | a cloud for dry runs: reads are real, writes are recorded |
//! | [`octavia`], [`neutron`], [`nova`], [`barbican`] | the calls |
//! | [`optional`] | the list of all calls, and which optional ones a cloud lacks |
//! | [`error`] | errors, and their meaning for the caller |
//!
//! Every call may fail with any [`ApiError`]; an error that its documentation names says something about the object. A list is
//! returned whole or not at all.
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

pub use cloud::{OpenStack, connect, connect_through};
pub use error::{ApiError, ConflictCause, ErrorKind, Fault};
pub use session_transport::SessionTransport;
