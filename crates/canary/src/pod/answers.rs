//! What a canary pod answers: to other pods its greeting with the token, and the end of the connection; to the kubelet
//! whether each container is ready.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::Findings;
use crate::carried::Carried;
use crate::{CONCLUSIVE, FIT};

/// By this an answer is known as that of a canary.
pub(super) const GREETING: &str = "openstack-ccm-canary ";
/// Connections at once. A look has one at a time, so that these are many nodes.
const MOST: usize = 64;
/// Longest wait for a client to take the answer.
const LIMIT: Duration = Duration::from_secs(2);

/// The whole answer.
pub(super) fn greeting(token: &str) -> String {
    format!("{GREETING}{token}\n")
}

/// Answers everybody, for ever.
pub(super) async fn greet(door: TcpListener, token: &str) {
    let greeting: Arc<str> = greeting(token).into();
    let places = Arc::new(Semaphore::new(MOST));
    loop {
        // Nobody closes the semaphore.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match door.accept().await {
            Ok((mut stream, _)) => {
                let greeting = Arc::clone(&greeting);
                tokio::spawn(async move {
                    let say = async {
                        stream.write_all(greeting.as_bytes()).await?;
                        stream.shutdown().await
                    };
                    // Whoever does not take it gets nothing.
                    let _ = timeout(LIMIT, say).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Answers the kubelet, one path for each container, for ever.
pub(super) async fn readiness(listener: TcpListener, findings: watch::Receiver<Findings>) -> io::Result<()> {
    let probe = |is_ready: fn((bool, bool)) -> bool| {
        let findings = findings.clone();
        get(async move || {
            let Findings { held, last } = *findings.borrow();
            let ready = is_ready(Carried::readiness(held));
            let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            (status, held.or(last).map_or("nothing is known yet", |finding| finding.text()))
        })
    };
    let routes = Router::new()
        .route(&format!("/{CONCLUSIVE}"), probe(|(conclusive, _)| conclusive))
        .route(&format!("/{FIT}"), probe(|(_, fit)| fit));
    axum::serve(listener, routes).await
}
