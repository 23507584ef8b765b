//! Ids and addresses of objects that would be created. They have the form of real ones, because annotations and addresses are
//! validated, but cannot be mistaken for real ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ID: &str = "00000000-0000-0000-0000-";

pub(super) fn id(number: u32) -> String {
    format!("{ID}{number:012}")
}

/// Returns whether an id stands for an object that would be created.
pub fn is_placeholder(id: &str) -> bool {
    id.starts_with(ID)
}

/// Returns the address with this number: from 240.0.0.0/4, which is reserved and never assigned (RFC 1112), or from 100::/64,
/// which is discarded everywhere (RFC 6666).
pub(super) fn address(number: u32, v6: bool) -> IpAddr {
    let [_, b, c, d] = number.to_be_bytes();
    if v6 {
        let [high, low] = [u16::from_be_bytes([0, b]), u16::from_be_bytes([c, d])];
        Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, high, low).into()
    } else {
        Ipv4Addr::new(240, b, c, d).into()
    }
}

/// Returns whether an address stands for one that would be assigned.
pub fn is_placeholder_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[0] == 240,
        IpAddr::V6(address) => address.segments()[..4] == [0x100, 0, 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_distinguished_from_what_is_real() {
        for number in [1, 300, 70_000] {
            assert!(is_placeholder(&id(number)));
            assert!([false, true].into_iter().all(|v6| is_placeholder_address(address(number, v6))));
        }
        assert_eq!(id(7).len(), 36);
        assert!(!is_placeholder("6f1c0000-0000-0000-0000-000000000001"));
        assert!(
            ["203.0.113.1", "2001:db8::1"].iter().all(|real| !is_placeholder_address(real.parse().unwrap()))
        );
    }
}
