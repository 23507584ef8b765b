//! `[Global]`: login and endpoints.

use std::collections::BTreeMap;

use openstack_ccm_openstack_api::identity::InterfaceType;
use openstack_ccm_openstack_api::transport::Service;
use secrecy::SecretString;
use url::Url;

use super::key::{Field, Key, Parsed, defaulting_key, key, key_since_0_3, text};
use crate::config::error::ValueFault;

/// Login and endpoints. `Debug` output contains no secret.
#[derive(Clone, Debug, Default)]
pub struct Global {
    /// URL of Keystone, with or without a version path.
    pub auth_url: Option<String>,
    /// User by name.
    pub username: Option<String>,
    pub user_id: Option<String>,
    /// The user's password.
    pub password: Option<SecretString>,
    /// Project by id; overrides the name.
    pub tenant_id: Option<String>,
    /// Project by name.
    pub tenant_name: Option<String>,
    /// The project's domain by id.
    pub tenant_domain_id: Option<String>,
    /// The project's domain by name.
    pub tenant_domain_name: Option<String>,
    /// The user's domain by id.
    pub user_domain_id: Option<String>,
    /// The user's domain by name.
    pub user_domain_name: Option<String>,
    /// Default domain of user and project; without a project, the scope.
    pub domain_id: Option<String>,
    /// Like `domain_id`, by name.
    pub domain_name: Option<String>,
    pub application_credential_id: Option<String>,
    /// Application credential by name, which needs the user.
    pub application_credential_name: Option<String>,
    pub application_credential_secret: Option<SecretString>,
    /// Existing token.
    pub token: Option<SecretString>,
    /// Trust that is the scope of the login.
    pub trust_id: Option<String>,
    /// User of the trust login; replaces `user_id` and `username`.
    pub trustee_id: Option<String>,
    /// Password of the trustee; replaces `password`.
    pub trustee_password: Option<SecretString>,
    /// Region of the endpoints; without one, the first in the catalog.
    pub region: Option<String>,
    /// Interface type of the endpoints; public by default.
    pub os_endpoint_type: Option<InterfaceType>,
    /// Endpoints of services that replace those of the catalog.
    pub endpoints: BTreeMap<Service, Url>,
    /// PEM file with the CA certificates that replace the system's.
    pub ca_file: Option<String>,
    /// PEM text with CA certificates, used without `ca_file`.
    pub ca_file_contents: Option<String>,
    /// PEM file of the client certificate.
    pub cert_file: Option<String>,
    /// PEM file of the client certificate's key.
    pub key_file: Option<String>,
    /// Whether any server certificate is accepted; by default not.
    pub tls_insecure: Option<bool>,
    /// Whether clouds.yaml fills empty keys of this section.
    pub use_clouds: bool,
    /// Path of clouds.yaml.
    pub clouds_file: Option<String>,
    /// Name of the entry in clouds.yaml.
    pub cloud: Option<String>,
    /// Whether the scope is the whole system; set only by clouds.yaml.
    pub system_scope: bool,
    /// The kind of login in clouds.yaml. If absent, the credentials determine it.
    pub login_kind: Option<LoginKind>,
}

/// A kind of login, `auth_type` in clouds.yaml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// User and password.
    Password,
    /// Existing token.
    Token,
    ApplicationCredential,
}

impl Global {
    pub const KEYS: &'static [Key<Self>] = &[
        text(
            "auth-url",
            |global| &mut global.auth_url,
            "Address of Keystone, with or without a version path, such as `https://keystone.example.org:5000/v3`. Required.",
        ),
        text("username", |global| &mut global.username, "User by name; needs the user's domain."),
        text("user-id", |global| &mut global.user_id, "User by id; wins over `username`."),
        key(
            "password",
            Field::Secret(|global| &mut global.password),
            "Password of the user. Put it into quotes if it contains `#`, `;`, `\\` or `\"`.",
        ),
        text("tenant-id", |global| &mut global.tenant_id, "Project by id; wins over `tenant-name`."),
        text("tenant-name", |global| &mut global.tenant_name, "Project by name; needs the project's domain."),
        text("tenant-domain-id", |global| &mut global.tenant_domain_id, "Domain of the project by id."),
        text("tenant-domain-name", |global| &mut global.tenant_domain_name, "Domain of the project by name."),
        text("user-domain-id", |global| &mut global.user_domain_id, "Domain of the user by id."),
        text("user-domain-name", |global| &mut global.user_domain_name, "Domain of the user by name."),
        text(
            "domain-id",
            |global| &mut global.domain_id,
            "With a project or an application credential: domain of user and project if theirs are not set. Otherwise: the domain as the scope of the login.",
        ),
        text("domain-name", |global| &mut global.domain_name, "Like `domain-id`, by name."),
        text(
            "application-credential-id",
            |global| &mut global.application_credential_id,
            "Application credential by id. It brings its own project: no scope is sent.",
        ),
        text(
            "application-credential-name",
            |global| &mut global.application_credential_name,
            "Application credential by name; needs the user and the user's domain.",
        ),
        key(
            "application-credential-secret",
            Field::Secret(|global| &mut global.application_credential_secret),
            "Secret of the application credential.",
        ),
        key(
            "token",
            Field::Secret(|global| &mut global.token),
            "Ready-made token. It cannot be renewed when it expires; for tests.",
        ),
        text("trust-id", |global| &mut global.trust_id, "Trust that the login is for. Replaces the project."),
        text(
            "trustee-id",
            |global| &mut global.trustee_id,
            "User id for the trust login; replaces `user-id` and `username`.",
        ),
        key(
            "trustee-password",
            Field::Secret(|global| &mut global.trustee_password),
            "Password for the trust login; replaces `password`.",
        ),
        text(
            "region",
            |global| &mut global.region,
            "Region of the endpoints. Without it the first matching endpoint of the catalog is used.",
        ),
        defaulting_key(
            "os-endpoint-type",
            Field::Form { form: "word", set: endpoint_type },
            "public",
            "Kind of the endpoints: `public`, `internal` or `admin`.",
        ),
        key_since_0_3(
            "endpoint-load-balancer",
            Field::Form { form: "URL", set: |global, text| endpoint(global, Service::LoadBalancer, text) },
            "",
            "Address of Octavia, in place of the one that the catalog lists.",
        ),
        key_since_0_3(
            "endpoint-network",
            Field::Form { form: "URL", set: |global, text| endpoint(global, Service::Network, text) },
            "",
            "Address of Neutron, in place of the one that the catalog lists.",
        ),
        key_since_0_3(
            "endpoint-compute",
            Field::Form { form: "URL", set: |global, text| endpoint(global, Service::Compute, text) },
            "",
            "Address of Nova, in place of the one that the catalog lists.",
        ),
        key_since_0_3(
            "endpoint-identity",
            Field::Form { form: "URL", set: |global, text| endpoint(global, Service::Identity, text) },
            "",
            "Address of Keystone to log in at, in place of `auth-url`.",
        ),
        text(
            "ca-file",
            |global| &mut global.ca_file,
            "PEM file with CA certificates. They replace the system's.",
        ),
        text(
            "cafilecontents",
            |global| &mut global.ca_file_contents,
            "PEM text with CA certificates (in quotes, with `\\n` for line breaks); used when `ca-file` is empty.",
        ),
        text(
            "cert-file",
            |global| &mut global.cert_file,
            "PEM file of a client certificate; goes together with `key-file`.",
        ),
        text("key-file", |global| &mut global.key_file, "PEM file of the client certificate's key."),
        key(
            "tls-insecure",
            Field::Form { form: "word", set: tls_insecure },
            "Exactly `true` accepts any server certificate; everything else checks it. For tests only.",
        ),
        defaulting_key(
            "use-clouds",
            Field::Bool(|global| &mut global.use_clouds),
            "false",
            "Takes settings that are empty in this section from clouds.yaml.",
        ),
        text(
            "clouds-file",
            |global| &mut global.clouds_file,
            "Path of clouds.yaml, in place of `OS_CLIENT_CONFIG_FILE`. Only with `use-clouds`.",
        ),
        text(
            "cloud",
            |global| &mut global.cloud,
            "Entry of clouds.yaml, in place of `OS_CLOUD`. Only with `use-clouds`.",
        ),
    ];
}

/// Parses an endpoint type of cloud.conf or clouds.yaml.
///
/// # Errors
/// Any other word.
pub(in crate::config) fn parse_endpoint_type(text: &str) -> Result<InterfaceType, ValueFault> {
    match text {
        "public" => Ok(InterfaceType::Public),
        "internal" => Ok(InterfaceType::Internal),
        "admin" => Ok(InterfaceType::Admin),
        _ => Err(ValueFault::new(
            "the value is not an endpoint type",
            "use exactly `public`, `internal` or `admin`",
        )),
    }
}

/// Sets the endpoint of a service, from cloud.conf or clouds.yaml.
pub(in crate::config) fn endpoint(global: &mut Global, service: Service, text: &str) -> Parsed {
    if text.is_empty() {
        global.endpoints.remove(&service);
        return Ok(None);
    }
    let address =
        Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let address = address.filter(|url| url.username().is_empty() && url.password().is_none());
    let fix = "write an http or https address without user name and password, such as `https://octavia.example.org`";
    let address = address.ok_or_else(|| ValueFault::new("the value is not the address of a service", fix))?;
    global.endpoints.insert(service, address);
    Ok(None)
}

fn endpoint_type(global: &mut Global, text: &str) -> Parsed {
    global.os_endpoint_type = Some(parse_endpoint_type(text)?);
    Ok(None)
}

fn tls_insecure(global: &mut Global, text: &str) -> Parsed {
    global.tls_insecure = (!text.is_empty()).then_some(text == "true");
    let meant = crate::config::value::parse_bool(text) == Some(true) && text != "true";
    Ok(meant.then(|| {
        "has no effect: only the literal `true` disables the verification of certificates".to_owned()
    }))
}
