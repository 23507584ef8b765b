//! The HTTP client for Keystone and all services.

use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_dns::Resolver;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Identity, Proxy};
use secrecy::ExposeSecret as _;

use super::proxy::ProxyRules;
use super::{AuthOptions, ClientCertificate, PemFile, Tls};
use crate::error::{AuthError, Cause, TlsError};

/// The timeout of connecting: an unreachable host is detected long before the timeout of a request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// This crate's product in the `User-Agent` header.
const PRODUCT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// Builds the client. Proxies come from the environment ([`ProxyRules`]). Redirects are never followed: the token would be sent to
/// their target.
pub(crate) fn http_client(options: &AuthOptions) -> Result<Client, AuthError> {
    let mut products: Vec<&str> = options.user_agent.iter().map(String::as_str).collect();
    products.push(PRODUCT);
    let proxies = ProxyRules::of_process();
    let builder = Client::builder()
        .use_rustls_tls()
        .proxy(Proxy::custom(move |url| proxies.proxy_for(url).cloned()))
        .redirect(Policy::none())
        .dns_resolver(Arc::new(Resolver::default()))
        .timeout(options.request_timeout)
        .connect_timeout(CONNECT_TIMEOUT.min(options.request_timeout))
        .user_agent(products.join(" "));
    let builder = with_tls(builder, &options.tls).map_err(AuthError::Tls)?;
    builder.build().map_err(|error| AuthError::HttpClient(network_cause(error)))
}

fn with_tls(mut builder: ClientBuilder, tls: &Tls) -> Result<ClientBuilder, TlsError> {
    if let Some((pem, origin)) = ca_bundle(tls)? {
        let certificates = Certificate::from_pem_bundle(&pem)
            .map_err(|source| TlsError::Pem { origin: origin.clone(), source: source.into() })?;
        if certificates.is_empty() {
            return Err(TlsError::EmptyCaBundle { origin });
        }
        builder = builder.tls_built_in_root_certs(false);
        builder = certificates.into_iter().fold(builder, ClientBuilder::add_root_certificate);
    }
    if let Some(certificate) = &tls.client_certificate {
        builder = builder.identity(identity(certificate)?);
    }
    if tls.insecure {
        tracing::warn!("certificates of OpenStack services are not verified (tls-insecure)");
        builder = builder.danger_accept_invalid_certs(true);
    }
    Ok(builder)
}

/// Returns the configured CA certificates, and where they come from.
fn ca_bundle(tls: &Tls) -> Result<Option<(Vec<u8>, String)>, TlsError> {
    match (&tls.ca_file, &tls.ca_pem) {
        (Some(file), _) => Ok(Some((read(file)?, file.path.display().to_string()))),
        (None, Some(pem)) => Ok(Some((pem.clone().into_bytes(), "cafilecontents".to_owned()))),
        (None, None) => Ok(None),
    }
}

fn identity(certificate: &ClientCertificate) -> Result<Identity, TlsError> {
    let mut pem = read(&certificate.certificate_file)?;
    pem.push(b'\n');
    pem.extend(read(&certificate.key_file)?);
    let path = |file: &PemFile| file.path.display().to_string();
    let origin = format!("{} with {}", path(&certificate.certificate_file), path(&certificate.key_file));
    Identity::from_pem(&pem).map_err(|source| TlsError::Pem { origin, source: source.into() })
}

fn read(file: &PemFile) -> Result<Vec<u8>, TlsError> {
    let PemFile { path, content } = file;
    match content {
        Some(content) => Ok(content.expose_secret().as_bytes().to_vec()),
        None => std::fs::read(path).map_err(|source| TlsError::Read { path: path.clone(), source }),
    }
}

/// Returns the error without the address, which the outer error already names.
pub(crate) fn network_cause(error: reqwest::Error) -> Cause {
    let error = error.without_url();
    match way_out(&error) {
        Some(way_out) => Box::new(ExplainedCause { way_out, source: error }),
        None => error.into(),
    }
}

/// A TLS error with advice.
#[derive(Debug, thiserror::Error)]
#[error("{way_out}")]
struct ExplainedCause {
    way_out: &'static str,
    source: reqwest::Error,
}

/// Returns advice for errors that the TLS library words for its own developers. Other programs accept such certificates and
/// servers, so that users would not suspect them.
fn way_out(error: &reqwest::Error) -> Option<&'static str> {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let ways_out = [
        (
            "CaUsedAsEndEntity",
            "the server presents a CA certificate as its server certificate, as self-signed certificates often are: create the \
             certificate again with basicConstraints=CA:FALSE (openssl req -x509 -addext basicConstraints=critical,CA:FALSE), or have a \
             CA sign it, and set ca-file to the CA certificate",
        ),
        (
            "UnsupportedSignatureAlgorithm",
            "a certificate has an unsupported signature algorithm, such as with a P-521 key: use RSA, P-256, P-384 or Ed25519",
        ),
        (
            "failed to parse private key",
            "the key of the client certificate has an unsupported type, such as P-521: use RSA, P-256, P-384 or Ed25519",
        ),
        (
            "HandshakeFailure",
            "the server and this program have no cipher suite in common: the server has to offer TLS 1.3, or an ECDHE suite with \
             AES-GCM or ChaCha20-Poly1305; CBC suites are not supported",
        ),
        (
            "InvalidContentType",
            "the server does not speak TLS on this port: use http:// in the address, or the port of its https listener",
        ),
    ];
    ways_out.into_iter().find(|(cause, _)| text.contains(cause)).map(|(_, way_out)| way_out)
}
