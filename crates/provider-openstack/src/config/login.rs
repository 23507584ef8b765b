//! Determines credentials and scope of the login from the keys of `[Global]`.
//!
//! The credentials determine the kind of login, unless clouds.yaml names it: a trust, else a password, else a token, else an
//! application credential. Missing keys are reported for this kind of login.

use openstack_ccm_openstack_api::identity::{
    ApplicationCredentialName, AuthOptions, ClientCertificate, Credentials, DomainRef, InDomain, PemFile,
    Scope, Tls,
};
use openstack_ccm_openstack_api::transport::Service;

use super::Config;
use super::error::ValueFault;
use super::section::{Global, LoginKind};

pub(super) type MissingKey = (&'static str, ValueFault);

/// Returns the options for logging in and calling the cloud.
///
/// # Errors
/// All missing keys. A missing auth URL is checked elsewhere: here it results in an empty one.
pub(super) fn auth_options(config: &Config) -> Result<AuthOptions, Vec<MissingKey>> {
    let global = &config.global;
    let mut missing = MissingKeys::default();
    let Some((credentials, scope)) = login(global, &mut missing) else { return Err(missing.0) };
    let stated = global.endpoints.get(&Service::Identity).map(ToString::to_string);
    let auth_url = stated.or_else(|| global.auth_url.clone());
    Ok(AuthOptions {
        region: global.region.clone(),
        interface: global.os_endpoint_type.unwrap_or_default(),
        endpoints: global.endpoints.clone(),
        tls: Tls {
            ca_file: global.ca_file.as_ref().map(PemFile::at),
            ca_pem: global.ca_file_contents.clone(),
            insecure: global.tls_insecure.unwrap_or(false),
            client_certificate: global.cert_file.as_ref().zip(global.key_file.as_ref()).map(
                |(certificate, key)| ClientCertificate {
                    certificate_file: PemFile::at(certificate),
                    key_file: PemFile::at(key),
                },
            ),
        },
        request_timeout: config.metadata.request_timeout(),
        ..AuthOptions::new(auth_url.unwrap_or_default(), credentials, scope)
    })
}

/// The missing keys found so far.
#[derive(Default)]
struct MissingKeys(Vec<MissingKey>);

impl MissingKeys {
    /// Returns the value, and notes the key if it is missing.
    fn need<T>(&mut self, value: Option<T>, key: &'static str, problem: &str, fix: &str) -> Option<T> {
        if value.is_none() {
            self.0.push((key, ValueFault::new(problem, fix)));
        }
        value
    }
}

/// Returns the kinds of login with credentials, in order of precedence.
pub(super) fn kinds(global: &Global) -> Vec<LoginKind> {
    let application_credential = global.application_credential_id.is_some()
        || global.application_credential_name.is_some()
        || global.application_credential_secret.is_some();
    [
        (global.password.is_some(), LoginKind::Password),
        (global.token.is_some(), LoginKind::Token),
        (application_credential, LoginKind::ApplicationCredential),
    ]
    .into_iter()
    .filter_map(|(there, kind)| there.then_some(kind))
    .collect()
}

/// Returns the kind of login to use, apart from a trust.
fn kind(global: &Global) -> Option<LoginKind> {
    let begun = global.username.is_some() || global.user_id.is_some();
    global.login_kind.or_else(|| kinds(global).first().copied()).or(begun.then_some(LoginKind::Password))
}

fn login(global: &Global, missing: &mut MissingKeys) -> Option<(Credentials, Scope)> {
    if let Some(trust_id) = &global.trust_id {
        return trust(global, trust_id, missing);
    }
    let kind = missing.need(
        kind(global),
        "password",
        "no credentials are configured",
        "set `application-credential-id` and `application-credential-secret`, or `username`, `user-domain-name`, \
         `password`, `tenant-name` and `tenant-domain-name`, or `use-clouds`",
    )?;
    let credentials = match kind {
        LoginKind::Password => password(global, missing),
        LoginKind::Token => {
            let token = global.token.clone();
            let token = missing.need(token, "token", "a token login requires a token", "add `token`");
            token.map(|token| Credentials::Token { token })
        }
        LoginKind::ApplicationCredential => {
            return Some((application_credential(global, missing)?, Scope::Unscoped));
        }
    };
    let scope = scope(global, missing);
    Some((credentials?, scope?))
}

fn trust(global: &Global, trust_id: &str, missing: &mut MissingKeys) -> Option<(Credentials, Scope)> {
    let password = global.trustee_password.as_ref().or(global.password.as_ref());
    let scope = Scope::Trust { trust_id: trust_id.to_owned() };
    if let (None, Some(token)) = (password, &global.token) {
        return Some((Credentials::Token { token: token.clone() }, scope));
    }
    let trustee = match &global.trustee_id {
        Some(id) => Some(InDomain::Id(id.clone())),
        None => user(global, "a trust login", "trustee-id", missing),
    };
    let (problem, fix) = ("a trust login requires the trustee's password", "add `trustee-password`");
    let password = missing.need(password.cloned(), "trustee-password", problem, fix);
    Some((Credentials::Password { user: trustee?, password: password? }, scope))
}

fn password(global: &Global, missing: &mut MissingKeys) -> Option<Credentials> {
    let user = user(global, "a password login", "username", missing);
    let (problem, fix) =
        ("a login with a user requires a password", "add `password`, or use an application credential");
    let password = missing.need(global.password.clone(), "password", problem, fix);
    Some(Credentials::Password { user: user?, password: password? })
}

fn application_credential(global: &Global, missing: &mut MissingKeys) -> Option<Credentials> {
    let name = match (&global.application_credential_id, &global.application_credential_name) {
        (Some(id), _) => Some(ApplicationCredentialName::Id(id.clone())),
        (None, Some(name)) => user(global, "an application credential by name", "username", missing)
            .map(|user| ApplicationCredentialName::Name { name: name.clone(), user }),
        (None, None) => missing.need(
            None,
            "application-credential-id",
            "an application credential requires an id or a name",
            "add `application-credential-id`",
        ),
    };
    let secret = missing.need(
        global.application_credential_secret.clone(),
        "application-credential-secret",
        "an application credential requires a secret",
        "add `application-credential-secret`",
    );
    Some(Credentials::ApplicationCredential { name: name?, secret: secret? })
}

/// Returns the user by id, or by name and domain.
fn user(global: &Global, what: &str, key: &'static str, missing: &mut MissingKeys) -> Option<InDomain> {
    if let Some(id) = &global.user_id {
        return Some(InDomain::Id(id.clone()));
    }
    let fix = match key {
        "username" => "add `username` and `user-domain-name`, or `user-id`".to_owned(),
        other => format!("add `{other}`"),
    };
    let name = missing.need(global.username.clone(), key, &format!("{what} requires a user"), &fix)?;
    let domain = missing.need(
        domain_of(global, &global.user_domain_id, &global.user_domain_name),
        "user-domain-name",
        &format!("{what} with a user name requires the user's domain"),
        "add `user-domain-name` or `user-domain-id`, or use `user-id`",
    )?;
    Some(InDomain::Name { name, domain })
}

/// Returns the scope of the token: a project, else the system, else a domain, else none.
fn scope(global: &Global, missing: &mut MissingKeys) -> Option<Scope> {
    if let Some(id) = &global.tenant_id {
        return Some(Scope::Project(InDomain::Id(id.clone())));
    }
    if let Some(name) = global.tenant_name.clone() {
        let domain = missing.need(
            domain_of(global, &global.tenant_domain_id, &global.tenant_domain_name),
            "tenant-domain-name",
            "a project name requires the project's domain",
            "add `tenant-domain-name` or `tenant-domain-id`, or use `tenant-id`",
        )?;
        return Some(Scope::Project(InDomain::Name { name, domain }));
    }
    if global.system_scope {
        return Some(Scope::System);
    }
    Some(domain(&global.domain_id, &global.domain_name).map_or(Scope::Unscoped, Scope::Domain))
}

/// Returns the domain of a user or a project: its own, else that of `domain-id` or `domain-name`, unless that is the scope.
fn domain_of(global: &Global, id: &Option<String>, name: &Option<String>) -> Option<DomainRef> {
    let is_scope = global.tenant_id.is_none()
        && global.tenant_name.is_none()
        && global.trust_id.is_none()
        && !global.system_scope
        && kind(global) != Some(LoginKind::ApplicationCredential);
    let default = || domain(&global.domain_id, &global.domain_name).filter(|_| !is_scope);
    domain(id, name).or_else(default)
}

fn domain(id: &Option<String>, name: &Option<String>) -> Option<DomainRef> {
    id.clone().map(DomainRef::Id).or_else(|| name.clone().map(DomainRef::Name))
}
