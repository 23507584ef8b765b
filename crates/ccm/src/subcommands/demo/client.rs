//! One HTTP request of the demo.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

/// A request takes microseconds here; what takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// HTTP status code.
    pub(super) status: u16,
    /// Body.
    pub(super) body: String,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// No connection.
    #[error("connection refused")]
    Connect(#[source] std::io::Error),
    /// Connection closed or reset without an answer.
    #[error("connection closed without an answer")]
    NoAnswer,
    /// Nothing happened.
    #[error("no answer in time")]
    Timeout,
}

/// Asks `GET /` of `destination` from the address `source`.
///
/// # Errors
/// No answer.
pub(super) async fn fetch(
    source: Option<IpAddr>,
    destination: SocketAddr,
    host: &str,
) -> Result<Answer, FetchError> {
    tokio::time::timeout(TIMEOUT, exchange(source, destination, host))
        .await
        .map_err(|_| FetchError::Timeout)?
}

async fn exchange(source: Option<IpAddr>, destination: SocketAddr, host: &str) -> Result<Answer, FetchError> {
    let socket = if destination.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let socket = socket.map_err(FetchError::Connect)?;
    if let Some(source) = source {
        socket.bind((source, 0).into()).map_err(FetchError::Connect)?;
    }
    let mut stream = socket.connect(destination).await.map_err(FetchError::Connect)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut received = Vec::new();
    if stream.write_all(request.as_bytes()).await.is_ok() {
        // A reset after the answer is still an answer.
        let _ = stream.read_to_end(&mut received).await;
    }
    parse(&String::from_utf8_lossy(&received)).ok_or(FetchError::NoAnswer)
}

fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let answer = parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes").unwrap();
        assert_eq!(answer, Answer { status: 200, body: "yes".into() });
        assert_eq!(parse(""), None);
        assert_eq!(parse("garbage\r\n\r\n"), None);
    }
}
