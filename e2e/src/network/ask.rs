//! One HTTP request from a network namespace, with a precise account of what happened.
//!
//! The program runs itself inside the namespace (`ip netns exec n1-client openstack-ccm-e2e ask ...`), so nothing but
//! this file decides what counts as refused, closed or answered.

use std::fmt;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::machine::process::run;
use crate::machine::world::in_namespace;

/// Longest wait for a connection, and then for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A status line and a body came back.
    Answered {
        /// Status code of HTTP.
        status: u16,
        /// The body without the end of its last line.
        body: String,
    },
    /// The connection was refused.
    Refused,
    /// The connection was made, then closed or reset without an answer.
    Closed,
    /// Nothing came back in time.
    TimedOut,
    /// The name does not resolve, or the address cannot be reached.
    Unreachable(String),
}

impl Outcome {
    /// The client's address as the ingress saw it, if the ingress answered.
    pub(crate) fn client(&self) -> Option<&str> {
        match self {
            Self::Answered { status: 200, body } => {
                body.split_whitespace().find_map(|word| word.strip_prefix("client="))
            }
            Self::Answered { .. } | Self::Refused | Self::Closed | Self::TimedOut | Self::Unreachable(_) => {
                None
            }
        }
    }

    /// As JSON, for the process that asked for the request.
    pub(crate) fn account(&self) -> Value {
        match self {
            Self::Answered { status, body } => {
                json!({"outcome": "answered", "status": status, "body": body})
            }
            Self::Refused => json!({"outcome": "refused"}),
            Self::Closed => json!({"outcome": "closed"}),
            Self::TimedOut => json!({"outcome": "timed-out"}),
            Self::Unreachable(reason) => json!({"outcome": "unreachable", "reason": reason}),
        }
    }

    /// What went wrong, of what the operating system says.
    pub(crate) fn of_failure(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Self::Closed,
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Self::TimedOut,
            _ => Self::Unreachable(error.to_string()),
        }
    }

    /// The pod that answered.
    pub(crate) fn pod(&self) -> Option<&str> {
        match self {
            Self::Answered { body, .. } => body.split_whitespace().find_map(|word| word.strip_prefix("pod=")),
            Self::Refused | Self::Closed | Self::TimedOut | Self::Unreachable(_) => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { status, body } => write!(formatter, "{status} {body}"),
            Self::Refused => formatter.write_str("refused"),
            Self::Closed => formatter.write_str("closed without an answer"),
            Self::TimedOut => formatter.write_str("timed out"),
            Self::Unreachable(reason) => write!(formatter, "unreachable: {reason}"),
        }
    }
}

/// Asks `http://host:port/` from a namespace.
pub(crate) fn from_namespace(namespace: &str, host: &str, port: u16) -> Result<Outcome> {
    let this = std::env::current_exe()?;
    outcome_of(in_namespace(namespace, this).args(["ask", host, &port.to_string()]))
}

/// Asks `https://host:port/` from a namespace and trusts only the given authority.
pub(crate) fn from_namespace_by_tls(
    namespace: &str,
    host: &str,
    port: u16,
    authority: &Path,
) -> Result<Outcome> {
    let this = std::env::current_exe()?;
    let mut command = in_namespace(namespace, this);
    outcome_of(command.args(["ask", host, &port.to_string(), "--authority"]).arg(authority))
}

/// The text of `https://host:port/path`, asked from a namespace that trusts only the given authority.
pub(crate) fn page_by_tls(
    namespace: &str,
    host: &str,
    port: u16,
    path: &str,
    authority: &Path,
) -> Result<String> {
    let this = std::env::current_exe()?;
    let mut command = in_namespace(namespace, this);
    command.args(["ask", host, &port.to_string(), "--path", path, "--authority"]).arg(authority);
    match outcome_of(&mut command)? {
        Outcome::Answered { status: 200, body } => Ok(body),
        other => bail!("https://{host}:{port}{path}: {other}"),
    }
}

/// Asks `http://host:port/path` from a namespace.
pub(crate) fn page(namespace: &str, host: &str, port: u16, path: &str) -> Result<Outcome> {
    let this = std::env::current_exe()?;
    outcome_of(in_namespace(namespace, this).args(["ask", host, &port.to_string(), "--path", path]))
}

/// The status of [`page`]; absent where there is no answer.
pub(crate) fn status(namespace: &str, host: &str, port: u16, path: &str) -> Result<Option<u16>> {
    Ok(match page(namespace, host, port, path)? {
        Outcome::Answered { status, .. } => Some(status),
        Outcome::Refused | Outcome::Closed | Outcome::TimedOut | Outcome::Unreachable(_) => None,
    })
}

/// What the request of a process in a namespace came to.
pub(crate) fn outcome_of(command: &mut Command) -> Result<Outcome> {
    let text = run(command)?;
    let value: Value =
        serde_json::from_str(&text).with_context(|| format!("no account of the request: {text}"))?;
    let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Ok(match word("outcome").as_str() {
        "answered" => {
            let status = value["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            Outcome::Answered { status: status.unwrap_or_default(), body: word("body") }
        }
        "refused" => Outcome::Refused,
        "closed" => Outcome::Closed,
        "timed-out" => Outcome::TimedOut,
        "unreachable" => Outcome::Unreachable(word("reason")),
        other => bail!("no account of the request: {other}"),
    })
}

/// The other end of [`from_namespace`]: asks, and describes the outcome as JSON.
pub(crate) fn account(host: &str, port: u16, path: &str, authority: Option<&Path>) -> Value {
    let outcome = match authority {
        Some(authority) => ask_by_tls(host, port, path, authority)
            .unwrap_or_else(|error| Outcome::Unreachable(format!("{error:#}"))),
        None => ask(host, port, path),
    };
    outcome.account()
}

/// Asks from where this process is.
pub(crate) fn ask(host: &str, port: u16, path: &str) -> Outcome {
    let address = match (host, port).to_socket_addrs().map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => address,
        Ok(None) => return Outcome::Unreachable("the name has no address".into()),
        Err(error) => return Outcome::Unreachable(error.to_string()),
    };
    exchange(host, path, &address).unwrap_or_else(|error| Outcome::of_failure(&error))
}

fn ask_by_tls(host: &str, port: u16, path: &str, authority: &Path) -> Result<Outcome> {
    let client = reqwest::blocking::Client::builder()
        .use_rustls_tls()
        .tls_built_in_root_certs(false)
        .add_root_certificate(reqwest::Certificate::from_pem(&std::fs::read(authority)?)?)
        .timeout(PATIENCE)
        .user_agent(env!("CARGO_PKG_NAME"))
        .build()?;
    let response = client.get(format!("https://{host}:{port}{path}")).send()?;
    let status = response.status().as_u16();
    Ok(Outcome::Answered { status, body: response.text()?.trim_end().to_owned() })
}

fn exchange(host: &str, path: &str, address: &std::net::SocketAddr) -> std::io::Result<Outcome> {
    let mut stream = TcpStream::connect_timeout(address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let name = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes);
    if bytes.is_empty() {
        end?;
        return Ok(Outcome::Closed);
    }
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

fn parse(text: &str) -> Outcome {
    let status = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body).trim_end().to_owned();
    Outcome::Answered { status, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_client_and_pod() {
        let outcome =
            parse("HTTP/1.1 200 OK\r\nServer: x\r\n\r\npod=n1-ingress client=192.0.2.1 peer=10.0.0.1\n");
        assert_eq!(outcome.client(), Some("192.0.2.1"));
        assert_eq!(outcome.pod(), Some("n1-ingress"));
    }

    #[test]
    fn an_error_page_has_no_client() {
        assert_eq!(parse("HTTP/1.1 400 Bad Request\r\n\r\nclient=1.2.3.4").client(), None);
    }
}
