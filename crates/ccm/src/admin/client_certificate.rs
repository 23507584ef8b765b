//! Client certificates: taken from everybody in the handshake, judged for each request, because the authorities may
//! change while a connection lives.

use std::sync::Arc;

use k8s_openapi::api::authentication::v1::UserInfo;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The certificates of a connection: the client's first, then those that lead to an authority.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerCertificates(pub(super) Arc<[CertificateDer<'static>]>);

/// Why a certificate names nobody.
#[derive(Debug, thiserror::Error)]
pub(super) enum CertificateError {
    #[error("the client certificate is not signed by an authority that is known here, or not valid now")]
    Untrusted(#[source] rustls::Error),
    #[error("the client certificate cannot be read")]
    Unreadable,
    #[error("the client certificate has no common name")]
    Nameless,
}

/// Why authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthorityError {
    #[error("this is not PEM")]
    NotPem(#[source] rustls::pki_types::pem::Error),
    #[error("there is no usable certificate in it")]
    NoCertificate,
}

/// Authorities that vouch for clients.
#[derive(Clone, Debug)]
pub(super) struct Authorities {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Authorities {
    /// Reads certificates in PEM.
    pub(super) fn from_pem(pem: &[u8]) -> Result<Self, AuthorityError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.map_err(AuthorityError::NotPem)?);
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
            .build()
            .map_err(|_| AuthorityError::NoCertificate)?;
        Ok(Self { verifier })
    }

    /// Whom the certificate names, if one of the authorities vouches for it.
    pub(super) fn identify(&self, peer: &PeerCertificates) -> Result<Option<UserInfo>, CertificateError> {
        let Some((own, others)) = peer.0.split_first() else { return Ok(None) };
        self.verifier
            .verify_client_cert(own, others, UnixTime::now())
            .map_err(CertificateError::Untrusted)?;
        subject(own).map(Some)
    }
}

/// The common name is the user, the organisations are the groups.
fn subject(certificate: &CertificateDer<'_>) -> Result<UserInfo, CertificateError> {
    let (_, certificate) =
        X509Certificate::from_der(certificate).map_err(|_| CertificateError::Unreadable)?;
    let subject = certificate.subject();
    let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    let name = subject.iter_common_name().find_map(|name| text(name.as_str().ok()?));
    let groups = subject.iter_organization().filter_map(|name| text(name.as_str().ok()?)).collect();
    let username = Some(name.ok_or(CertificateError::Nameless)?);
    Ok(UserInfo { username, groups: Some(groups), ..UserInfo::default() })
}

/// Asks every client for a certificate and takes any, also none. That the client has its key is checked here; whether
/// anybody vouches for it is asked for each request.
#[derive(Debug)]
pub(super) struct AnyCertificate {
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
