//! The destination address and port of packets.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The transport protocol of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

impl Transport {
    /// Returns the name as rules write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// Parses `tcp`, `UDP`.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Tcp, Self::Udp, Self::Sctp].into_iter().find(|one| one.as_str().eq_ignore_ascii_case(text))
    }
}

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub address: IpAddr,
    pub port: u16,
    /// TCP, UDP or SCTP.
    pub transport: Transport,
}

/// The error of an invalid target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write IP:PORT, [IPv6]:PORT or IP:PORT/udp")]
pub struct TargetError;

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (place, transport) = match text.split_once('/') {
            Some((place, transport)) => (place, Transport::parse(transport).ok_or(TargetError)?),
            None => (text, Transport::Tcp),
        };
        let place: SocketAddr = place.parse().map_err(|_| TargetError)?;
        Ok(Self { address: place.ip(), port: place.port(), transport })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", SocketAddr::new(self.address, self.port))?;
        match self.transport {
            Transport::Tcp => Ok(()),
            other => write!(f, "/{}", other.as_str()),
        }
    }
}
