//! One health check.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::environment::Translation;
use super::health::Check;
use super::wanted::MonitorKind;

/// Longest part of a response that is looked at for its status line.
const LONGEST_STATUS_LINE: usize = 1024;

/// Makes one check. Answers whether it passed.
///
/// # Errors
/// The member cannot be reached; the check did not pass either.
pub(super) async fn probe(check: &Check, member: &Translation) -> io::Result<bool> {
    let mut stream = TcpStream::connect(member(check.target)).await?;
    if let Some(version) = check.proxy {
        let header = version.check_header(stream.local_addr()?, stream.peer_addr()?);
        stream.write_all(&header).await?;
    }
    match &check.monitor.kind {
        MonitorKind::Tcp => {
            stream.shutdown().await?;
            Ok(true)
        }
        MonitorKind::Http { path, codes } => {
            // Octavia asks in HTTP/1.0 unless the monitor has a domain name.
            stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
            Ok(status_code(&status_line(&mut stream).await?).is_some_and(|code| codes.contains(code)))
        }
    }
}

async fn status_line(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    while !received.contains(&b'\n') && received.len() < LONGEST_STATUS_LINE {
        if stream.read_buf(&mut received).await? == 0 {
            break;
        }
    }
    Ok(received)
}

/// The code in a response that begins like `HTTP/1.1 200 OK`.
fn status_code(response: &[u8]) -> Option<u16> {
    let line = response.split(|byte| *byte == b'\n').next()?;
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/"))?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"HTTP/1.1 200 OK\r\nServer: x\r\n", Some(200))]
    #[case(b"HTTP/1.0 503\r\n", Some(503))]
    #[case(b"SSH-2.0-OpenSSH\r\n", None)]
    #[case(b"", None)]
    fn the_code_is_in_the_status_line(#[case] response: &[u8], #[case] expected: Option<u16>) {
        assert_eq!(status_code(response), expected);
    }
}
