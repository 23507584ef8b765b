//! Logging in to Keystone: credentials, tokens, the service catalog.
//!
//! The `openstack` crate's own password plugin knows neither ids, trusts, domain or system scope nor a forced new log-in, so
//! [`Keystone`] implements its `AuthType` trait anew; the crate's `Session`, endpoint filters and endpoint cache stay in use.

mod auth_error;
mod credentials;

pub use auth_error::{AuthError, TlsError};
pub use credentials::{
    ApplicationCredentialName, AuthOptions, ClientCertificate, Credentials, DomainRef, Interface, ProjectRef,
    Scope, Tls, UserRef,
};
