//! One look: the dials, and in which order.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answers::{GREETING, greeting};
use super::at;
use crate::addresses::Pair;
use crate::look::{Answer, Finding, judge};

/// Dials before an address counts as not answered. One endpoint of many may be on a node that is gone, because Services
/// of the canary keep endpoints that are not ready.
const DIALS: usize = 2;
/// The longest answer that is read.
const LONGEST: u64 = 256;

/// Dials with one token.
pub(super) struct Dialler {
    greeting: String,
    limit: Duration,
}

impl Dialler {
    pub(super) fn new(token: &str, limit: Duration) -> Self {
        Self { greeting: greeting(token), limit }
    }

    /// Looks once. Without a ClusterIP, which may be a matter of DNS, the control's answer proves the way just as well.
    pub(super) async fn look(&self, cluster_ip: Option<IpAddr>, pair: Pair) -> Finding {
        let proof = match cluster_ip {
            Some(ip) => Some(self.dial(at(ip)).await),
            None => None,
        };
        let control = self.dial(at(pair.control)).await;
        let subject = self.dial(at(pair.subject)).await;
        // Silence proves something only where the way was open before and after it.
        if control == Answer::Ours
            && subject == Answer::NotOurs
            && self.dial(at(pair.control)).await != Answer::Ours
        {
            return Finding::Silence;
        }
        judge(proof.unwrap_or(control), control, subject)
    }

    async fn dial(&self, address: SocketAddr) -> Answer {
        for _ in 0..DIALS {
            match self.dial_once(address).await {
                Answer::NotOurs => {}
                answer => return answer,
            }
        }
        Answer::NotOurs
    }

    async fn dial_once(&self, address: SocketAddr) -> Answer {
        let exchange = async {
            let mut text = String::new();
            TcpStream::connect(address).await?.take(LONGEST).read_to_string(&mut text).await?;
            std::io::Result::Ok(text)
        };
        match timeout(self.limit, exchange).await {
            Ok(Ok(text)) if text == self.greeting => Answer::Ours,
            Ok(Ok(text)) if text.starts_with(GREETING) => Answer::OtherCanary,
            Ok(Ok(_) | Err(_)) | Err(_) => Answer::NotOurs,
        }
    }
}
