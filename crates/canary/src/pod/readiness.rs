//! What the kubelet asks: one path for each container.

use std::io;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::Findings;
use crate::carried::Carried;
use crate::{CONCLUSIVE, FIT};

/// Status and text for a probe.
type ProbeAnswer = (StatusCode, &'static str);

/// Answers the kubelet, for ever.
pub(super) async fn serve(listener: TcpListener, findings: watch::Receiver<Findings>) -> io::Result<()> {
    let conclusive = |State(findings): State<watch::Receiver<Findings>>| async move {
        answer(&findings, |(conclusive, _)| conclusive)
    };
    let fit =
        |State(findings): State<watch::Receiver<Findings>>| async move { answer(&findings, |(_, fit)| fit) };
    let routes = Router::new()
        .route(&format!("/{CONCLUSIVE}"), get(conclusive))
        .route(&format!("/{FIT}"), get(fit))
        .with_state(findings);
    axum::serve(listener, routes).await
}

fn answer(findings: &watch::Receiver<Findings>, ready: fn((bool, bool)) -> bool) -> ProbeAnswer {
    let findings = *findings.borrow();
    let status = if ready(Carried::readiness(findings.held)) {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, findings.held.or(findings.last).map_or("nothing is known yet", |finding| finding.text()))
}
