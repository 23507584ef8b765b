//! What a canary pod answers: to other pods that it knows the token, and the end of the connection; to the kubelet whether each
//! container is ready.
//!
//! Nobody gets the token by dialling. Who dials sends a number that was never used before, and the answer is its keyed hash.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use ring::hmac;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::Findings;
use crate::carried::Carried;
use crate::{CONCLUSIVE, FIT};

/// By this an answer is known as that of a canary.
pub(super) const GREETING: &str = "openstack-ccm-canary ";
/// Connections at once. A look has one at a time, so that these are many nodes.
const MAX_CONNECTIONS: usize = 64;
/// Longest wait for a client to ask, and to take the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Letters of a challenge.
pub(super) const CHALLENGE_LENGTH: usize = 32;

/// What all canary pods of a rollout share, and no others.
#[derive(Clone)]
pub(super) struct Token(hmac::Key);

impl Token {
    pub(super) fn new(token: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes()))
    }

    /// The whole answer to a challenge.
    pub(super) fn answer(&self, challenge: &[u8]) -> String {
        format!("{GREETING}{}\n", hex(hmac::sign(&self.0, challenge).as_ref()))
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Answers everybody, for ever.
pub(super) async fn greet(door: TcpListener, token: &Token) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // Nobody closes the semaphore.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match door.accept().await {
            Ok((mut stream, _)) => {
                let token = token.clone();
                tokio::spawn(async move {
                    let say = async {
                        let mut challenge = [0; CHALLENGE_LENGTH];
                        stream.read_exact(&mut challenge).await?;
                        stream.write_all(token.answer(&challenge).as_bytes()).await?;
                        stream.shutdown().await
                    };
                    // Whoever does not ask, or does not take it, gets nothing.
                    let _ = timeout(ANSWER_TIMEOUT, say).await;
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
            (status, held.or(last).map_or("no result yet", |finding| finding.text()))
        })
    };
    let routes = Router::new()
        .route(&format!("/{CONCLUSIVE}"), probe(|(conclusive, _)| conclusive))
        .route(&format!("/{FIT}"), probe(|(_, fit)| fit));
    axum::serve(listener, routes).await
}
