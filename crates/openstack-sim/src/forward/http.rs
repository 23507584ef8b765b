//! HTTP listeners: one request and its response, with headers inserted.

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::connection::{End, connect, inserts_x_forwarded_for};
use super::listener::Shared;
use super::upstream::Route;
use super::wanted::Listener;

/// Longest request line and headers: HAProxy's buffer.
const LONGEST_HEAD: usize = 16 * 1024;
/// What every response begins with.
const VERSION: &[u8] = b"HTTP/";

/// Forwards one request and closes the connection after its response.
pub(super) async fn exchange(
    mut client: TcpStream,
    listener: &Listener,
    route: Route,
    shared: &Shared,
) -> io::Result<End> {
    let request = match read_request(&mut client).await? {
        Reading::Nothing => return Ok(End::Served),
        Reading::Malformed => {
            answer(&mut client, "400 Bad request", "Your browser sent an invalid request.").await?;
            return Ok(End::Served);
        }
        Reading::Request(request) => request,
    };
    let forwarded_for = inserts_x_forwarded_for(listener).then(|| route.source.ip());
    let Some(head) = rewrite(&request.head, forwarded_for) else {
        answer(&mut client, "400 Bad request", "Your browser sent an invalid request.").await?;
        return Ok(End::Served);
    };
    let Some(mut member) = connect(listener, route, shared).await else {
        answer(&mut client, "503 Service Unavailable", "No server is available to handle this request.")
            .await?;
        return Ok(End::Unserved);
    };
    let sent = async {
        member.write_all(&head).await?;
        member.write_all(&request.body).await
    };
    // A member that has closed already has said all that it will say.
    if let Err(error) = sent.await {
        tracing::debug!(%error, "the request was not taken");
    }
    transfer(&mut client, &mut member).await?;
    Ok(End::Served)
}

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    /// The connection was closed before anything came.
    Nothing,
    /// Too long, or cut off.
    Malformed,
    Request(Request),
}

/// The beginning of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// Request line and headers with the empty line.
    head: Vec<u8>,
    /// What has come of the body.
    body: Vec<u8>,
}

async fn read_request(client: &mut TcpStream) -> io::Result<Reading> {
    let mut head = Vec::new();
    loop {
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = head.split_off(end + 4);
            return Ok(Reading::Request(Request { head, body }));
        }
        if head.len() > LONGEST_HEAD {
            return Ok(Reading::Malformed);
        }
        if client.read_buf(&mut head).await? == 0 {
            return Ok(if head.is_empty() { Reading::Nothing } else { Reading::Malformed });
        }
    }
}

/// The head that the member gets: with the client's address, and with a connection for this request only, unless the
/// request asks for another protocol (WebSocket). Headers that are there stay, an `X-Forwarded-For` of the client's too.
///
/// Nothing when it is not the head of an HTTP/1 request.
fn rewrite(head: &[u8], forwarded_for: Option<IpAddr>) -> Option<Vec<u8>> {
    let head = head.strip_suffix(b"\r\n\r\n")?;
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let request_line = lines.next().filter(|line| is_request_line(line))?;
    let headers: Vec<(&[u8], &[u8])> =
        lines.map(|line| Some((header_name(line)?, line))).collect::<Option<_>>()?;
    let upgrades = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"upgrade"));

    let mut rewritten = Vec::with_capacity(head.len() + 80);
    let mut push = |line: &[u8]| {
        rewritten.extend_from_slice(line);
        rewritten.extend_from_slice(b"\r\n");
    };
    push(request_line);
    for (_, line) in headers.iter().filter(|(name, _)| upgrades || !is_about_the_connection(name)) {
        push(line);
    }
    if let Some(address) = forwarded_for {
        push(format!("X-Forwarded-For: {address}").as_bytes());
    }
    if !upgrades {
        push(b"Connection: close");
    }
    push(b"");
    Some(rewritten)
}

fn is_request_line(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    matches!(words[..], [method, target, version]
        if !method.is_empty() && !target.is_empty() && version.starts_with(b"HTTP/1."))
}

/// The name in a header line; nothing when it is none, or one of the folded lines that HTTP/1.1 forbids.
fn header_name(line: &[u8]) -> Option<&[u8]> {
    let name = &line[..line.iter().position(|byte| *byte == b':')?];
    (!name.is_empty() && !name.iter().any(u8::is_ascii_whitespace)).then_some(name)
}

fn is_about_the_connection(name: &[u8]) -> bool {
    [b"connection".as_slice(), b"proxy-connection", b"keep-alive"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Copies the rest of the request and the whole response. A member that closes without a response makes a 502.
async fn transfer(client: &mut TcpStream, member: &mut TcpStream) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_member, mut to_member) = member.split();
    let upload = async {
        // A client that closes its side may still wait for the response, and a member may take a closed side for an abort:
        // the end of the upload alone says nothing.
        tokio::io::copy(&mut from_client, &mut to_member).await.err()
    };
    let download = async {
        let mut beginning = Vec::new();
        while beginning.len() < VERSION.len() {
            // A reset is the end of the response, too.
            if from_member.read_buf(&mut beginning).await.unwrap_or(0) == 0 {
                break;
            }
        }
        if !beginning.starts_with(VERSION) {
            return answer(
                &mut to_client,
                "502 Bad Gateway",
                "The server returned an invalid or incomplete response.",
            )
            .await;
        }
        to_client.write_all(&beginning).await?;
        tokio::io::copy(&mut from_member, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::pin!(upload, download);
    tokio::select! {
        biased;
        downloaded = &mut download => downloaded,
        broken = &mut upload => {
            if let Some(error) = broken {
                tracing::debug!(%error, "the request could not be sent to its end");
            }
            download.await
        }
    }
}

/// Answers in the load balancer's own name and ends the connection.
async fn answer(
    client: &mut (impl tokio::io::AsyncWrite + Unpin),
    status: &str,
    explanation: &str,
) -> io::Result<()> {
    let body = format!("<html><body><h1>{status}</h1>\n{explanation}\n</body></html>\n");
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nCache-Control: no-cache\r\nConnection: close\r\nContent-Type: \
         text/html\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(body.as_bytes()).await?;
    client.shutdown().await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn rewritten(head: &str, forwarded_for: Option<&str>) -> Option<String> {
        let address = forwarded_for.map(|address| address.parse().unwrap());
        rewrite(head.as_bytes(), address).map(|head| String::from_utf8(head).unwrap())
    }

    #[test]
    fn the_client_is_added_after_what_the_client_claims() {
        let head = "GET /p HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n";
        let expected = "GET /p HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-For: \
                        192.0.2.7\r\nConnection: close\r\n\r\n";
        assert_eq!(rewritten(head, Some("192.0.2.7")).unwrap(), expected);
    }

    #[test]
    fn the_member_is_told_to_close() {
        let head = "GET / HTTP/1.1\r\nconnection: keep-alive\r\nKeep-Alive: timeout=5\r\nHost: x\r\n\r\n";
        assert_eq!(rewritten(head, None).unwrap(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }

    #[test]
    fn an_upgrade_keeps_its_connection_header() {
        let head = "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        assert_eq!(rewritten(head, None).unwrap(), head);
    }

    #[rstest]
    #[case("nonsense\r\n\r\n")]
    #[case("PRI * HTTP/2.0\r\n\r\n")]
    #[case("GET / HTTP/1.1\r\nno colon\r\n\r\n")]
    #[case("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n")]
    fn what_is_not_a_request_is_refused(#[case] head: &str) {
        assert_eq!(rewritten(head, None), None);
    }
}
