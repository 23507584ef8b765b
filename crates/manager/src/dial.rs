//! The program in a pod of `doctor --live`: it dials targets, speaks as their ports expect, and writes the results.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::args::duration;

/// File from which a kubelet reads the message of an ended container.
const MESSAGE: &str = "/dev/termination-log";
/// Bytes of the message that a kubelet reads.
const MAX_MESSAGE_LENGTH: usize = 4096;
/// Maximum of bytes that are written of an answer or a cause.
const MAX_DETAIL_LENGTH: usize = 80;
/// Maximum of bytes of a result besides target and detail.
const MAX_REST_LENGTH: usize = 128;

/// Flags of a pod that dials.
#[derive(Clone, Debug, Args)]
pub struct DialArgs {
    /// What to dial, each as `HOST:PORT` or `[IPv6]:PORT`, and what to speak: `203.0.113.10:443=tls`.
    #[arg(value_name = "HOST:PORT=SPEECH", required = true)]
    to: Vec<String>,
    /// Addresses of the node, which show from where a connection was made.
    #[arg(long, value_name = "IP,...", value_delimiter = ',')]
    node_ips: Vec<IpAddr>,
    /// Longest wait for each.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration::parse)]
    dial_timeout: Duration,
}

/// Splits the targets into portions, so that a kubelet reads all results of each portion.
pub fn portions(targets: &[String]) -> Vec<&[String]> {
    let mut portions = Vec::new();
    let mut rest = targets;
    while !rest.is_empty() {
        let mut left = MAX_MESSAGE_LENGTH - 2;
        let fits = |target: &&String| {
            let longest = target.len() + MAX_DETAIL_LENGTH + MAX_REST_LENGTH;
            let fits = longest <= left;
            left = left.saturating_sub(longest);
            fits
        };
        // A target that is too long by itself is a portion, too: its pod says that it reported nothing.
        let count = rest.iter().take_while(fits).count().max(1);
        let (portion, after) = rest.split_at(count);
        portions.push(portion);
        rest = after;
    }
    portions
}

/// What is sent once the connection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// The first message of TLS.
    Tls,
    /// `HEAD /`
    Http,
    /// Nothing is sent.
    Silence,
}

impl Speech {
    /// Returns what a port expects, by its number, name and `appProtocol`.
    pub fn of(port: u16, name: &str, app_protocol: &str) -> Self {
        let says = |word: &str| {
            name == word || name.starts_with(&format!("{word}-")) || app_protocol.eq_ignore_ascii_case(word)
        };
        if says("https") || says("tls") || port == 443 {
            Self::Tls
        } else if says("http") || port == 80 {
            Self::Http
        } else {
            Self::Silence
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Http => "http",
            Self::Silence => "silence",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "tls" => Self::Tls,
            "http" => Self::Http,
            _ => Self::Silence,
        }
    }
}

/// The result of a dial by a pod on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    pub node: String,
    /// The destination: `203.0.113.10:443`.
    pub to: String,
    /// The result.
    pub result: DialResult,
    /// The duration of the dial, in milliseconds.
    pub milliseconds: u64,
    /// The source of the dial: `a pod address`, `a node address`.
    pub source: String,
}

/// The result of a dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialResult {
    /// The application answered with this text.
    Answered(String),
    /// The connection was accepted, which a load balancer does by itself.
    Accepted,
    /// The connection was accepted and closed without a byte, as by an application that misses the header.
    ClosedSilently,
    /// No answer came in time.
    TimedOut,
    /// The connection was refused or reset.
    Refused(String),
    /// The hostname does not resolve in a pod.
    NoName(String),
    /// The pod did not run, for this reason.
    NotDialled(String),
}

/// The result of one dial, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    to: String,
    result: String,
    #[serde(default)]
    detail: String,
    milliseconds: u64,
    source: String,
}

impl Written {
    /// Turns the result into a fact about a node.
    pub fn on(self, node: &str) -> Dial {
        let Self { to, result, detail, milliseconds, source } = self;
        let result = match result.as_str() {
            "answered" => DialResult::Answered(detail),
            "accepted" => DialResult::Accepted,
            "closed" => DialResult::ClosedSilently,
            "timeout" => DialResult::TimedOut,
            "no-name" => DialResult::NoName(detail),
            _ => DialResult::Refused(detail),
        };
        Dial { node: node.to_owned(), to, result, milliseconds, source }
    }
}

/// Dials all targets, writes the results to the kubelet's message file, and returns them.
///
/// # Errors
/// The results cannot be written as JSON.
pub async fn run(arguments: &DialArgs) -> anyhow::Result<String> {
    let mut written = Vec::new();
    for to in &arguments.to {
        let (place, speech) = to.rsplit_once('=').unwrap_or((to, ""));
        written.push(dial(place, Speech::parse(speech), &arguments.node_ips, arguments.dial_timeout).await);
    }
    let text = serde_json::to_string(&written)?;
    // Outside of a pod there is no such file, and no kubelet that reads it.
    if std::path::Path::new(MESSAGE).exists() {
        let _ = std::fs::write(MESSAGE, &text);
    }
    Ok(text)
}

async fn dial(to: &str, speech: Speech, node_ips: &[IpAddr], limit: Duration) -> Written {
    let start = Instant::now();
    let mut source = String::new();
    let (result, detail) = match resolved(to, limit).await {
        Err(cause) => ("no-name", cause),
        Ok(addresses) => {
            let conversation = converse(&addresses, speech, node_ips, &mut source);
            timeout(limit, conversation).await.unwrap_or(("timeout", String::new()))
        }
    };
    let milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Written { to: to.to_owned(), result: result.to_owned(), detail: short(&detail), milliseconds, source }
}

/// Cuts a text to [`MAX_DETAIL_LENGTH`] bytes, without characters that JSON would escape.
fn short(text: &str) -> String {
    let plain = text.chars().filter(|one| !one.is_control() && !matches!(one, '"' | '\\'));
    let mut end = 0;
    plain
        .take_while(|one| {
            end += one.len_utf8();
            end <= MAX_DETAIL_LENGTH
        })
        .collect()
}

/// Returns the addresses of a name, or why there are none. Silent name servers have a time limit of their own, because they say
/// nothing about the load balancer.
async fn resolved(to: &str, limit: Duration) -> Result<Vec<SocketAddr>, String> {
    match timeout(limit, lookup_host(to)).await {
        Ok(Ok(addresses)) => Ok(addresses.collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no name server answered in time".to_owned()),
    }
}

async fn converse(
    addresses: &[SocketAddr],
    speech: Speech,
    node_ips: &[IpAddr],
    source: &mut String,
) -> (&'static str, String) {
    let mut stream = match TcpStream::connect(addresses).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::TimedOut => return ("timeout", String::new()),
        Err(error) => return ("refused", error.to_string()),
    };
    *source = class_of(stream.local_addr().ok(), node_ips).to_owned();
    let words = match speech {
        Speech::Silence => return ("accepted", String::new()),
        Speech::Http => b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
        Speech::Tls => match hello() {
            Some(hello) => hello,
            None => return ("accepted", String::new()),
        },
    };
    if let Err(error) = stream.write_all(&words).await {
        return ("refused", error.to_string());
    }
    let mut answer = [0_u8; 256];
    match stream.read(&mut answer).await {
        Ok(0) => ("closed", String::new()),
        Ok(length) => ("answered", described(&answer[..length], speech)),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => ("closed", String::new()),
        Err(error) => ("refused", error.to_string()),
    }
}

fn class_of(local: Option<SocketAddr>, node_ips: &[IpAddr]) -> &'static str {
    match local {
        Some(local) if node_ips.contains(&local.ip()) => "a node address",
        Some(_) => "a pod address",
        None => "an unknown address",
    }
}

/// Describes an answer by its first bytes.
fn described(answer: &[u8], speech: Speech) -> String {
    match (speech, answer.first()) {
        (Speech::Tls, Some(0x16)) => "TLS handshake".to_owned(),
        (Speech::Tls, Some(0x15)) => "TLS alert".to_owned(),
        _ => {
            let text = String::from_utf8_lossy(answer);
            text.lines().next().unwrap_or_default().to_owned()
        }
    }
}

/// Returns the first message of a TLS client.
fn hello() -> Option<Vec<u8>> {
    let config = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let name = ServerName::try_from("localhost").ok()?;
    let mut connection = ClientConnection::new(Arc::new(config), name).ok()?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).ok()?;
    Some(hello)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio::net::TcpListener;

    use super::*;

    #[rstest]
    #[case::number(443, "", "", Speech::Tls)]
    #[case::name(8443, "https-web", "", Speech::Tls)]
    #[case::app_protocol(9000, "x", "HTTP", Speech::Http)]
    #[case::other(5432, "postgres", "", Speech::Silence)]
    fn a_port_is_spoken_to_as_it_expects(
        #[case] port: u16,
        #[case] name: &str,
        #[case] app_protocol: &str,
        #[case] expected: Speech,
    ) {
        assert_eq!(Speech::of(port, name, app_protocol), expected);
    }

    /// Answers each connection with this text, after it has read something, and closes it.
    async fn answering(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0_u8; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer).await;
        });
        address.to_string()
    }

    #[rstest]
    #[case::http(Speech::Http, b"HTTP/1.1 404 Not Found\r\n\r\n", "answered", "HTTP/1.1 404 Not Found")]
    #[case::tls(Speech::Tls, b"\x16\x03\x03", "answered", "TLS handshake")]
    #[case::hung_up(Speech::Tls, b"", "closed", "")]
    #[tokio::test]
    async fn what_came_of_a_dial_is_described(
        #[case] speech: Speech,
        #[case] answer: &'static [u8],
        #[case] result: &str,
        #[case] detail: &str,
    ) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let to = answering(answer).await;
        let written = dial(&to, speech, &[], Duration::from_secs(20)).await;
        assert_eq!((written.result.as_str(), written.detail.as_str()), (result, detail));
    }

    /// Forty refused dials in one portion would be 4,661 bytes, whose end would be lost.
    #[rstest]
    #[case::addresses(40, "203.0.113.10:65535")]
    #[case::names(40, "a-load-balancer-with-a-long-name.of-a-team.example.org:65535")]
    #[case::one(1, "203.0.113.10:80")]
    #[case::none(0, "")]
    fn a_kubelet_reads_all_results_of_a_portion(#[case] count: usize, #[case] to: &str) {
        let targets = vec![format!("{to}=silence"); count];
        let portions = portions(&targets);
        assert_eq!(portions.concat(), targets);
        for portion in portions {
            let worst = Written {
                to: to.to_owned(),
                result: "answered".to_owned(),
                detail: short(&"\u{7}\"é".repeat(300)),
                milliseconds: u64::MAX,
                source: "an unknown address".to_owned(),
            };
            let message = serde_json::to_string(&vec![worst; portion.len()]).unwrap();
            assert!(
                message.len() <= MAX_MESSAGE_LENGTH,
                "{} results have {} bytes",
                portion.len(),
                message.len()
            );
        }
    }

    #[tokio::test]
    async fn a_port_that_nobody_listens_on_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap().to_string();
        drop(listener);
        let written = dial(&to, Speech::Http, &[], Duration::from_secs(20)).await;
        assert!(matches!(written.on("n").result, DialResult::Refused(_)));
    }
}
