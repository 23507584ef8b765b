//! The PROXY protocol header that a load balancer sends before anything else.

use std::net::{IpAddr, SocketAddr};

/// Which header a pool protocol sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// One line of text.
    V1,
    /// Binary.
    V2,
}

impl Version {
    /// The version for a pool protocol; `None` for those that send no header.
    pub(crate) fn of_pool(protocol: &str) -> Option<Self> {
        match protocol {
            "PROXY" => Some(Self::V1),
            "PROXYV2" => Some(Self::V2),
            _ => None,
        }
    }
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The header for a connection from `source` to `destination`. Addresses of different families do not fit into one header: then
/// the header says that the source is unknown.
pub(crate) fn header(version: Version, source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let (from, to) = (source.ip().to_canonical(), destination.ip().to_canonical());
    match version {
        Version::V1 => match (from, to) {
            (IpAddr::V4(_), IpAddr::V4(_)) => line("TCP4", from, to, source.port(), destination.port()),
            (IpAddr::V6(_), IpAddr::V6(_)) => line("TCP6", from, to, source.port(), destination.port()),
            _ => b"PROXY UNKNOWN\r\n".to_vec(),
        },
        Version::V2 => match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                binary(0x21, 0x11, &[&from.octets(), &to.octets()], source.port(), destination.port())
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                binary(0x21, 0x21, &[&from.octets(), &to.octets()], source.port(), destination.port())
            }
            _ => local(),
        },
    }
}

fn line(family: &str, from: IpAddr, to: IpAddr, source_port: u16, destination_port: u16) -> Vec<u8> {
    format!("PROXY {family} {from} {to} {source_port} {destination_port}\r\n").into_bytes()
}

fn binary(command: u8, family: u8, addresses: &[&[u8]], source_port: u16, destination_port: u16) -> Vec<u8> {
    let mut payload = addresses.concat();
    payload.extend(source_port.to_be_bytes());
    payload.extend(destination_port.to_be_bytes());
    let length = u16::try_from(payload.len()).unwrap_or_default();
    [&SIGNATURE[..], &[command, family], &length.to_be_bytes(), &payload].concat()
}

/// Version 2 for a connection of the load balancer itself, such as a health check.
pub(crate) fn local() -> Vec<u8> {
    [&SIGNATURE[..], &[0x20, 0x00, 0x00, 0x00]].concat()
}

#[cfg(test)]
mod tests {
    use ppp::{HeaderResult, v1, v2};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("198.18.0.30:34484", "198.18.0.93:80", "PROXY TCP4 198.18.0.30 198.18.0.93 34484 80\r\n")]
    #[case("[fd00::1]:5", "[fd00::2]:6", "PROXY TCP6 fd00::1 fd00::2 5 6\r\n")]
    #[case("[::ffff:10.0.0.1]:5", "198.18.0.93:80", "PROXY TCP4 10.0.0.1 198.18.0.93 5 80\r\n")]
    #[case("127.0.0.1:5", "[fd00::2]:6", "PROXY UNKNOWN\r\n")]
    fn version_1_is_a_line(#[case] from: &str, #[case] to: &str, #[case] expected: &str) {
        let header = header(Version::V1, from.parse().unwrap(), to.parse().unwrap());
        assert_eq!(String::from_utf8(header).unwrap(), expected);
    }

    #[test]
    fn version_2_is_what_an_independent_parser_reads() {
        let bytes =
            header(Version::V2, "198.18.0.30:34484".parse().unwrap(), "198.18.0.93:443".parse().unwrap());
        assert_eq!(&bytes[12..16], &[0x21, 0x11, 0x00, 0x0c]);
        let HeaderResult::V2(Ok(parsed)) = HeaderResult::parse(&bytes) else { panic!("not version 2") };
        let v2::Addresses::IPv4(addresses) = parsed.addresses else { panic!("not IPv4") };
        assert_eq!(addresses.source_address.to_string(), "198.18.0.30");
        assert_eq!(addresses.destination_port, 443);
    }

    #[test]
    fn version_1_is_what_an_independent_parser_reads() {
        let bytes = header(Version::V1, "[fd00::1]:5".parse().unwrap(), "[fd00::2]:6".parse().unwrap());
        let HeaderResult::V1(Ok(parsed)) = HeaderResult::parse(&bytes) else { panic!("not version 1") };
        assert!(matches!(parsed.addresses, v1::Addresses::Tcp6(_)));
    }

    #[test]
    fn health_checks_are_local_in_version_2() {
        let bytes = local();
        let HeaderResult::V2(Ok(parsed)) = HeaderResult::parse(&bytes) else { panic!("not version 2") };
        assert_eq!(parsed.command, v2::Command::Local);
    }
}
