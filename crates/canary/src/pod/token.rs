//! The answer of a canary pod: its greeting with the token, and the end of the connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

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
pub(super) async fn answer(door: TcpListener, token: &str) {
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
