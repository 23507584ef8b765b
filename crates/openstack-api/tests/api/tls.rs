//! HTTPS with an own CA, without verification, and with a client certificate.

use std::sync::Arc;

use openstack_ccm_openstack_api::client::ClientSettings;
use openstack_ccm_openstack_api::identity::{AuthError, AuthOptions, ClientCertificate, PemFile, Tls};
use openstack_ccm_openstack_api::{ErrorKind, OpenStack, connect};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::keystone::{password, project, token_document};

/// A certificate authority, its PEM file and a folder for more.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, folder: TempDir::new().unwrap() }
    }

    fn file(&self, name: &str, text: &str) -> PemFile {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        PemFile::at(path)
    }

    fn ca_file(&self) -> PemFile {
        self.file("ca.pem", &self.issuer.pem())
    }

    fn leaf(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A Keystone behind TLS that asks for client certificates if `with_client_certificates`.
    async fn keystone(&self, with_client_certificates: bool) -> String {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = if with_client_certificates {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.unwrap().with_client_cert_verifier(verifier)
        } else {
            builder.unwrap().with_no_client_auth()
        };
        let (certificate, key) = self.leaf("127.0.0.1");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        serve(TlsAcceptor::from(Arc::new(config))).await
    }
}

async fn serve(acceptor: TlsAcceptor) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let body = token_document(&url).to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 201 Created\r\nx-subject-token: TOKEN\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the server ends the handshake.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok() {
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    url
}

async fn connect_with(url: &str, tls: Tls) -> Result<OpenStack, Arc<AuthError>> {
    let mut options = AuthOptions::new(url, password("lab"), project());
    options.tls = tls;
    connect(&options, ClientSettings::default()).await
}

#[tokio::test]
async fn a_server_of_an_own_ca_is_trusted_through_a_file_or_a_text() {
    let authority = Authority::new();
    let url = authority.keystone(false).await;
    let file = Tls { ca_file: Some(authority.ca_file()), ..Tls::default() };
    connect_with(&url, file).await.unwrap();
    let text = Tls { ca_pem: Some(authority.issuer.pem()), ..Tls::default() };
    connect_with(&url, text).await.unwrap();
}

#[tokio::test]
async fn an_unknown_or_another_ca_is_not_trusted() {
    let authority = Authority::new();
    let url = authority.keystone(false).await;
    let other = Tls { ca_file: Some(Authority::new().ca_file_kept()), ..Tls::default() };
    for tls in [Tls::default(), other] {
        let error = connect_with(&url, tls).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let causes = chain(&*error);
        assert!(causes.contains("certificate"), "{causes}");
    }
}

#[tokio::test]
async fn a_bundle_of_several_certificates_is_read_whole() {
    let (first, second) = (Authority::new(), Authority::new());
    let bundle = format!("{}\n{}", first.issuer.pem(), second.issuer.pem());
    let url = second.keystone(false).await;
    connect_with(&url, Tls { ca_pem: Some(bundle), ..Tls::default() }).await.unwrap();
}

#[tokio::test]
async fn verification_can_be_switched_off() {
    let authority = Authority::new();
    let url = authority.keystone(false).await;
    connect_with(&url, Tls { insecure: true, ..Tls::default() }).await.unwrap();
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let authority = Authority::new();
    let url = authority.keystone(true).await;
    let without = Tls { ca_file: Some(authority.ca_file()), ..Tls::default() };
    connect_with(&url, without.clone()).await.unwrap_err();
    let (certificate, key) = authority.leaf("controller");
    let client_certificate = ClientCertificate {
        certificate_file: authority.file("client.pem", &certificate.pem()),
        key_file: authority.file("client.key", &key.serialize_pem()),
    };
    connect_with(&url, Tls { client_certificate: Some(client_certificate), ..without }).await.unwrap();
    let in_memory = |name: &str, pem: String| PemFile { content: Some(pem.into()), ..PemFile::at(name) };
    let client_certificate = ClientCertificate {
        certificate_file: in_memory("/nowhere/client.pem", certificate.pem()),
        key_file: in_memory("/nowhere/client.key", key.serialize_pem()),
    };
    let ca_file = Some(in_memory("/nowhere/ca.pem", authority.issuer.pem()));
    let in_memory = Tls { ca_file, client_certificate: Some(client_certificate), ..Tls::default() };
    connect_with(&url, in_memory).await.unwrap();
}

#[tokio::test]
async fn tls_files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let missing = Tls { ca_file: Some(PemFile::at("/no/such/ca.pem")), ..Tls::default() };
    let empty = Tls { ca_file: Some(authority.file("empty.pem", "nothing here")), ..Tls::default() };
    let broken = ClientCertificate {
        certificate_file: authority.file("broken.pem", "nothing here"),
        key_file: authority.file("broken.key", "nothing here"),
    };
    let broken = Tls { client_certificate: Some(broken), ..Tls::default() };
    for (tls, expected) in [(missing, "/no/such/ca.pem"), (empty, "empty.pem"), (broken, "broken.key")] {
        let error = connect_with("https://127.0.0.1:1", tls).await.unwrap_err();
        assert!(matches!(*error, AuthError::Tls(_)), "{error:?}");
        let causes = chain(&*error);
        assert!(causes.contains(expected), "{causes}");
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

impl Authority {
    /// The CA file, kept after the authority is gone.
    fn ca_file_kept(self) -> PemFile {
        let pem = self.issuer.pem();
        let path = self.folder.keep().join("other-ca.pem");
        std::fs::write(&path, pem).unwrap();
        PemFile::at(path)
    }
}

/// A Keystone that shows this certificate.
async fn showing(certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> String {
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    serve(TlsAcceptor::from(Arc::new(config))).await
}

/// What a user reads of a connection that fails.
async fn refusal(url: &str, tls: Tls) -> String {
    let error = connect_with(url, tls).await.unwrap_err();
    std::error::Error::source(&*error).expect("a cause").to_string()
}

/// A plain `openssl req -x509` makes a CA certificate, which other programs accept for the server that shows it.
#[tokio::test]
async fn a_self_signed_certificate_that_is_a_ca_is_refused_with_the_ways_out() {
    let authority = Authority::new();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let url = showing(certificate.der().clone(), key).await;
    let ca_file = Some(authority.file("self.pem", &certificate.pem()));
    let refusal = refusal(&url, Tls { ca_file, ..Tls::default() }).await;
    for way_out in ["CA:FALSE", "have a CA sign it"] {
        assert!(refusal.contains(way_out), "{refusal}");
    }
}

const P521_CA: &str = include_str!("p521/ca.pem");

#[tokio::test]
async fn a_ca_with_a_p521_key_is_refused_with_the_way_out() {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("p521/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("p521/server.key")).unwrap();
    let url = showing(certificate, key).await;
    let refusal = refusal(&url, Tls { ca_pem: Some(P521_CA.to_owned()), ..Tls::default() }).await;
    assert!(refusal.contains("P-521") && refusal.contains("P-384"), "{refusal}");
}

#[tokio::test]
async fn a_client_key_of_p521_is_refused_with_the_way_out() {
    let authority = Authority::new();
    let client_certificate = ClientCertificate {
        certificate_file: authority.file("client.pem", P521_CA),
        key_file: authority.file("client.key", include_str!("p521/ca.key")),
    };
    let refusal = refusal(
        "https://127.0.0.1:1",
        Tls { client_certificate: Some(client_certificate), ..Tls::default() },
    )
    .await;
    assert!(refusal.contains("P-521") && refusal.contains("P-384"), "{refusal}");
}

/// As a server answers that offers CBC suites only.
#[tokio::test]
async fn a_server_without_a_suite_in_common_is_named_with_the_way_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0; 4096];
            let _ = stream.read(&mut hello).await;
            // A fatal alert: handshake_failure (RFC 8446, 6).
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]).await;
            let _ = stream.shutdown().await;
        }
    });
    let refusal = refusal(&url, Tls::default()).await;
    assert!(
        refusal.contains("cipher suite") && refusal.contains("CBC suites are not supported"),
        "{refusal}"
    );
}
