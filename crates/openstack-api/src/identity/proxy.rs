//! Decides which requests go through a proxy: by `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` as Go reads them, for whose programs
//! users' manifests were written. Pure, except for [`ProxyRules::of_process`].
//!
//! | | |
//! | --- | --- |
//! | variables | upper case before lower case; `ALL_PROXY` is not read |
//! | proxy | `http`, `https`, `socks5`, `socks5h`; anything else is an HTTP proxy's address without a scheme |
//! | never | `localhost` and loopback addresses |
//! | `NO_PROXY` | `*`; addresses and names with or without a port; CIDRs; `.example.org` and `*.example.org` are the names below, `example.org` is itself and the names below |

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// The rules in the variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProxyRules {
    http: Option<Url>,
    https: Option<Url>,
    direct: Vec<Direct>,
}

/// An entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    All,
    Network(IpNet),
    Address(IpAddr, Option<u16>),
    /// Names with this suffix, which begins with a dot; with `itself` also the name without the dot.
    Name {
        suffix: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl ProxyRules {
    /// Reads the environment of this process.
    pub(crate) fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    pub(crate) fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |upper: &str, lower: &str| {
            let set = |name: &str| variable(name).filter(|value| !value.is_empty());
            set(upper).or_else(|| set(lower))
        };
        let no_proxy = either("NO_PROXY", "no_proxy").unwrap_or_default();
        Self {
            http: either("HTTP_PROXY", "http_proxy").and_then(|text| proxy(&text)),
            https: either("HTTPS_PROXY", "https_proxy").and_then(|text| proxy(&text)),
            direct: no_proxy.split(',').filter_map(Direct::parse).collect(),
        }
    }

    /// Returns the proxy for a request.
    pub(crate) fn proxy_for(&self, url: &Url) -> Option<&Url> {
        let proxy = match url.scheme() {
            "https" => self.https.as_ref(),
            "http" => self.http.as_ref(),
            _ => None,
        }?;
        let port = url.port_or_known_default();
        let is_direct = match url.host()? {
            Host::Domain("localhost") => true,
            Host::Domain(name) => self.direct.iter().any(|entry| entry.is_for_name(name, port)),
            Host::Ipv4(address) => self.is_direct_address(address.into(), port),
            Host::Ipv6(address) => self.is_direct_address(address.into(), port),
        };
        (!is_direct).then_some(proxy)
    }

    fn is_direct_address(&self, address: IpAddr, port: Option<u16>) -> bool {
        address.is_loopback() || self.direct.iter().any(|entry| entry.is_for_address(address, port))
    }
}

fn proxy(text: &str) -> Option<Url> {
    let has_scheme = |url: &Url| matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    let url = Url::parse(text).ok().filter(has_scheme).or_else(|| Url::parse(&format!("http://{text}")).ok());
    if url.is_none() {
        // The address is not logged: it may contain a password.
        tracing::warn!("the address of a proxy in HTTP_PROXY or HTTPS_PROXY cannot be read and is ignored");
    }
    url
}

impl Direct {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_ascii_lowercase();
        if entry == "*" {
            return Some(Self::All);
        }
        if let Ok(network) = entry.parse() {
            return Some(Self::Network(network));
        }
        let (host, port) = with_port(&entry);
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Some(Self::Address(address, port));
        }
        let name = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let below = name.trim_start_matches('.');
        let itself = !name.starts_with('.');
        (!below.is_empty()).then(|| Self::Name { suffix: format!(".{below}"), itself, port })
    }

    fn is_for_address(&self, address: IpAddr, port: Option<u16>) -> bool {
        match self {
            Self::All => true,
            Self::Network(network) => network.contains(&address),
            Self::Address(other, only) => *other == address && (only.is_none() || *only == port),
            Self::Name { .. } => false,
        }
    }

    fn is_for_name(&self, name: &str, port: Option<u16>) -> bool {
        match self {
            Self::All => true,
            Self::Network(_) | Self::Address(..) => false,
            Self::Name { suffix, itself, port: only } => {
                let name = name.to_ascii_lowercase();
                let matches = name.ends_with(suffix.as_str()) || *itself && suffix[1..] == *name;
                matches && (only.is_none() || *only == port)
            }
        }
    }
}

/// Splits `example.org:8080`, `[2001:db8::1]:8080`. A bare IPv6 address has no port.
fn with_port(entry: &str) -> (&str, Option<u16>) {
    let split = entry.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let split = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    split.map_or((entry, None), |(host, port)| (host, Some(port)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn rules(no_proxy: &str) -> ProxyRules {
        ProxyRules::new(|name| match name {
            "HTTPS_PROXY" => Some("proxy.example.org:3128".to_owned()),
            "http_proxy" => Some("socks5://socks.example.org:1080".to_owned()),
            "ALL_PROXY" => Some("http://all.example.org".to_owned()),
            "NO_PROXY" => Some(no_proxy.to_owned()),
            _ => None,
        })
    }

    #[rstest]
    #[case::nothing("", "https://keystone.lab:5000/v3", true)]
    #[case::everything("*", "https://keystone.lab", false)]
    #[case::localhost("", "https://localhost:5000", false)]
    #[case::loopback("", "https://127.0.0.9:5000", false)]
    #[case::loopback_v6("", "https://[::1]:5000", false)]
    #[case::itself("keystone.lab", "https://keystone.lab", false)]
    #[case::below("lab", "https://keystone.lab", false)]
    #[case::no_part_of_a_label("stone.lab", "https://keystone.lab", true)]
    #[case::only_below(".keystone.lab", "https://keystone.lab", true)]
    #[case::star_dot("*.lab", "https://keystone.lab", false)]
    #[case::capitals("Keystone.LAB", "https://keystone.lab", false)]
    #[case::port("keystone.lab:5000", "https://keystone.lab:5000", false)]
    #[case::another_port("keystone.lab:5000", "https://keystone.lab", true)]
    #[case::known_port("keystone.lab:443", "https://keystone.lab", false)]
    #[case::blanks("other.lab , keystone.lab", "https://keystone.lab", false)]
    #[case::address("10.0.0.1", "https://10.0.0.1", false)]
    #[case::address_with_port("10.0.0.1:443", "https://10.0.0.1", false)]
    #[case::cidr("10.0.0.0/8", "https://10.9.9.9", false)]
    #[case::cidr_is_for_no_name("0.0.0.0/0", "https://keystone.lab", true)]
    #[case::ipv6("2001:db8::1", "https://[2001:db8::1]", false)]
    #[case::ipv6_with_port("[2001:db8::1]:443", "https://[2001:db8::1]", false)]
    #[case::ipv6_cidr("2001:db8::/32", "https://[2001:db8::9]", false)]
    fn no_proxy_is_read_as_in_go(#[case] no_proxy: &str, #[case] url: &str, #[case] through: bool) {
        let proxy = rules(no_proxy).proxy_for(&Url::parse(url).unwrap()).map(Url::to_string);
        assert_eq!(proxy.as_deref(), through.then_some("http://proxy.example.org:3128/"));
    }

    #[test]
    fn each_scheme_has_its_proxy_and_no_variable_is_for_all() {
        let url = Url::parse("http://keystone.lab").unwrap();
        assert_eq!(rules("").proxy_for(&url).unwrap().as_str(), "socks5://socks.example.org:1080");
        let only_all = ProxyRules::new(|name| (name == "ALL_PROXY").then(|| "http://p".to_owned()));
        assert_eq!(only_all.proxy_for(&url), None);
    }
}
