//! Addresses of a node: those of the cloud, filtered by the kubelet's `--node-ip`.

use std::net::IpAddr;

/// Annotation in which a kubelet passes on its `--node-ip`.
pub const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Type of an address in `status.addresses`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressType {
    /// `Hostname`
    Hostname,
    /// `InternalIP`
    InternalIp,
    /// `ExternalIP`
    ExternalIp,
    /// `InternalDNS`
    InternalDns,
    /// `ExternalDNS`
    ExternalDns,
}

impl AddressType {
    /// The spelling of the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::InternalIp => "InternalIP",
            Self::ExternalIp => "ExternalIP",
            Self::InternalDns => "InternalDNS",
            Self::ExternalDns => "ExternalDNS",
        }
    }
}

/// One address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InstanceAddress {
    /// Its type.
    pub kind: AddressType,
    /// The address as the cloud spells it.
    pub address: String,
}

impl InstanceAddress {
    /// Creates an address.
    pub fn new(kind: AddressType, address: impl Into<String>) -> Self {
        Self { kind, address: address.into() }
    }

    fn ip(&self) -> Option<IpAddr> {
        self.address.parse().ok()
    }
}

/// Why a value of [`PROVIDED_NODE_IP`] cannot be honoured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvidedIpError {
    /// The value is neither one address nor one of each family.
    #[error(
        "the annotation {PROVIDED_NODE_IP} is {0:?}: give the kubelet one address with --node-ip, or an IPv4 and an IPv6 \
         address with a comma between them"
    )]
    Form(String),
    /// The machine does not have the address.
    #[error(
        "the kubelet asks for node IP {ip} (annotation {PROVIDED_NODE_IP}), which is not an address of the server in the cloud \
         ({addresses}): correct the kubelet's --node-ip"
    )]
    NotOfTheMachine {
        /// The address that the kubelet asks for.
        ip: IpAddr,
        /// The addresses of the machine.
        addresses: String,
    },
}

/// Returns the addresses of a node.
///
/// `cloud` are the machine's addresses, `hostnames` the `Hostname` addresses that the node has from its kubelet, used if
/// the cloud knows none. For each type in which the kubelet asked for addresses (`provided`), only these stay; they come
/// first, in the order of `provided`.
///
/// # Errors
/// The kubelet asks for an address that the machine does not have.
pub fn of_node(
    mut cloud: Vec<InstanceAddress>,
    hostnames: impl IntoIterator<Item = String>,
    provided: Option<&str>,
) -> Result<Vec<InstanceAddress>, ProvidedIpError> {
    if cloud.iter().all(|address| address.kind != AddressType::Hostname) {
        cloud.extend(hostnames.into_iter().map(|name| InstanceAddress::new(AddressType::Hostname, name)));
    }
    match provided {
        Some(provided) => prefer(&cloud, provided),
        None => Ok(cloud),
    }
}

fn prefer(cloud: &[InstanceAddress], provided: &str) -> Result<Vec<InstanceAddress>, ProvidedIpError> {
    let mut chosen: Vec<InstanceAddress> = Vec::new();
    for ip in parse(provided)? {
        let before = chosen.len();
        chosen.extend(cloud.iter().filter(|address| address.ip() == Some(ip)).cloned());
        if chosen.len() == before {
            let addresses =
                cloud.iter().map(|address| address.address.as_str()).collect::<Vec<_>>().join(", ");
            return Err(ProvidedIpError::NotOfTheMachine { ip, addresses });
        }
    }
    let matched: Vec<AddressType> = chosen.iter().map(|address| address.kind).collect();
    chosen.extend(cloud.iter().filter(|address| !matched.contains(&address.kind)).cloned());
    Ok(chosen)
}

/// Parses one address, or two of different families, neither of them unspecified.
fn parse(text: &str) -> Result<Vec<IpAddr>, ProvidedIpError> {
    let error = || ProvidedIpError::Form(text.to_owned());
    let ips: Vec<IpAddr> = text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| error())?;
    match ips.as_slice() {
        [_] => Ok(ips),
        [one, other]
            if one.is_ipv4() != other.is_ipv4() && !one.is_unspecified() && !other.is_unspecified() =>
        {
            Ok(ips)
        }
        _ => Err(error()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(text: &str) -> InstanceAddress {
        let (kind, address) = text.split_once(' ').unwrap();
        let kind = match kind {
            "I" => AddressType::InternalIp,
            "E" => AddressType::ExternalIp,
            "H" => AddressType::Hostname,
            "ID" => AddressType::InternalDns,
            "ED" => AddressType::ExternalDns,
            other => panic!("{other}"),
        };
        InstanceAddress::new(kind, address)
    }

    fn list(text: &str) -> Vec<InstanceAddress> {
        text.split(", ").map(read).collect()
    }

    const V6: &str = "2600:1f14:1d4:d101::ba3d";
    const V6_IN_FULL: &str = "2600:1f14:01d4:d101:0000:0000:0000:ba3d";

    /// The addresses that a kubelet asks for with `--node-ip` win over others of their type and come first.
    ///
    /// Framework: A1, same.
    /// Framework: A2, same.
    /// Framework: A3, same.
    /// Framework: A4, same.
    /// Framework: A5, same.
    /// Framework: A7, same.
    /// Framework: A9, same.
    /// Framework: A10, same.
    /// Framework: A11, same.
    /// Framework: A12, same.
    #[rstest]
    #[case::a1("10.1.1.1", "I 10.1.1.1, H h", "I 10.1.1.1, H h")]
    #[case::a2("55.55.55.55", "I 10.1.1.1, E 55.55.55.55, H h", "E 55.55.55.55, I 10.1.1.1, H h")]
    #[case::a3(
        "55.55.55.55",
        "I 44.44.44.44, E 44.44.44.44, I 55.55.55.55, E 55.55.55.55, H h",
        "I 55.55.55.55, E 55.55.55.55, H h"
    )]
    #[case::a4(
        "10.1.1.1",
        "I 10.1.1.1, I 10.2.2.2, I 10.3.3.3, E 55.55.55.55, H h",
        "I 10.1.1.1, E 55.55.55.55, H h"
    )]
    #[case::a5(
        "10.1.1.1",
        "I 10.1.1.1, E 55.55.55.55, ID i.example.org, ED e.example.org",
        "I 10.1.1.1, E 55.55.55.55, ID i.example.org, ED e.example.org"
    )]
    #[case::a7(
        V6,
        "I 10.1.1.1, I 2600:1f14:01d4:d101:0000:0000:0000:ba3d, H h",
        "I 2600:1f14:01d4:d101:0000:0000:0000:ba3d, H h"
    )]
    #[case::a9("10.1.1.1,fd00::1", "I fd00::1, I 10.1.1.1, H h", "I 10.1.1.1, I fd00::1, H h")]
    #[case::a10(
        "10.1.1.1,fd00::1",
        "I 10.2.2.2, I fd00::2, I 10.1.1.1, I fd00::1, H h",
        "I 10.1.1.1, I fd00::1, H h"
    )]
    #[case::a11_one_family(
        "10.1.1.1,fd00::1",
        "I 10.1.1.1, I fd00::1, E 55.55.55.55, H h",
        "I 10.1.1.1, I fd00::1, E 55.55.55.55, H h"
    )]
    #[case::a11_two_families(
        "10.1.1.1,fd00::1",
        "I 10.1.1.1, E 55.55.55.55, I fd00::1, E fd55::1, H h",
        "I 10.1.1.1, I fd00::1, E 55.55.55.55, E fd55::1, H h"
    )]
    #[case::a12(
        "55.55.55.55,fd00::1",
        "I 10.1.1.1, I fd00::1, E 55.55.55.55, E fd55::1, H h",
        "E 55.55.55.55, I fd00::1, H h"
    )]
    fn framework_a1_to_a12_the_kubelets_choice_of_addresses_is_kept(
        #[case] provided: &str,
        #[case] cloud: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(of_node(list(cloud), [], Some(provided)).unwrap(), list(expected));
        assert_eq!(V6.parse::<IpAddr>(), V6_IN_FULL.parse::<IpAddr>());
    }

    /// A node IP that is invalid or not an address of the machine is an error that says what to correct.
    ///
    /// Framework: A6, same.
    /// Framework: A8, same.
    #[rstest]
    #[case::a6("10.2.2.2", "I 10.1.1.1, H h", "10.2.2.2 (annotation")]
    #[case::a8("10.1.1.1,fd00::1", "I 10.1.1.1, H h", "fd00::1 (annotation")]
    #[case::not_an_address("node-1", "I 10.1.1.1", "is \"node-1\"")]
    #[case::blank("10.1.1.1, fd00::1", "I 10.1.1.1", "is \"10.1.1.1, fd00::1\"")]
    #[case::one_family_twice("10.1.1.1,10.2.2.2", "I 10.1.1.1", "--node-ip")]
    #[case::three("10.1.1.1,fd00::1,10.2.2.2", "I 10.1.1.1", "--node-ip")]
    #[case::unspecified("0.0.0.0,fd00::1", "I 10.1.1.1", "--node-ip")]
    #[case::empty("", "I 10.1.1.1", "--node-ip")]
    fn framework_a6_a8_a_node_ip_of_another_machine_is_refused(
        #[case] provided: &str,
        #[case] cloud: &str,
        #[case] part: &str,
    ) {
        let error = of_node(list(cloud), [], Some(provided)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn the_hostname_of_the_kubelet_is_used_only_when_the_cloud_has_none() {
        let with = of_node(list("I 10.1.1.1, H of-cloud"), ["n1".to_owned()], None).unwrap();
        assert_eq!(with, list("I 10.1.1.1, H of-cloud"));
        let without = of_node(list("I 10.1.1.1"), ["n1".to_owned()], None).unwrap();
        assert_eq!(without, list("I 10.1.1.1, H n1"));
    }
}
