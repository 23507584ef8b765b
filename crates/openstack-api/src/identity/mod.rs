//! Logging in to Keystone: credentials, tokens, the service catalog.
//!
//! The `openstack` crate's own password plugin does not support ids, trusts, domain or system scope, nor a forced new login, and
//! its `Debug` shows the password. So [`Keystone`] implements the crate's `AuthType` trait itself; the crate's `Session` stays in use.

mod credentials;
mod http_client;
mod keystone;
mod login;
mod proxy;
mod token;

pub use crate::error::{AuthError, TlsError};
pub use credentials::{
    ApplicationCredentialName, AuthOptions, ClientCertificate, Credentials, DomainRef, InDomain, PemFile,
    Reload, Scope, Tls,
};
pub use keystone::Keystone;
pub use openstack::InterfaceType;
pub use token::{Catalog, Token};

pub(crate) use http_client::{http_client, network_cause};
