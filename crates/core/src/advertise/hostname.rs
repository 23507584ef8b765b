//! Validates hostnames for a status, and derives hostnames from addresses.

use std::net::IpAddr;

/// Why a text is not a hostname that the API server accepts in `status.loadBalancer.ingress[].hostname`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostnameError {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// More than 253 characters.
    #[error("it is longer than 253 characters")]
    TooLong,
    /// The text is an IP address.
    #[error("it is an IP address, not a name")]
    Address,
    /// A label breaks the rules of RFC 1123.
    #[error(
        "its part {0:?} is not 1 to 63 lower-case letters, digits or '-' that start and end with a letter or digit"
    )]
    Label(String),
}

/// Checks a hostname by the rules of the API server: a DNS-1123 subdomain that is not an IP address.
///
/// # Errors
/// The first rule that the hostname breaks.
pub fn validate(hostname: &str) -> Result<(), HostnameError> {
    if hostname.is_empty() {
        return Err(HostnameError::Empty);
    }
    if hostname.len() > 253 {
        return Err(HostnameError::TooLong);
    }
    if hostname.parse::<IpAddr>().is_ok() {
        return Err(HostnameError::Address);
    }
    hostname
        .split('.')
        .find(|label| !is_label(label))
        .map_or(Ok(()), |label| Err(HostnameError::Label(label.into())))
}

fn is_label(label: &str) -> bool {
    let alphanumeric =
        |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = label.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| alphanumeric(Some(*byte)) || *byte == b'-')
        && alphanumeric(bytes.first().copied())
        && alphanumeric(bytes.last().copied())
}

/// Returns the hostname of an address under a suffix that resolves such names (as nip.io and sslip.io do):
/// `192.0.2.1.example.org`, and for IPv6 the dashed form `2001-db8--1.example.org`.
pub fn for_address(address: IpAddr, suffix: &str) -> String {
    let suffix = suffix.trim_start_matches('.');
    match address {
        IpAddr::V4(address) => format!("{address}.{suffix}"),
        IpAddr::V6(address) => {
            let dashed = address.to_string().replace([':', '.'], "-");
            // A label must not start or end with a dash; with a `0` there the address stays the same.
            let start = if dashed.starts_with('-') { "0" } else { "" };
            let end = if dashed.ends_with('-') { "0" } else { "" };
            format!("{start}{dashed}{end}.{suffix}")
        }
    }
}

/// Returns the address from which [`for_address`] made this hostname, if any.
pub fn address_in(hostname: &str, suffix: &str) -> Option<IpAddr> {
    let name = hostname.strip_suffix(suffix.trim_start_matches('.'))?.strip_suffix('.')?;
    let address = name.parse().or_else(|_| name.replace('-', ":").parse()).ok()?;
    (for_address(address, suffix) == hostname).then_some(address)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("app.example.org", true)]
    #[case("localhost", true)]
    #[case("", false)]
    #[case("192.0.2.1", false)]
    #[case("2001:db8::1", false)]
    #[case("App.example.org", false)]
    #[case("under_score.example.org", false)]
    #[case("-a.example.org", false)]
    #[case("a..example.org", false)]
    #[case("example.org.", false)]
    #[case("*.example.org", false)]
    fn hostnames_are_checked_before_they_are_written(#[case] hostname: &str, #[case] valid: bool) {
        assert_eq!(validate(hostname).is_ok(), valid, "{:?}", validate(hostname));
    }

    /// Defect: 39, better: the name of an IPv6 address is written with dashes.
    #[rstest]
    #[case("203.0.113.10", "203.0.113.10.nip.io")]
    #[case("2001:db8::5", "2001-db8--5.nip.io")]
    #[case("::1", "0--1.nip.io")]
    #[case("2001:db8::", "2001-db8--0.nip.io")]
    #[case("::", "0--0.nip.io")]
    fn names_of_addresses_are_valid(#[case] address: &str, #[case] expected: &str) {
        let hostname = for_address(address.parse().unwrap(), "nip.io");
        assert_eq!(hostname, expected);
        assert_eq!(validate(&hostname), Ok(()));
        assert_eq!(address_in(&hostname, "nip.io"), address.parse().ok());
    }

    #[rstest]
    #[case("a.nip.io")]
    #[case("192.0.2.1.example.org")]
    #[case("nip.io")]
    #[case("192.0.2.1nip.io")]
    fn a_name_that_was_not_made_of_an_address_has_none(#[case] hostname: &str) {
        assert_eq!(address_in(hostname, "nip.io"), None);
    }

    #[test]
    fn a_leading_dot_of_the_suffix_does_not_double() {
        assert_eq!(for_address("192.0.2.1".parse().unwrap(), ".example.org"), "192.0.2.1.example.org");
    }
}
