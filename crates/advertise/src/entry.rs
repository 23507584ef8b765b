//! Entries of `status.loadBalancer.ingress` and when two lists of them say the same.

use std::net::IpAddr;

/// `ipMode` of an ingress entry (KEP-1860).
///
/// An open set: a value that this program does not know (a newer API's) is carried, never refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpMode {
    /// Traffic reaches the node with the load balancer's address: a node may short-circuit it.
    Vip,
    /// Traffic reaches the node with the node's address: a node must let it travel through the load balancer.
    Proxy,
    /// A value of a newer API.
    Other(String),
}

impl IpMode {
    /// The value of the API.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Vip => "VIP",
            Self::Proxy => "Proxy",
            Self::Other(value) => value,
        }
    }
}

impl From<&str> for IpMode {
    fn from(value: &str) -> Self {
        match value {
            "VIP" => Self::Vip,
            "Proxy" => Self::Proxy,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// One entry of `status.loadBalancer.ingress`. What is written has an address or a hostname, never both, never none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IngressEntry {
    /// `ip`
    pub ip: Option<String>,
    /// `hostname`
    pub hostname: Option<String>,
    /// `ipMode`
    pub ip_mode: Option<IpMode>,
    /// Whether the entry carries `ports`, which this program never writes.
    pub has_ports: bool,
}

impl IngressEntry {
    /// An entry with an address.
    pub fn address(ip: IpAddr, ip_mode: Option<IpMode>) -> Self {
        Self { ip: Some(ip.to_string()), ip_mode, ..Self::default() }
    }

    /// An entry with a hostname; it never carries a mode, which the API server would refuse.
    pub fn hostname(hostname: impl Into<String>) -> Self {
        Self { hostname: Some(hostname.into()), ..Self::default() }
    }
}

/// Whether the published list already says what the wanted one says.
///
/// An absent mode beside an address equals `VIP`, because the API server fills it in. Where the server is known to
/// drop the field (`compare_mode` false) modes are not compared, because it would never agree.
pub fn same_entries(published: &[IngressEntry], wanted: &[IngressEntry], compare_mode: bool) -> bool {
    published.len() == wanted.len()
        && published.iter().zip(wanted).all(|(one, other)| same_entry(one, other, compare_mode))
}

fn same_entry(one: &IngressEntry, other: &IngressEntry, compare_mode: bool) -> bool {
    let mode = |entry: &IngressEntry| match (&entry.ip, &entry.ip_mode) {
        (Some(_), None) => Some(IpMode::Vip),
        (_, mode) => mode.clone(),
    };
    let ip =
        |entry: &IngressEntry| entry.ip.as_deref().map(|text| (text.parse::<IpAddr>().ok(), text.to_owned()));
    let same_ip = match (ip(one), ip(other)) {
        (Some((Some(left), _)), Some((Some(right), _))) => left == right,
        (left, right) => left == right,
    };
    same_ip
        && one.hostname == other.hostname
        && one.has_ports == other.has_ports
        && (!compare_mode || mode(one) == mode(other))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn entry(ip: &str, mode: Option<&str>) -> IngressEntry {
        IngressEntry { ip: Some(ip.into()), ip_mode: mode.map(IpMode::from), ..IngressEntry::default() }
    }

    #[rstest]
    #[case::absent_is_vip(entry("192.0.2.1", None), entry("192.0.2.1", Some("VIP")), true, true)]
    #[case::mode_differs(entry("192.0.2.1", Some("VIP")), entry("192.0.2.1", Some("Proxy")), true, false)]
    #[case::dropped_mode_is_not_compared(
        entry("192.0.2.1", None),
        entry("192.0.2.1", Some("Proxy")),
        false,
        true
    )]
    #[case::unknown_mode_is_repaired(
        entry("192.0.2.1", Some("Router")),
        entry("192.0.2.1", None),
        true,
        false
    )]
    #[case::other_address(entry("192.0.2.1", None), entry("192.0.2.2", None), false, false)]
    #[case::other_spelling(entry("2001:db8:0::1", None), entry("2001:db8::1", None), true, true)]
    #[case::hostname_is_not_an_address(
        IngressEntry::hostname("a.example"),
        entry("192.0.2.2", None),
        false,
        false
    )]
    fn comparison_is_normalised(
        #[case] published: IngressEntry,
        #[case] wanted: IngressEntry,
        #[case] compare_mode: bool,
        #[case] same: bool,
    ) {
        assert_eq!(same_entries(&[published], &[wanted], compare_mode), same);
    }

    #[test]
    fn an_empty_list_differs_from_any_entry() {
        assert!(same_entries(&[], &[], true));
        assert!(!same_entries(&[], &[entry("192.0.2.1", None)], true));
    }
}
