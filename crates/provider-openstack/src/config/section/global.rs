//! `[Global]`: log-in and endpoints.

use openstack_ccm_openstack_api::identity::Interface;
use secrecy::SecretString;

use super::key::{Field, Key, Parsed, Since};
use crate::config::error::Fault;

/// Log-in and endpoints. `Debug` shows no secret.
#[derive(Clone, Debug, Default)]
pub struct Global {
    /// Address of Keystone, with or without version path.
    pub auth_url: Option<String>,
    /// User by name.
    pub username: Option<String>,
    /// User by id.
    pub user_id: Option<String>,
    /// The user's password.
    pub password: Option<SecretString>,
    /// Project by id; wins over the name.
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
    /// Domain of user and project where they have none of their own; without a project the scope.
    pub domain_id: Option<String>,
    /// Like `domain_id`, by name.
    pub domain_name: Option<String>,
    /// Application credential by id.
    pub application_credential_id: Option<String>,
    /// Application credential by name, which needs the user.
    pub application_credential_name: Option<String>,
    /// Secret of the application credential.
    pub application_credential_secret: Option<SecretString>,
    /// Ready-made token.
    pub token: Option<SecretString>,
    /// Trust that the log-in is for.
    pub trust_id: Option<String>,
    /// User of the trust log-in; replaces `user_id` and `username`.
    pub trustee_id: Option<String>,
    /// Password of the trustee; replaces `password`.
    pub trustee_password: Option<SecretString>,
    /// Region of the endpoints; none takes the first in the catalog.
    pub region: Option<String>,
    /// Kind of the endpoints; none means public.
    pub os_endpoint_type: Option<Interface>,
    /// PEM file with the CA certificates that replace the system's.
    pub ca_file: Option<String>,
    /// PEM text with CA certificates, used when there is no `ca_file`.
    pub ca_file_contents: Option<String>,
    /// PEM file of the client certificate.
    pub cert_file: Option<String>,
    /// PEM file of the client certificate's key.
    pub key_file: Option<String>,
    /// Whether any server certificate is accepted; none means no.
    pub tls_insecure: Option<bool>,
    /// Whether clouds.yaml fills what is empty here.
    pub use_clouds: bool,
    /// Path of clouds.yaml.
    pub clouds_file: Option<String>,
    /// Name of the entry in clouds.yaml.
    pub cloud: Option<String>,
    /// Whether the scope is the whole system. Comes from clouds.yaml only.
    pub system_scope: bool,
    /// The kind of log-in that clouds.yaml names. Without it the credentials decide.
    pub login_kind: Option<LoginKind>,
}

/// A kind of log-in, `auth_type` in clouds.yaml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// User and password.
    Password,
    /// Ready-made token.
    Token,
    /// Application credential.
    ApplicationCredential,
}

impl Global {
    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "auth-url",
            field: Field::Text(|global| &mut global.auth_url),
            default: "",
            meaning: "Address of Keystone, with or without a version path, such as `https://keystone.example.org:5000/v3`. Required.",
            since: Since::Occm,
        },
        Key {
            name: "username",
            field: Field::Text(|global| &mut global.username),
            default: "",
            meaning: "User by name; needs the user's domain.",
            since: Since::Occm,
        },
        Key {
            name: "user-id",
            field: Field::Text(|global| &mut global.user_id),
            default: "",
            meaning: "User by id; wins over `username`.",
            since: Since::Occm,
        },
        Key {
            name: "password",
            field: Field::Secret(|global| &mut global.password),
            default: "",
            meaning: "Password of the user. Put it into quotes if it contains `#`, `;`, `\\` or `\"`.",
            since: Since::Occm,
        },
        Key {
            name: "tenant-id",
            field: Field::Text(|global| &mut global.tenant_id),
            default: "",
            meaning: "Project by id; wins over `tenant-name`.",
            since: Since::Occm,
        },
        Key {
            name: "tenant-name",
            field: Field::Text(|global| &mut global.tenant_name),
            default: "",
            meaning: "Project by name; needs the project's domain.",
            since: Since::Occm,
        },
        Key {
            name: "tenant-domain-id",
            field: Field::Text(|global| &mut global.tenant_domain_id),
            default: "",
            meaning: "Domain of the project by id.",
            since: Since::Occm,
        },
        Key {
            name: "tenant-domain-name",
            field: Field::Text(|global| &mut global.tenant_domain_name),
            default: "",
            meaning: "Domain of the project by name.",
            since: Since::Occm,
        },
        Key {
            name: "user-domain-id",
            field: Field::Text(|global| &mut global.user_domain_id),
            default: "",
            meaning: "Domain of the user by id.",
            since: Since::Occm,
        },
        Key {
            name: "user-domain-name",
            field: Field::Text(|global| &mut global.user_domain_name),
            default: "",
            meaning: "Domain of the user by name.",
            since: Since::Occm,
        },
        Key {
            name: "domain-id",
            field: Field::Text(|global| &mut global.domain_id),
            default: "",
            meaning: "With a project or an application credential: domain of user and project if theirs are not set. Otherwise: the domain as the scope of the log-in.",
            since: Since::Occm,
        },
        Key {
            name: "domain-name",
            field: Field::Text(|global| &mut global.domain_name),
            default: "",
            meaning: "Like `domain-id`, by name.",
            since: Since::Occm,
        },
        Key {
            name: "application-credential-id",
            field: Field::Text(|global| &mut global.application_credential_id),
            default: "",
            meaning: "Application credential by id. It brings its own project: no scope is sent.",
            since: Since::Occm,
        },
        Key {
            name: "application-credential-name",
            field: Field::Text(|global| &mut global.application_credential_name),
            default: "",
            meaning: "Application credential by name; needs the user and the user's domain.",
            since: Since::Occm,
        },
        Key {
            name: "application-credential-secret",
            field: Field::Secret(|global| &mut global.application_credential_secret),
            default: "",
            meaning: "Secret of the application credential.",
            since: Since::Occm,
        },
        Key {
            name: "token",
            field: Field::Secret(|global| &mut global.token),
            default: "",
            meaning: "Ready-made token. It cannot be renewed when it expires; for tests.",
            since: Since::Occm,
        },
        Key {
            name: "trust-id",
            field: Field::Text(|global| &mut global.trust_id),
            default: "",
            meaning: "Trust that the log-in is for. Replaces the project.",
            since: Since::Occm,
        },
        Key {
            name: "trustee-id",
            field: Field::Text(|global| &mut global.trustee_id),
            default: "",
            meaning: "User id for the trust log-in; replaces `user-id` and `username`.",
            since: Since::Occm,
        },
        Key {
            name: "trustee-password",
            field: Field::Secret(|global| &mut global.trustee_password),
            default: "",
            meaning: "Password for the trust log-in; replaces `password`.",
            since: Since::Occm,
        },
        Key {
            name: "region",
            field: Field::Text(|global| &mut global.region),
            default: "",
            meaning: "Region of the endpoints. Without it the first matching endpoint of the catalog is used.",
            since: Since::Occm,
        },
        Key {
            name: "os-endpoint-type",
            field: Field::Form { form: "word", set: endpoint_type },
            default: "public",
            meaning: "Kind of the endpoints: `public`, `internal` or `admin`.",
            since: Since::Occm,
        },
        Key {
            name: "ca-file",
            field: Field::Text(|global| &mut global.ca_file),
            default: "",
            meaning: "PEM file with CA certificates. They replace the system's.",
            since: Since::Occm,
        },
        Key {
            name: "cafilecontents",
            field: Field::Text(|global| &mut global.ca_file_contents),
            default: "",
            meaning: "PEM text with CA certificates (in quotes, with `\\n` for line breaks); used when `ca-file` is empty.",
            since: Since::Occm,
        },
        Key {
            name: "cert-file",
            field: Field::Text(|global| &mut global.cert_file),
            default: "",
            meaning: "PEM file of a client certificate; goes together with `key-file`.",
            since: Since::Occm,
        },
        Key {
            name: "key-file",
            field: Field::Text(|global| &mut global.key_file),
            default: "",
            meaning: "PEM file of the client certificate's key.",
            since: Since::Occm,
        },
        Key {
            name: "tls-insecure",
            field: Field::Form { form: "word", set: tls_insecure },
            default: "",
            meaning: "Exactly `true` accepts any server certificate; everything else checks it. For tests only.",
            since: Since::Occm,
        },
        Key {
            name: "use-clouds",
            field: Field::Bool(|global| &mut global.use_clouds),
            default: "false",
            meaning: "Takes settings that are empty in this section from clouds.yaml.",
            since: Since::Occm,
        },
        Key {
            name: "clouds-file",
            field: Field::Text(|global| &mut global.clouds_file),
            default: "",
            meaning: "Path of clouds.yaml, in place of `OS_CLIENT_CONFIG_FILE`. Only with `use-clouds`.",
            since: Since::Occm,
        },
        Key {
            name: "cloud",
            field: Field::Text(|global| &mut global.cloud),
            default: "",
            meaning: "Entry of clouds.yaml, in place of `OS_CLOUD`. Only with `use-clouds`.",
            since: Since::Occm,
        },
    ];
}

/// Reads an endpoint type as cloud.conf and clouds.yaml write it.
///
/// # Errors
/// Words such as `publicURL`, which older tools know, are not taken.
pub(in crate::config) fn parse_endpoint_type(text: &str) -> Result<Interface, Fault> {
    [Interface::Public, Interface::Internal, Interface::Admin]
        .into_iter()
        .find(|interface| interface.as_str() == text)
        .ok_or_else(|| Fault::new("it is no endpoint type", "use exactly `public`, `internal` or `admin`"))
}

fn endpoint_type(global: &mut Global, text: &str) -> Parsed {
    global.os_endpoint_type = Some(parse_endpoint_type(text)?);
    Ok(None)
}

fn tls_insecure(global: &mut Global, text: &str) -> Parsed {
    global.tls_insecure = (!text.is_empty()).then_some(text == "true");
    let meant = crate::config::value::parse_bool(text) == Some(true) && text != "true";
    Ok(meant.then(|| "has no effect: only the literal `true` turns the check of certificates off".to_owned()))
}
