//! What the kubelet asks: one path for each container.

use std::io;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::Said;
use crate::carried::Carried;
use crate::{CONCLUSIVE, FIT};

/// Status and text for a probe.
type ProbeAnswer = (StatusCode, &'static str);

/// Answers the kubelet, for ever.
pub(super) async fn serve(listener: TcpListener, said: watch::Receiver<Said>) -> io::Result<()> {
    let conclusive = |State(said): State<watch::Receiver<Said>>| async move {
        answer(&said, |(conclusive, _)| conclusive)
    };
    let fit = |State(said): State<watch::Receiver<Said>>| async move { answer(&said, |(_, fit)| fit) };
    let routes = Router::new()
        .route(&format!("/{CONCLUSIVE}"), get(conclusive))
        .route(&format!("/{FIT}"), get(fit))
        .with_state(said);
    axum::serve(listener, routes).await
}

fn answer(said: &watch::Receiver<Said>, ready: fn((bool, bool)) -> bool) -> ProbeAnswer {
    let said = *said.borrow();
    let status =
        if ready(Carried::readiness(said.held)) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, said.held.or(said.last).map_or("nothing is known yet", |finding| finding.text()))
}
