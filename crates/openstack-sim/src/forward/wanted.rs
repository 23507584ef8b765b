//! What is to be forwarded: plain data.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use ipnet::IpNet;

use super::proxy_header::Version;

/// Everything that listens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The listeners; of two with one id the later counts.
    pub listeners: Vec<Listener>,
}

/// A listener of an ACTIVE load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Octavia's id.
    pub id: String,
    /// Where clients reach it.
    pub addresses: Vec<Address>,
    /// The port on each of these addresses.
    pub port: u16,
    /// How connections are treated.
    pub protocol: ListenerProtocol,
    /// Who may connect; empty for everybody. Octavia drops the packets of others, here they are reset, so that nobody has to
    /// wait for a time-out.
    pub allowed_cidrs: Vec<IpNet>,
    /// Whether `X-Forwarded-For` is in `insert_headers`. It has an effect in [`PoolProtocol::Http`] pools of HTTP listeners
    /// only, as in Octavia.
    pub insert_x_forwarded_for: bool,
    /// The default pool. Without one no connection is served.
    pub pool: Option<Pool>,
}

/// An address of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// What clients connect to: a VIP or a floating IP.
    pub reached_at: IpAddr,
    /// The VIP that the load balancer sees as the destination.
    pub seen_as: IpAddr,
}

impl Address {
    /// A VIP, main or additional.
    #[must_use]
    pub fn vip(vip: IpAddr) -> Self {
        Self { reached_at: vip, seen_as: vip }
    }

    /// A floating IP in front of a VIP.
    #[must_use]
    pub fn floating(floating_ip: IpAddr, vip: IpAddr) -> Self {
        Self { reached_at: floating_ip, seen_as: vip }
    }
}

/// The protocols of listeners that are forwarded. UDP, SCTP and TERMINATED_HTTPS are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerProtocol {
    /// Bytes both ways; HTTPS listeners, which do not terminate TLS, are the same.
    Tcp,
    /// One request and its response on each connection.
    Http,
}

/// The default pool of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// What members receive.
    pub protocol: PoolProtocol,
    /// The members that are administratively up, in their order.
    pub members: Vec<Member>,
    /// The health monitor.
    pub monitor: Option<Monitor>,
}

/// The protocol of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolProtocol {
    /// What the client sent.
    Tcp,
    /// The client's request, with headers inserted where the listener is HTTP.
    Http,
    /// The PROXY header, version 1, then what the client sent.
    Proxy,
    /// The PROXY header, version 2, then what the client sent.
    ProxyV2,
}

impl PoolProtocol {
    /// The PROXY header that members expect.
    pub(super) fn proxy_version(self) -> Option<Version> {
        match self {
            Self::Tcp | Self::Http => None,
            Self::Proxy => Some(Version::V1),
            Self::ProxyV2 => Some(Version::V2),
        }
    }
}

/// A member of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Octavia's id.
    pub id: String,
    /// Where connections go.
    pub address: IpAddr,
    /// `protocol_port`.
    pub port: u16,
    /// `monitor_address`: where health checks go instead of `address`.
    pub monitor_address: Option<IpAddr>,
    /// `monitor_port`: where health checks go instead of `port`.
    pub monitor_port: Option<u16>,
}

impl Member {
    /// Where connections go.
    pub(super) fn target(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Where health checks go.
    pub(super) fn monitor_target(&self) -> SocketAddr {
        SocketAddr::new(self.monitor_address.unwrap_or(self.address), self.monitor_port.unwrap_or(self.port))
    }

    /// Whether health checks go elsewhere than connections. HAProxy sends them without a PROXY header then.
    pub(super) fn is_monitored_elsewhere(&self) -> bool {
        self.monitor_address.is_some() || self.monitor_port.is_some()
    }
}

/// A health monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    /// What makes a check pass.
    pub kind: MonitorKind,
    /// Time from one check to the next.
    pub delay: Duration,
    /// Time after which a check has failed.
    pub timeout: Duration,
    /// Octavia's `max_retries`: checks in a row that must pass before a member is used again.
    pub rise: u32,
    /// Octavia's `max_retries_down`: checks in a row that must fail before a member is not used any more.
    pub fall: u32,
}

/// What makes a health check pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorKind {
    /// A connection is accepted.
    Tcp,
    /// A GET request is answered with an expected status code.
    Http {
        /// `url_path`.
        path: String,
        /// `expected_codes`.
        codes: ExpectedCodes,
    },
}

/// The status codes that make an HTTP check pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedCodes(Vec<RangeInclusive<u16>>);

impl ExpectedCodes {
    /// Reads Octavia's `expected_codes`: `200`, a list `200,202`, or a range `200-204`; nothing when it is none of these.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
        };
        text.split(',').map(range).collect::<Option<Vec<_>>>().map(Self)
    }

    /// Whether a response with this code passes.
    pub(super) fn contains(&self, code: u16) -> bool {
        self.0.iter().any(|range| range.contains(&code))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("200", &[200], &[199, 201])]
    #[case("200,202", &[200, 202], &[201])]
    #[case("200-204", &[200, 202, 204], &[205])]
    #[case("200-201, 301", &[201, 301], &[300])]
    fn expected_codes_are_codes_lists_and_ranges(
        #[case] text: &str,
        #[case] inside: &[u16],
        #[case] outside: &[u16],
    ) {
        let codes = ExpectedCodes::parse(text).unwrap();
        assert!(inside.iter().all(|code| codes.contains(*code)));
        assert!(!outside.iter().any(|code| codes.contains(*code)));
    }

    #[rstest]
    #[case("")]
    #[case("2xx")]
    #[case("200,")]
    fn other_texts_are_no_expected_codes(#[case] text: &str) {
        assert_eq!(ExpectedCodes::parse(text), None);
    }
}
