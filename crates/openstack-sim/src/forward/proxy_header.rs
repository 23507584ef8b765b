//! The PROXY protocol's headers, as HAProxy sends them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// What every header of version 2 begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command LOCAL.
const LOCAL: u8 = 0x20;
/// Version 2, command PROXY.
const PROXY: u8 = 0x21;
/// No address family, no transport.
const UNSPECIFIED: u8 = 0x00;
/// TCP over IPv4.
const TCP4: u8 = 0x11;
/// TCP over IPv6.
const TCP6: u8 = 0x21;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// One line of text.
    V1,
    /// Binary.
    V2,
}

impl Version {
    /// The header of a client's connection.
    ///
    /// Where the families differ, the IPv4 address is mapped into IPv6.
    pub(super) fn header(self, source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
        match self {
            Self::V1 => text(source, destination),
            Self::V2 => binary(source, destination),
        }
    }

    /// The header of a health check, from the load balancer's own address to the member.
    ///
    /// HAProxy does not announce its checks in version 1; in version 2 they are LOCAL.
    pub(super) fn check_header(self, source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
        match self {
            Self::V1 => text(source, destination),
            Self::V2 => assemble(LOCAL, UNSPECIFIED, &[]),
        }
    }
}

fn text(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let (from, to) = (source.ip(), destination.ip());
    let (family, from, to): (_, IpAddr, IpAddr) = match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => ("TCP4", from, to),
        (IpAddr::V6(_), IpAddr::V6(_)) | (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
            ("TCP6", as_ipv6(from).into(), as_ipv6(to).into())
        }
    };
    format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port()).into_bytes()
}

fn binary(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut addresses = Vec::with_capacity(36);
    let family = if let (IpAddr::V4(from), IpAddr::V4(to)) = (source.ip(), destination.ip()) {
        addresses.extend(from.octets());
        addresses.extend(to.octets());
        TCP4
    } else {
        addresses.extend(as_ipv6(source.ip()).octets());
        addresses.extend(as_ipv6(destination.ip()).octets());
        TCP6
    };
    addresses.extend(source.port().to_be_bytes());
    addresses.extend(destination.port().to_be_bytes());
    assemble(PROXY, family, &addresses)
}

fn assemble(version_and_command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    // The longest block is that of two IPv6 addresses, 36 bytes.
    let length = u8::try_from(addresses.len()).unwrap_or(u8::MAX);
    header.extend([version_and_command, family, 0, length]);
    header.extend(addresses);
    header
}

fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const V4: [&str; 2] = ["198.18.0.30:34484", "198.18.0.93:80"];
    const V6: [&str; 2] = ["[2001:db8::30]:34484", "[2001:db8::93]:80"];

    fn addresses([source, destination]: [&str; 2]) -> (SocketAddr, SocketAddr) {
        (source.parse().unwrap(), destination.parse().unwrap())
    }

    #[rstest]
    #[case(V4, "PROXY TCP4 198.18.0.30 198.18.0.93 34484 80\r\n")]
    #[case(V6, "PROXY TCP6 2001:db8::30 2001:db8::93 34484 80\r\n")]
    #[case([V4[0], V6[1]], "PROXY TCP6 ::ffff:198.18.0.30 2001:db8::93 34484 80\r\n")]
    #[case([V6[0], V4[1]], "PROXY TCP6 2001:db8::30 ::ffff:198.18.0.93 34484 80\r\n")]
    fn version_1_is_a_line_of_text(#[case] connection: [&str; 2], #[case] expected: &str) {
        let (source, destination) = addresses(connection);
        assert_eq!(Version::V1.header(source, destination), expected.as_bytes());
    }

    #[test]
    fn version_2_over_ipv4_is_what_a_real_amphora_sent() {
        let (source, destination) = addresses(["198.18.0.30:34484", "198.18.0.93:443"]);
        let expected =
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc6\x12\x00\x1e\xc6\x12\x00\x5d\x86\xb4\x01\xbb";
        assert_eq!(Version::V2.header(source, destination), expected);
    }

    #[test]
    fn version_2_over_ipv6_has_36_bytes_of_addresses() {
        let (source, destination) = addresses(V6);
        let header = Version::V2.header(source, destination);
        assert_eq!(header[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!(header.len(), 52);
        let parsed = ppp::v2::Header::try_from(header.as_slice()).unwrap();
        let expected = ppp::v2::IPv6::new(
            "2001:db8::30".parse::<Ipv6Addr>().unwrap(),
            "2001:db8::93".parse::<Ipv6Addr>().unwrap(),
            34484,
            80,
        );
        assert_eq!(parsed.addresses, ppp::v2::Addresses::IPv6(expected));
    }

    #[test]
    fn version_2_maps_an_ipv4_client_of_an_ipv6_address() {
        let (source, destination) = addresses([V4[0], V6[1]]);
        let header = Version::V2.header(source, destination);
        assert_eq!(header[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!(header[16..32], "::ffff:198.18.0.30".parse::<Ipv6Addr>().unwrap().octets());
    }

    #[test]
    fn health_checks_are_announced_in_version_2_only() {
        let (source, destination) = addresses(V4);
        assert_eq!(Version::V2.check_header(source, destination), b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00");
        assert_eq!(Version::V1.check_header(source, destination), Version::V1.header(source, destination));
    }
}
