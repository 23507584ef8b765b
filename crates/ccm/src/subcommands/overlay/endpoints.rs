//! Probes and metrics over HTTP: nothing here is secret, and the pod has no other port.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admin::exposition;
use crate::health::{Health, Probe};

#[derive(Clone)]
struct OverlayPages {
    health: Health,
    metrics: Arc<Mutex<Registry>>,
}

/// Serves the endpoints until `stop`.
///
/// # Errors
/// An address that is taken.
pub(super) async fn start(
    address: SocketAddr,
    health: Health,
    metrics: Arc<Mutex<Registry>>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("--listen={address}: the address cannot be used"))?;
    let router = Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(page))
        .with_state(OverlayPages { health, metrics });
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
        {
            tracing::error!(%error, "probes and metrics are not served any more");
        }
    });
    Ok(())
}

async fn live(State(pages): State<OverlayPages>) -> Response {
    answer(&pages.health, Probe::Liveness)
}

async fn ready(State(pages): State<OverlayPages>) -> Response {
    answer(&pages.health, Probe::Readiness)
}

fn answer(health: &Health, probe: Probe) -> Response {
    match health.report(probe, &[]) {
        (true, _) => "ok".into_response(),
        (false, lines) => (StatusCode::SERVICE_UNAVAILABLE, lines).into_response(),
    }
}

async fn page(State(pages): State<OverlayPages>, headers: HeaderMap) -> Response {
    exposition::page(&pages.metrics, &headers)
}
