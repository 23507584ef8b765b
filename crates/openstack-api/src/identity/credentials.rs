//! The settings of a login.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openstack::InterfaceType;
use secrecy::SecretString;
use url::Url;

use crate::service::Service;

/// A domain, by id or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainRef {
    /// Unique id; `default` for the first domain of most clouds.
    Id(String),
    /// Unique name.
    Name(String),
}

/// A user or a project, by id, or by name within a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InDomain {
    /// Unique id.
    Id(String),
    /// Name within a domain.
    Name {
        /// Name of the user or the project.
        name: String,
        domain: DomainRef,
    },
}

/// An application credential, by id, or by name with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationCredentialName {
    /// Unique id.
    Id(String),
    /// Name, unique for its user.
    Name {
        name: String,
        /// The user who created it.
        user: InDomain,
    },
}

/// The credentials of a login. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// User and password.
    Password {
        user: InDomain,
        /// The user's password.
        password: SecretString,
    },
    /// An application credential. It is bound to a project: Keystone refuses a requested scope, so none is sent.
    ApplicationCredential { name: ApplicationCredentialName, secret: SecretString },
    /// A ready-made token. With a scope it is exchanged for a token of that scope, without one it is used as it is; it cannot be
    /// renewed after it expires.
    Token { token: SecretString },
}

/// The scope of the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A project: the usual scope of a controller.
    Project(InDomain),
    /// A whole domain.
    Domain(DomainRef),
    /// The whole deployment.
    System,
    /// A trust; the login acts with the trust's roles, as its trustee.
    Trust { trust_id: String },
    /// No scope: Keystone uses the user's default project, if there is one.
    Unscoped,
}

/// Client certificate and its key.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate and its chain.
    pub certificate_file: PemFile,
    /// The private key.
    pub key_file: PemFile,
}

/// A PEM file.
#[derive(Clone, Debug)]
pub struct PemFile {
    /// Where it is, or what it is called.
    pub path: PathBuf,
    /// What it contains, if it is not on this machine.
    pub content: Option<SecretString>,
}

impl PemFile {
    /// A file of this machine.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), content: None }
    }
}

/// How certificates of HTTPS servers are verified. Given CA certificates replace the system's; without them the system's are used.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// PEM file with CA certificates.
    pub ca_file: Option<PemFile>,
    /// PEM text with CA certificates; used when `ca_file` is not set.
    pub ca_pem: Option<String>,
    /// Accepts any certificate. For test clouds only.
    pub insecure: bool,
    /// The certificate for servers that request one.
    pub client_certificate: Option<ClientCertificate>,
}

/// Reads the configuration again, because its credentials may have changed. The error is a text for the log.
#[derive(Clone)]
pub struct Reload(Arc<dyn Fn() -> Result<AuthOptions, String> + Send + Sync>);

impl Reload {
    /// Creates it from a function, which may block.
    pub fn new(read: impl Fn() -> Result<AuthOptions, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(super) fn read(&self) -> Result<AuthOptions, String> {
        (self.0)()
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reload").finish_non_exhaustive()
    }
}

/// The settings of the connection to a cloud.
#[derive(Clone, Debug)]
pub struct AuthOptions {
    /// Keystone's address, with or without a version path.
    pub auth_url: String,
    /// The credentials of the login.
    pub credentials: Credentials,
    pub scope: Scope,
    /// The region of the endpoints; `None` takes the first match in the catalog.
    pub region: Option<String>,
    /// The interface type of the endpoints.
    pub interface: InterfaceType,
    /// Addresses of services that replace those in the catalog.
    pub endpoints: BTreeMap<Service, Url>,
    /// How certificates of HTTPS servers are verified.
    pub tls: Tls,
    /// The timeout of one HTTP exchange, from connecting to the last byte.
    pub request_timeout: Duration,
    /// The products of the `User-Agent` header, in order; this crate's own product is appended.
    pub user_agent: Vec<String>,
    /// Source of other credentials, used when Keystone refuses these.
    pub reload: Option<Reload>,
}

impl AuthOptions {
    /// Default of `request_timeout`: the creation of a load balancer waits for Neutron and takes many seconds on a busy cloud.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

    /// Creates options with all settings at their defaults.
    pub fn new(auth_url: impl Into<String>, credentials: Credentials, scope: Scope) -> Self {
        Self {
            auth_url: auth_url.into(),
            credentials,
            scope,
            region: None,
            interface: InterfaceType::default(),
            endpoints: BTreeMap::new(),
            tls: Tls::default(),
            request_timeout: Self::DEFAULT_REQUEST_TIMEOUT,
            user_agent: Vec::new(),
            reload: None,
        }
    }
}
