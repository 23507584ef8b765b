//! Who logs in and what for, from the keys of `[Global]`.
//!
//! The credentials decide the kind of log-in, unless clouds.yaml names it: a trust, else a password, else a token, else
//! an application credential. What is missing is reported per key, for the kind of log-in that was begun.

use openstack_ccm_openstack_api::identity::{
    ApplicationCredentialName, AuthOptions, ClientCertificate, Credentials, DomainRef, InDomain, Scope, Tls,
};

use super::Config;
use super::error::ValueFault;
use super::section::{Global, LoginKind};

/// A key that is missing, and what for.
pub(super) type MissingKey = (&'static str, ValueFault);

/// Everything that is needed to talk to the cloud.
///
/// # Errors
/// All that is missing. The address is checked elsewhere: without one this makes options with an empty address.
pub(super) fn auth_options(config: &Config) -> Result<AuthOptions, Vec<MissingKey>> {
    let global = &config.global;
    let (credentials, scope) = login(global)?;
    Ok(AuthOptions {
        region: global.region.clone(),
        interface: global.os_endpoint_type.unwrap_or_default(),
        tls: Tls {
            ca_file: global.ca_file.as_ref().map(Into::into),
            ca_pem: global.ca_file_contents.clone(),
            insecure: global.tls_insecure.unwrap_or(false),
            client_certificate: global.cert_file.as_ref().zip(global.key_file.as_ref()).map(
                |(certificate, key)| ClientCertificate {
                    certificate_file: certificate.into(),
                    key_file: key.into(),
                },
            ),
        },
        request_timeout: config.metadata.request_timeout(),
        ..AuthOptions::new(global.auth_url.clone().unwrap_or_default(), credentials, scope)
    })
}

/// The kinds of log-in for which there are credentials, in the order in which they are taken.
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

/// The kind of log-in to use, without regard to a trust.
fn kind(global: &Global) -> Option<LoginKind> {
    let begun = global.username.is_some() || global.user_id.is_some();
    global.login_kind.or_else(|| kinds(global).first().copied()).or(begun.then_some(LoginKind::Password))
}

fn login(global: &Global) -> Result<(Credentials, Scope), Vec<MissingKey>> {
    if let Some(trust_id) = &global.trust_id {
        return trust(global, trust_id);
    }
    match kind(global) {
        Some(LoginKind::Password) => both(password(global), scope(global)),
        Some(LoginKind::Token) => both(token(global), scope(global)),
        Some(LoginKind::ApplicationCredential) => Ok((application_credential(global)?, Scope::Unscoped)),
        None => Err(vec![missing(
            "password",
            "no log-in is configured",
            "set `application-credential-id` and `application-credential-secret`, or `username`, `user-domain-name`, \
             `password`, `tenant-name` and `tenant-domain-name`, or `use-clouds`",
        )]),
    }
}

fn trust(global: &Global, trust_id: &str) -> Result<(Credentials, Scope), Vec<MissingKey>> {
    let password = global.trustee_password.as_ref().or(global.password.as_ref());
    if let (None, Some(token)) = (password, &global.token) {
        return Ok((
            Credentials::Token { token: token.clone() },
            Scope::Trust { trust_id: trust_id.to_owned() },
        ));
    }
    let trustee = match &global.trustee_id {
        Some(id) => Ok(InDomain::Id(id.clone())),
        None => user(global, "a trust log-in", "trustee-id"),
    };
    let password = password.cloned().ok_or_else(|| {
        missing("trustee-password", "a trust log-in needs the trustee's password", "add `trustee-password`")
    });
    let (user, password) = all(trustee, password)?;
    Ok((Credentials::Password { user, password }, Scope::Trust { trust_id: trust_id.to_owned() }))
}

fn password(global: &Global) -> Result<Credentials, Vec<MissingKey>> {
    let password = global.password.clone().ok_or_else(|| {
        missing(
            "password",
            "a log-in with a user needs a password",
            "add `password`, or use an application credential",
        )
    });
    let (user, password) = all(user(global, "a password log-in", "username"), password)?;
    Ok(Credentials::Password { user, password })
}

fn token(global: &Global) -> Result<Credentials, Vec<MissingKey>> {
    let token = global.token.clone();
    let token = token.ok_or_else(|| vec![missing("token", "a token log-in needs a token", "add `token`")])?;
    Ok(Credentials::Token { token })
}

fn application_credential(global: &Global) -> Result<Credentials, Vec<MissingKey>> {
    let name = match (&global.application_credential_id, &global.application_credential_name) {
        (Some(id), _) => Ok(ApplicationCredentialName::Id(id.clone())),
        (None, Some(name)) => user(global, "an application credential by name", "username")
            .map(|user| ApplicationCredentialName::Name { name: name.clone(), user }),
        (None, None) => Err(vec![missing(
            "application-credential-id",
            "an application credential needs its id or name",
            "add `application-credential-id`",
        )]),
    };
    let secret = global.application_credential_secret.clone().ok_or_else(|| {
        missing(
            "application-credential-secret",
            "an application credential needs its secret",
            "add `application-credential-secret`",
        )
    });
    let (name, secret) = all(name, secret)?;
    Ok(Credentials::ApplicationCredential { name, secret })
}

/// The user by id, or by name with the domain.
fn user(global: &Global, what: &str, key: &'static str) -> Result<InDomain, Vec<MissingKey>> {
    if let Some(id) = &global.user_id {
        return Ok(InDomain::Id(id.clone()));
    }
    let Some(name) = global.username.clone() else {
        let fix = match key {
            "username" => "add `username` and `user-domain-name`, or `user-id`".to_owned(),
            other => format!("add `{other}`"),
        };
        return Err(vec![missing(key, &format!("{what} needs a user"), &fix)]);
    };
    let own = domain(global.user_domain_id.as_ref(), global.user_domain_name.as_ref());
    let domain = own.or_else(|| default_domain(global)).ok_or_else(|| {
        let problem = format!("{what} with a user's name needs the user's domain");
        vec![missing(
            "user-domain-name",
            &problem,
            "add `user-domain-name` or `user-domain-id`, or use `user-id`",
        )]
    })?;
    Ok(InDomain::Name { name, domain })
}

/// What the token is for: a project, else the system, else a domain, else nothing said.
fn scope(global: &Global) -> Result<Scope, Vec<MissingKey>> {
    if let Some(id) = &global.tenant_id {
        return Ok(Scope::Project(InDomain::Id(id.clone())));
    }
    if let Some(name) = global.tenant_name.clone() {
        let own = domain(global.tenant_domain_id.as_ref(), global.tenant_domain_name.as_ref());
        let domain = own.or_else(|| default_domain(global)).ok_or_else(|| {
            let fix = "add `tenant-domain-name` or `tenant-domain-id`, or use `tenant-id`";
            vec![missing("tenant-domain-name", "a project's name needs the project's domain", fix)]
        })?;
        return Ok(Scope::Project(InDomain::Name { name, domain }));
    }
    if global.system_scope {
        return Ok(Scope::System);
    }
    Ok(domain(global.domain_id.as_ref(), global.domain_name.as_ref()).map_or(Scope::Unscoped, Scope::Domain))
}

/// `domain-id` and `domain-name`, where they are not the scope themselves.
fn default_domain(global: &Global) -> Option<DomainRef> {
    let is_scope = global.tenant_id.is_none()
        && global.tenant_name.is_none()
        && global.trust_id.is_none()
        && !global.system_scope
        && kind(global) != Some(LoginKind::ApplicationCredential);
    if is_scope { None } else { domain(global.domain_id.as_ref(), global.domain_name.as_ref()) }
}

fn domain(id: Option<&String>, name: Option<&String>) -> Option<DomainRef> {
    id.cloned().map(DomainRef::Id).or_else(|| name.cloned().map(DomainRef::Name))
}

fn missing(key: &'static str, problem: &str, fix: &str) -> MissingKey {
    (key, ValueFault::new(problem, fix))
}

/// Both, or everything that both miss.
fn both<A, B>(
    first: Result<A, Vec<MissingKey>>,
    second: Result<B, Vec<MissingKey>>,
) -> Result<(A, B), Vec<MissingKey>> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) => Err(first.into_iter().chain(second).collect()),
        (Err(missing), Ok(_)) | (Ok(_), Err(missing)) => Err(missing),
    }
}

fn all<A, B>(
    first: Result<A, Vec<MissingKey>>,
    second: Result<B, MissingKey>,
) -> Result<(A, B), Vec<MissingKey>> {
    both(first, second.map_err(|missing| vec![missing]))
}
