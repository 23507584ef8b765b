//! HTTP/1.1 as far as a load balancer needs it here: the head of one request for each connection.

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::route::Header;

/// The longest head that is read, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;

/// Reads up to the end of a request's head. What was read of the body comes along.
///
/// # Errors
/// The client sent too much or went away.
pub(crate) async fn read_head(client: &mut (impl AsyncRead + Unpin)) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = read.split_off(end + 4);
            return Ok((read, body));
        }
        if read.len() > LONGEST_HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the head of the request is too long"));
        }
        if client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The head with the inserted headers, and with `Connection: close` unless the connection changes its protocol: one request for
/// each connection keeps this simple, and every request gets its headers.
pub(crate) fn rewrite(head: &[u8], insert: &[Header], client: IpAddr, port: u16) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let mut lines: Vec<&str> = text.trim_end_matches("\r\n").split("\r\n").collect();
    let name = |line: &str| line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    let upgrades = lines.iter().any(|line| name(line) == "upgrade");
    if !upgrades {
        lines.retain(|line| !matches!(name(line).as_str(), "connection" | "keep-alive"));
    }
    let mut rewritten: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    rewritten.extend(insert.iter().map(|header| match header {
        Header::For => format!("X-Forwarded-For: {}", client.to_canonical()),
        Header::Port => format!("X-Forwarded-Port: {port}"),
        Header::Proto => "X-Forwarded-Proto: http".to_owned(),
    }));
    if !upgrades {
        rewritten.push("Connection: close".to_owned());
    }
    format!("{}\r\n\r\n", rewritten.join("\r\n")).into_bytes()
}

/// The status of a response's first line.
pub(crate) fn status(response: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(response.get(..12)?).ok()?;
    text.strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|status| status.parse().ok())
}

/// Whether `expected_codes` of a health monitor (`200`, `200,202`, `200-204`) has a status.
pub(crate) fn is_expected(codes: &str, status: u16) -> bool {
    codes.split(',').map(str::trim).any(|part| match part.split_once('-') {
        Some((from, to)) => match (from.parse::<u16>(), to.parse::<u16>()) {
            (Ok(from), Ok(to)) => (from..=to).contains(&status),
            _ => false,
        },
        None => part.parse() == Ok(status),
    })
}

/// What a client gets when no member takes its request.
pub(crate) const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn headers_are_added_and_the_connection_is_closed() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
        let insert = [Header::For, Header::Port, Header::Proto];
        let rewritten = rewrite(head, &insert, "192.0.2.7".parse().unwrap(), 80);
        let expected = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Port: 80\r\n\
                        X-Forwarded-Proto: http\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(rewritten).unwrap(), expected);
    }

    #[test]
    fn a_change_of_protocol_passes() {
        let head = b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let rewritten = rewrite(head, &[], "192.0.2.7".parse().unwrap(), 80);
        assert_eq!(rewritten, head);
    }

    #[rstest]
    #[case("200", 200, true)]
    #[case("200,202", 202, true)]
    #[case("200-204", 203, true)]
    #[case("200-204", 205, false)]
    #[case("nonsense", 200, false)]
    fn expected_codes_are_lists_and_ranges(#[case] codes: &str, #[case] status: u16, #[case] expected: bool) {
        assert_eq!(is_expected(codes, status), expected);
    }

    #[test]
    fn the_status_is_in_the_first_line() {
        assert_eq!(status(b"HTTP/1.1 204 No Content\r\n"), Some(204));
        assert_eq!(status(b"SSH-2.0-OpenSSH"), None);
    }
}
