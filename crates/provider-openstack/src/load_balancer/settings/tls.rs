//! TLS settings other than the certificate.

use std::collections::BTreeSet;

use openstack_ccm_openstack_api::octavia::TlsAttributes;

use super::listener::{self, TlsContainer};
use super::reader::SettingsReader;
use crate::load_balancer::annotations::{
    ALPN_PROTOCOLS, Annotation, Aspect, SNI_CONTAINER_REFS, TLS_CIPHERS, TLS_REVISION, TLS_VERSIONS,
};

/// TLS settings other than the certificate. Octavia decides about absent ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    pub attributes: TlsAttributes,
    /// The containers behind `sni-container-refs`, sorted.
    pub sni: Vec<TlsContainer>,
    /// `tls-revision`
    pub revision: Option<String>,
}

const VERSIONS: [&str; 5] = ["SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
const ALPN: [&str; 3] = ["h2", "http/1.1", "http/1.0"];
/// Maximum length of a revision, in characters.
const MAX_REVISION_LENGTH: usize = 64;
/// Maximum length of Octavia's list of ciphers, in characters.
const MAX_CIPHERS_LENGTH: usize = 2048;

/// Reads the options, with a Warning if they have no effect because TLS is not terminated.
pub(super) fn options(reader: &mut SettingsReader<'_>, tls: Option<&TlsContainer>) -> TlsOptions {
    let why_not = "the load balancer does not terminate TLS";
    let used = tls.is_some() || reader.faults.unreadable().contains(&Aspect::Certificate);
    let options = reader.used_if(used, why_not, read);
    if tls.is_none() {
        let all = [SNI_CONTAINER_REFS, TLS_VERSIONS, TLS_CIPHERS, ALPN_PROTOCOLS, TLS_REVISION];
        let why = "the load balancer does not terminate TLS; set loadbalancer.openstack.org/default-tls-container-ref";
        reader.warn_without_effect(&all, why);
        return TlsOptions::default();
    }
    options
}

fn read(reader: &mut SettingsReader<'_>) -> TlsOptions {
    let sni = sni(reader);
    let references =
        |sni: &Vec<TlsContainer>| sni.iter().map(|container| container.reference.clone()).collect();
    let attributes = TlsAttributes {
        sni_container_refs: sni.as_ref().map(references),
        tls_versions: words(reader, &TLS_VERSIONS, &VERSIONS).map(|words| words.into_iter().collect()),
        tls_ciphers: ciphers(reader),
        alpn_protocols: words(reader, &ALPN_PROTOCOLS, &ALPN),
    };
    TlsOptions { attributes, sni: sni.unwrap_or_default(), revision: revision(reader) }
}

fn sni(reader: &mut SettingsReader<'_>) -> Option<Vec<TlsContainer>> {
    let value = reader.annotation(&SNI_CONTAINER_REFS)?;
    let mut containers: Vec<TlsContainer> = Vec::new();
    for item in value.items() {
        containers.extend(listener::container(reader, &item));
    }
    containers.sort_by(|one, other| one.reference.cmp(&other.reference));
    containers.dedup();
    Some(containers)
}

/// Reads words in their order, each once.
fn words(reader: &mut SettingsReader<'_>, annotation: &Annotation, known: &[&str]) -> Option<Vec<String>> {
    let value = reader.annotation(annotation)?;
    let mut words = Vec::new();
    let mut unknown = BTreeSet::new();
    for item in value.items() {
        if !known.contains(&item.text) {
            unknown.insert(item.text);
        } else if !words.iter().any(|word| word == item.text) {
            words.push(item.text.to_owned());
        }
    }
    if !unknown.is_empty() || words.is_empty() {
        let unknown: Vec<String> = unknown.iter().map(|word| format!("{word:?}")).collect();
        let problem = if unknown.is_empty() {
            "names nothing".to_owned()
        } else {
            format!("has {}, which is unknown", unknown.join(", "))
        };
        reader.reject(
            &value,
            problem,
            format!("write one or more of {}, separated by commas", known.join(", ")),
        );
    }
    Some(words)
}

/// Reads the revision, which becomes part of a tag, in which Octavia accepts no comma.
fn revision(reader: &mut SettingsReader<'_>) -> Option<String> {
    let value = reader.annotation(&TLS_REVISION)?;
    let fitting = |letter: char| letter.is_ascii_alphanumeric() || "._-:".contains(letter);
    if value.text.chars().count() > MAX_REVISION_LENGTH || !value.text.chars().all(fitting) {
        let fix = format!("use at most {MAX_REVISION_LENGTH} letters, digits, '.', '_', '-' and ':'");
        reader.reject(&value, "is not a valid revision", fix);
    }
    Some(value.text.to_owned())
}

fn ciphers(reader: &mut SettingsReader<'_>) -> Option<String> {
    let value = reader.annotation(&TLS_CIPHERS)?;
    let fitting = |letter: char| letter.is_ascii_alphanumeric() || "_-:+!@=.".contains(letter);
    if value.text.chars().count() > MAX_CIPHERS_LENGTH || !value.text.chars().all(fitting) {
        let fix =
            format!("write OpenSSL cipher names separated by ':', at most {MAX_CIPHERS_LENGTH} characters");
        reader.reject(&value, "is not a list of ciphers", fix);
    }
    Some(value.text.to_owned())
}
