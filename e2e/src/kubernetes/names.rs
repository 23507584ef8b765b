//! The DNS of a cluster, as far as pods need it: the names of Services lead to their ClusterIPs.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::api::Kubernetes;
use crate::network::API_SERVER;

/// Where it listens.
pub(crate) const SERVER: &str = API_SERVER;
/// `clusterDomain`
pub(crate) const DOMAIN: &str = "cluster.local";
const HEADER: usize = 12;
/// The type of a question for an IPv4 address.
const A: u16 = 1;
/// The code of an answer that there is no such name.
const NAME_ERROR: u8 = 3;

/// The server. It ends with this value.
pub(crate) struct Names {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Names {
    /// Begins to answer.
    ///
    /// # Errors
    /// The port is taken.
    pub(crate) fn serve(api: &Kubernetes) -> Result<Self> {
        let socket = UdpSocket::bind((SERVER, 53)).context("the DNS of the cluster cannot listen")?;
        socket.set_read_timeout(Some(Duration::from_millis(200)))?;
        let (ended, api) = (Arc::new(AtomicBool::new(false)), api.clone());
        let seen = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut packet = [0; 512];
            while !seen.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
                if let Some(answer) = answer(&packet[..length], |name| address(&api, name)) {
                    // Who asks tries again.
                    socket.send_to(&answer, from).ok();
                }
            }
        });
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to report.
            thread.join().ok();
        }
    }
}

/// The ClusterIP of `SERVICE.NAMESPACE.svc.DOMAIN`.
fn address(api: &Kubernetes, name: &str) -> Option<Ipv4Addr> {
    let rest = name.strip_suffix(DOMAIN)?.strip_suffix(".svc.")?;
    let (service, namespace) = rest.split_once('.')?;
    let service = api.get(&format!("/api/v1/namespaces/{namespace}/services/{service}")).ok()?;
    service["spec"]["clusterIP"].as_str()?.parse().ok()
}

/// The answer to a packet with one question; absent where it is no question.
fn answer(question: &[u8], look_up: impl Fn(&str) -> Option<Ipv4Addr>) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(std::str::from_utf8(question.get(at..at + length)?).ok()?.to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*question.get(at)?, *question.get(at + 1)?]);
    let end = at + 4;
    let found = look_up(&labels.join("."));
    let known = found.filter(|_| kind == A);
    let code = if found.is_some() { 0 } else { NAME_ERROR };
    let mut packet = question.get(..2)?.to_vec();
    packet.extend([0x85, 0x80 | code, 0, 1, 0, u8::from(known.is_some()), 0, 0, 0, 0]);
    packet.extend(question.get(HEADER..end)?);
    if let Some(address) = known {
        // The name of the question, an IPv4 address of the Internet, for five seconds.
        packet.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4]);
        packet.extend(address.octets());
    }
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: u8) -> Vec<u8> {
        let mut packet = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            packet.push(u8::try_from(label.len()).unwrap());
            packet.extend(label.as_bytes());
        }
        packet.extend([0, 0, kind, 0, 1]);
        packet
    }

    #[test]
    fn a_name_that_is_known_has_an_address_and_no_other_has() {
        let look_up = |name: &str| (name == "a.b.svc.cluster.local").then(|| Ipv4Addr::new(10, 96, 0, 7));
        let known = answer(&question("A.b.svc.cluster.local", 1), look_up).unwrap();
        assert!(known.ends_with(&[10, 96, 0, 7]) && known[..2] == [7, 9] && known[3] & 15 == 0, "{known:?}");
        let unknown = answer(&question("www.example.org", 1), look_up).unwrap();
        assert_eq!((unknown[3] & 15, unknown[7]), (NAME_ERROR, 0));
        let without_ipv6 = answer(&question("a.b.svc.cluster.local", 28), look_up).unwrap();
        assert_eq!((without_ipv6[3] & 15, without_ipv6[7]), (0, 0));
        assert_eq!(answer(&[1, 2, 3], look_up), None);
    }
}
