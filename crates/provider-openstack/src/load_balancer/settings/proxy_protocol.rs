//! The annotation `proxy-protocol`: one version for all TCP ports, or a version per port.

use std::collections::BTreeMap;

use openstack_ccm_core::service::Protocol;

use super::reader::{SettingsReader, Sourced};
use crate::load_balancer::annotations::PROXY_PROTOCOL;

/// Version of the PROXY protocol that members receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// The text form.
    V1,
    /// The binary form; needs Octavia 2.22.
    V2,
}

const WORDS: [&str; 4] = ["true", "v1", "v2", "false"];

/// The ports whose members receive the PROXY protocol.
#[derive(Debug, Default)]
pub(super) struct ProxyProtocol {
    /// All TCP ports.
    pub(super) all: Option<ProxyVersion>,
    /// These ports only.
    pub(super) ports: BTreeMap<u16, ProxyVersion>,
}

/// Reads the annotation.
///
/// Values are case-sensitive. OCCM treats every unknown value, such as `True` or `V2`, as "off": enabling the protocol for these
/// would break the members of a working Service.
pub(super) fn proxy_protocol(reader: &mut SettingsReader<'_>) -> ProxyProtocol {
    let Some(value) = reader.annotation(&PROXY_PROTOCOL) else { return ProxyProtocol::default() };
    match value.text {
        "false" => ProxyProtocol::default(),
        "true" | "v1" => ProxyProtocol { all: Some(ProxyVersion::V1), ports: BTreeMap::new() },
        "v2" => ProxyProtocol { all: Some(ProxyVersion::V2), ports: BTreeMap::new() },
        list if list.contains(':') => ProxyProtocol { all: None, ports: ports(reader, &value) },
        _ => {
            reader.reject_word(&value, &WORDS);
            ProxyProtocol::default()
        }
    }
}

fn ports(reader: &mut SettingsReader<'_>, value: &Sourced<'_>) -> BTreeMap<u16, ProxyVersion> {
    let mut ports = BTreeMap::new();
    for item in value.items() {
        match port(reader, item.text) {
            Ok((port, version)) => {
                if ports.insert(port, version).is_some() {
                    reject(reader, value, &format!("lists port {port} twice"));
                }
            }
            Err(problem) => reject(reader, value, &problem),
        }
    }
    ports
}

fn reject(reader: &mut SettingsReader<'_>, value: &Sourced<'_>, problem: &str) {
    reader.reject(
        value,
        problem,
        "write a version and a port for each TCP port that needs the header, such as \"v2:443,v1:80\", or one of \"true\", \"v1\", \
         \"v2\", \"false\" for all",
    );
}

/// Parses one `version:port`.
fn port(reader: &SettingsReader<'_>, item: &str) -> Result<(u16, ProxyVersion), String> {
    let (version, number) =
        item.split_once(':').ok_or_else(|| format!("has {item:?}, which contains no port"))?;
    let version = match version {
        "v1" => ProxyVersion::V1,
        "v2" => ProxyVersion::V2,
        _ => return Err(format!("has the version {version:?}, which is unknown")),
    };
    let number: u16 =
        number.parse().map_err(|_| format!("has the port {number:?}, which is not a port number"))?;
    let of_number = |port: &&openstack_ccm_core::service::ServicePort| port.port == number;
    let mut ports = reader.service.ports.iter().filter(of_number).peekable();
    if ports.peek().is_none() {
        return Err(format!("has the port {number}, which is not in spec.ports"));
    }
    if ports.any(|port| port.protocol == Protocol::Tcp) {
        Ok((number, version))
    } else {
        Err(format!("has the port {number}, which is not a TCP port"))
    }
}
