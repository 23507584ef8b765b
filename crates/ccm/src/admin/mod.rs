//! The endpoints for probes and scrapers, over HTTPS as upstream serves them: `/healthz`, `/livez`, `/readyz` and
//! `/metrics`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::health::{Health, Kind};

mod cipher_suites;

pub use cipher_suites::{CipherSuiteError, cipher_suites};

/// Content type of the OpenMetrics text format
/// (<https://prometheus.io/docs/specs/om/open_metrics_spec/#content-type>).
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A client that does not finish the TLS handshake must not hold a connection for ever.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the endpoints show.
#[derive(Clone)]
pub struct Admin {
    /// The checks.
    pub health: Health,
    /// The metrics.
    pub metrics: Arc<Mutex<Registry>>,
    /// Whether `/metrics` may be read by anyone who reaches the port.
    pub metrics_open: bool,
}

impl Admin {
    /// The routes.
    pub fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(healthz))
            .route("/livez", get(healthz))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self)
    }
}

async fn healthz(State(admin): State<Admin>, Query(query): Query<Vec<(String, String)>>) -> Response {
    checks(&admin, Kind::Liveness, &query)
}

async fn readyz(State(admin): State<Admin>, Query(query): Query<Vec<(String, String)>>) -> Response {
    checks(&admin, Kind::Readiness, &query)
}

fn checks(admin: &Admin, endpoint: Kind, query: &[(String, String)]) -> Response {
    let excluded: Vec<String> =
        query.iter().filter(|(key, _)| key == "exclude").map(|(_, name)| name.clone()).collect();
    let verbose = query.iter().any(|(key, _)| key == "verbose");
    match admin.health.report(endpoint, &excluded) {
        (true, lines) if verbose => format!("{lines}healthz check passed\n").into_response(),
        (true, _) => "ok".into_response(),
        (false, lines) => (StatusCode::INTERNAL_SERVER_ERROR, lines).into_response(),
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    if !admin.metrics_open {
        let hint = "metrics are served without authorization only on a loopback --bind-address, or where \
                    --authorization-always-allow-paths names /metrics\n";
        return (StatusCode::FORBIDDEN, hint).into_response();
    }
    let mut text = String::new();
    let registry = admin.metrics.lock().unwrap_or_else(PoisonError::into_inner);
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Certificate and key of the endpoints.
///
/// # Errors
/// Files that cannot be read or do not fit.
pub fn tls_config(files: Option<(&Path, &Path)>) -> anyhow::Result<ServerConfig> {
    let (certificates, key) = match files {
        Some((certificate, key)) => {
            let certificates =
                CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect).with_context(
                    || format!("--tls-cert-file={}: cannot be read as PEM", certificate.display()),
                )?;
            let key = PrivateKeyDer::from_pem_file(key).with_context(|| {
                format!("--tls-private-key-file={}: cannot be read as PEM", key.display())
            })?;
            (certificates, key)
        }
        None => self_signed()?,
    };
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .context("the certificate and the key of the endpoints do not fit together")
}

fn self_signed() -> anyhow::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let generated =
        rcgen::generate_simple_self_signed(names).context("no self-signed certificate could be made")?;
    let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
    Ok((vec![generated.cert.der().clone()], key.into()))
}

/// Binds the port.
///
/// # Errors
/// The address is taken or not ours.
pub async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("the health and metrics endpoints cannot listen on {address} (--bind-address, --secure-port)")
    })
}

/// Serves until `stop` is cancelled.
pub async fn serve(listener: TcpListener, tls: ServerConfig, admin: Admin, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let router = admin.router();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely: give others the time to close theirs.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await
            else {
                return;
            };
            let service = TowerToHyperService::new(router);
            if let Err(error) =
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await
            {
                tracing::debug!(%error, "a connection to the health endpoints ended early");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt as _;

    use super::*;

    async fn status(admin: &Admin, path: &str) -> StatusCode {
        let request = Request::get(path).body(Body::empty()).unwrap();
        admin.clone().router().oneshot(request).await.unwrap().status()
    }

    fn admin(metrics_open: bool) -> Admin {
        Admin { health: Health::default(), metrics: Arc::default(), metrics_open }
    }

    #[tokio::test]
    async fn probes_tell_live_from_ready() {
        let admin = admin(true);
        admin.health.set("openstack", Kind::Readiness, Some("no answer".into()));
        assert_eq!(status(&admin, "/healthz").await, StatusCode::OK);
        assert_eq!(status(&admin, "/livez?verbose").await, StatusCode::OK);
        assert_eq!(status(&admin, "/readyz").await, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(status(&admin, "/readyz?exclude=openstack").await, StatusCode::OK);
        assert_eq!(status(&admin, "/nothing").await, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn metrics_are_not_open_to_everyone_by_default() {
        assert_eq!(status(&admin(false), "/metrics").await, StatusCode::FORBIDDEN);
        assert_eq!(status(&admin(true), "/metrics").await, StatusCode::OK);
    }

    #[test]
    fn a_certificate_is_made_when_none_is_given() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        assert!(tls_config(None).is_ok());
        let missing = Path::new("/does/not/exist.pem");
        let error = tls_config(Some((missing, missing))).unwrap_err();
        assert!(error.to_string().contains("--tls-cert-file"));
    }
}
