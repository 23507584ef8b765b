//! Fills the empty keys of `[Global]` from an entry.

use super::entry::CloudEntry;
use crate::config::assembly::Assembly;
use crate::config::error::{ConfigOrigin, ValueFault};
use crate::config::section::{LoginKind, SectionName, endpoint, parse_endpoint_type};

/// Fills each given key of `[Global]` that is empty from a field of the entry, and notes its origin.
macro_rules! fill {
    ($assembly:ident, $origin:ident, $source:ident: $($key:literal $target:ident <- $field:ident),+ $(,)?) => {
        $(if $assembly.config.global.$target.is_none() && $source.$field.is_some() {
            $assembly.config.global.$target = $source.$field;
            $assembly.set_origin(SectionName::Global, $key, $origin.clone());
        })+
    };
}

pub(super) fn fill(assembly: &mut Assembly, entry: CloudEntry, origin: &ConfigOrigin) {
    for key in entry.endpoint_overrides() {
        assembly.set_origin(SectionName::Global, key, origin.clone());
        assembly.warn(
            SectionName::Global,
            key,
            "has no effect: the endpoint of this service comes from Keystone's catalog",
        );
    }
    fill_words(assembly, &entry, origin);
    let auth = entry.auth.unwrap_or_default();
    fill!(
        assembly, origin, auth:
        "auth-url" auth_url <- auth_url,
        "username" username <- username,
        "user-id" user_id <- user_id,
        "password" password <- password,
        "tenant-id" tenant_id <- project_id,
        "tenant-name" tenant_name <- project_name,
        "tenant-domain-id" tenant_domain_id <- project_domain_id,
        "tenant-domain-name" tenant_domain_name <- project_domain_name,
        "user-domain-id" user_domain_id <- user_domain_id,
        "user-domain-name" user_domain_name <- user_domain_name,
        "domain-id" domain_id <- domain_id,
        "domain-name" domain_name <- domain_name,
        "application-credential-id" application_credential_id <- application_credential_id,
        "application-credential-name" application_credential_name <- application_credential_name,
        "application-credential-secret" application_credential_secret <- application_credential_secret,
        "token" token <- token,
    );
    fill!(
        assembly, origin, entry:
        "region" region <- region_name,
        "ca-file" ca_file <- cacert,
        "cert-file" cert_file <- cert,
        "key-file" key_file <- key,
    );
}

/// Fills settings whose values have to be parsed.
fn fill_words(assembly: &mut Assembly, entry: &CloudEntry, origin: &ConfigOrigin) {
    if let Some(text) = entry.endpoint_type().filter(|_| assembly.config.global.os_endpoint_type.is_none()) {
        assembly.set_origin(SectionName::Global, "os-endpoint-type", origin.clone());
        // Older catalogs and OpenStack's tools append `URL`.
        match parse_endpoint_type(text.strip_suffix("URL").unwrap_or(text)) {
            Ok(interface) => assembly.config.global.os_endpoint_type = Some(interface),
            Err(fault) => {
                assembly.fault(SectionName::Global, "os-endpoint-type", Some(text), &fault);
            }
        }
    }
    if let (None, Some(verify)) = (assembly.config.global.tls_insecure, entry.verify) {
        assembly.config.global.tls_insecure = Some(!verify);
        assembly.set_origin(SectionName::Global, "tls-insecure", origin.clone());
    }
    for (key, service, text) in entry.endpoints() {
        let Some(text) = text.filter(|_| !assembly.config.global.endpoints.contains_key(&service)) else {
            continue;
        };
        assembly.set_origin(SectionName::Global, key, origin.clone());
        if let Err(fault) = endpoint(&mut assembly.config.global, service, text) {
            assembly.fault(SectionName::Global, key, Some(text), &fault);
        }
    }
    let system_scope = entry.auth.as_ref().and_then(|auth| auth.system_scope.as_deref());
    assembly.config.global.system_scope = system_scope == Some("all");
    if let Some(text) = entry.auth_type.as_deref().filter(|text| !text.is_empty()) {
        match login_kind(text) {
            Some(kind) => assembly.config.global.login_kind = Some(kind),
            None => {
                assembly.set_origin(SectionName::Global, "auth_type", origin.clone());
                let fix = "use `v3password`, `v3applicationcredential` or `v3token`";
                let fault = ValueFault::new("this authentication type is not supported", fix);
                assembly.fault(SectionName::Global, "auth_type", Some(text), &fault);
            }
        }
    }
}

fn login_kind(auth_type: &str) -> Option<LoginKind> {
    match auth_type {
        "password" | "v3password" => Some(LoginKind::Password),
        "token" | "v3token" => Some(LoginKind::Token),
        "v3applicationcredential" => Some(LoginKind::ApplicationCredential),
        _ => None,
    }
}
