//! Datagrams: pods that answer them, and one question from a network namespace.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::machine::process::Daemon;
use crate::machine::world::in_namespace;
use crate::network::ask::{Outcome, PATIENCE, outcome_of};

/// The port of the pods.
pub(crate) const PORT: u16 = 8443;
/// A datagram may be lost: so long after one another is sent.
const AGAIN: Duration = Duration::from_millis(500);

/// Sends a datagram from a namespace to an IPv4 address.
pub(crate) fn from_namespace(namespace: &str, host: &str, port: u16) -> Result<Outcome> {
    let this = std::env::current_exe()?;
    outcome_of(in_namespace(namespace, this).args(["ask-by-datagram", host, &port.to_string()]))
}

/// The other end of [`from_namespace`].
pub(crate) fn ask(host: &str, port: u16) -> Outcome {
    exchange(host, port).unwrap_or_else(|error| Outcome::of_failure(&error))
}

fn exchange(host: &str, port: u16) -> std::io::Result<Outcome> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((host, port))?;
    socket.set_read_timeout(Some(AGAIN))?;
    let began = Instant::now();
    let mut buffer = [0; 512];
    loop {
        socket.send(b"who am I")?;
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let body = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned();
                return Ok(Outcome::Answered { status: 200, body });
            }
            Err(error) if began.elapsed() > PATIENCE => return Err(error),
            Err(error) if Outcome::of_failure(&error) == Outcome::TimedOut => {}
            Err(error) => return Err(error),
        }
    }
}

/// Answers each datagram with the address that it comes from. Does not return.
pub(crate) fn backend(pod: &str, port: u16) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).with_context(|| format!("port {port}"))?;
    let mut buffer = [0; 512];
    loop {
        // What an earlier answer met, such as a client that is gone, is reported here.
        let Ok((_, client)) = socket.recv_from(&mut buffer) else { continue };
        socket.send_to(answer(pod, client).as_bytes(), client).ok();
    }
}

fn answer(pod: &str, client: SocketAddr) -> String {
    format!("pod={pod} client={}", client.ip())
}

/// Starts the backend in a pod.
pub(crate) fn start_backend(namespace: &str, folder: &Path) -> Result<Daemon> {
    let mut command = in_namespace(namespace, std::env::current_exe()?);
    command.args(["datagram-backend", namespace, &PORT.to_string()]);
    Daemon::start(&format!("datagrams-{namespace}"), folder, &mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_pod_and_client() {
        let body = answer("n1-ingress", "192.0.2.1:5000".parse().unwrap());
        let outcome = Outcome::Answered { status: 200, body };
        assert_eq!((outcome.pod(), outcome.client()), (Some("n1-ingress"), Some("192.0.2.1")));
    }
}
