//! The servers of a canary pod: for other pods, a proof that it knows the token; for the kubelet, the readiness of each
//! container.
//!
//! No client learns the token by dialling: it sends a number that was never used before, and gets its keyed hash.

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

/// Marks an answer as that of a canary.
pub(super) const GREETING: &str = "openstack-ccm-canary ";
/// Connections at once. A look has one at a time, so that 64 serve many nodes.
const MAX_CONNECTIONS: usize = 64;
/// Longest wait for a client to send its challenge and take the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Length of a challenge.
pub(super) const CHALLENGE_LENGTH: usize = 32;

/// The secret that only the canary pods of a rollout share.
#[derive(Clone)]
pub(super) struct Token(hmac::Key);

impl Token {
    pub(super) fn new(token: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes()))
    }

    /// Returns the whole answer to a challenge.
    pub(super) fn answer(&self, challenge: &[u8]) -> String {
        format!("{GREETING}{}\n", hex(hmac::sign(&self.0, challenge).as_ref()))
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Answers all clients, for ever.
pub(super) async fn greet(door: TcpListener, token: &Token) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // The semaphore is never closed.
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
                    // A client that sends no challenge, or does not read, gets nothing.
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

/// Serves readiness to the kubelet, one path for each container, for ever.
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
