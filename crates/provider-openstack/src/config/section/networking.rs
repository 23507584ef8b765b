//! `[Networking]`.

use ipnet::IpNet;

use super::key::{Field, Key, Parsed, defaulting_key, key};

/// Which addresses of servers become addresses of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networking {
    /// Drops IPv6 addresses of nodes.
    pub ipv6_support_disabled: bool,
    /// Networks whose addresses are external.
    pub public_network_name: Vec<String>,
    /// Networks whose addresses are internal; when empty, all others are.
    pub internal_network_name: Vec<String>,
    /// Order of addresses: those in an earlier network come first.
    pub address_sort_order: Vec<IpNet>,
}

impl Networking {
    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[
        defaulting_key(
            "ipv6-support-disabled",
            Field::Bool(|networking| &mut networking.ipv6_support_disabled),
            "false",
            "Drops IPv6 addresses of nodes.",
        ),
        key(
            "public-network-name",
            Field::Names(|networking| &mut networking.public_network_name),
            "Network whose addresses are `ExternalIP`. One name per line; repeat the key for more.",
        ),
        key(
            "internal-network-name",
            Field::Names(|networking| &mut networking.internal_network_name),
            "Network whose addresses are `InternalIP`; if any is given, only these are. One name per line; repeat the key for more.",
        ),
        key(
            "address-sort-order",
            Field::Form { form: "list of CIDRs", set: address_sort_order },
            "Addresses of a node in an earlier CIDR come first. Separated by commas or blanks; what is no CIDR is left out with a warning.",
        ),
    ];
}

fn address_sort_order(networking: &mut Networking, text: &str) -> Parsed {
    let parts = || text.split([',', ' ', '\t', '\n']).filter(|part| !part.is_empty());
    networking.address_sort_order = parts().filter_map(|part| part.parse().ok()).collect();
    let wrong: Vec<_> =
        parts().filter(|part| part.parse::<IpNet>().is_err()).map(|part| format!("`{part}`")).collect();
    Ok((!wrong.is_empty())
        .then(|| format!("leaves out {}, which is no CIDR such as `10.0.0.0/8`", wrong.join(", "))))
}
