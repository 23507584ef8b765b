//! Settings of listeners: PROXY protocol, headers, TLS, limits, and source ranges.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::service::{IpFamily, Protocol};
use openstack_ccm_openstack_api::barbican::Reference;
use openstack_ccm_openstack_api::octavia::ListenerLimits;

use super::node_address::everybody;
use super::origin::Origin;
use super::proxy_protocol::ProxyProtocol;
use super::reader::{SettingsReader, Sourced};
use crate::load_balancer::annotations::{
    Annotation, Aspect, CONNECTION_LIMIT, DEFAULT_TLS_CONTAINER_REF, InsertedHeader, PROXY_PROTOCOL,
    SOURCE_RANGES, TIMEOUT_CLIENT_DATA, TIMEOUT_MEMBER_CONNECT, TIMEOUT_MEMBER_DATA, TIMEOUT_TCP_INSPECT,
};

/// The certificate of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsContainer {
    /// The reference in Octavia's format.
    pub reference: String,
    /// The Barbican object whose existence is checked; absent if `container-store` is not Barbican.
    pub barbican: Option<Reference>,
}

/// The networks that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRanges {
    /// Networks, normalised. Never empty.
    pub networks: BTreeSet<IpNet>,
    /// Whether the user configured the networks; otherwise these are all addresses of the Service's first family.
    pub requested: bool,
}

pub(super) fn headers(
    reader: &mut SettingsReader<'_>,
    proxy_protocol: &ProxyProtocol,
) -> BTreeSet<InsertedHeader> {
    let mut tcp = reader.service.ports.iter().filter(|port| port.protocol == Protocol::Tcp).peekable();
    let every_port = tcp.peek().is_some() && tcp.all(|port| proxy_protocol.ports.contains_key(&port.port));
    let no_port_without = proxy_protocol.all.is_some() || every_port;
    let mut wanted = BTreeSet::from(InsertedHeader::ALL);
    wanted.retain(|header| reader.bool(header.annotation(), false));
    for header in wanted.iter().filter(|header| no_port_without && !header.goes_with_proxy()) {
        if let Some(value) = reader.annotation(header.annotation()) {
            let problem = format!("cannot be combined with annotation {}", PROXY_PROTOCOL.key);
            reader.reject_with(&value, &[Aspect::ProxyProtocol], problem, "remove one of the two");
        }
    }
    wanted
}

pub(super) fn tls(reader: &mut SettingsReader<'_>) -> Option<TlsContainer> {
    let configured = reader.config.default_tls_container_ref.as_deref();
    let value =
        reader.annotation_or_config(&DEFAULT_TLS_CONTAINER_REF, "default-tls-container-ref", configured)?;
    container(reader, &value)
}

pub(super) fn container(reader: &mut SettingsReader<'_>, value: &Sourced<'_>) -> Option<TlsContainer> {
    let reference = reader.text(Some(value.clone()))?;
    if !reader.config.verifies_tls_containers() {
        return Some(TlsContainer { reference, barbican: None });
    }
    let barbican = Reference::parse(&reference);
    if barbican.is_none() {
        reader.reject(
            value,
            "is not the address of a Barbican container or secret",
            "write the reference as Barbican shows it, such as https://barbican.example.org/v1/containers/<id>; for another store set \
             container-store = external in cloud.conf",
        );
    }
    Some(TlsContainer { reference, barbican })
}

/// Reads the numbers; Octavia has the defaults that the rows of the annotations name.
pub(super) fn limits(reader: &mut SettingsReader<'_>) -> ListenerLimits {
    let mut limit = |annotation: &Annotation| {
        reader.integer(annotation).or_else(|| annotation.default_in_code().parse().ok())
    };
    ListenerLimits {
        connection_limit: limit(&CONNECTION_LIMIT),
        timeout_client_data: limit(&TIMEOUT_CLIENT_DATA),
        timeout_member_connect: limit(&TIMEOUT_MEMBER_CONNECT),
        timeout_member_data: limit(&TIMEOUT_MEMBER_DATA),
        timeout_tcp_inspect: limit(&TIMEOUT_TCP_INSPECT),
    }
}

/// Returns the networks that may connect: from the field, else the annotation, else all.
pub(super) fn source_ranges(reader: &mut SettingsReader<'_>) -> SourceRanges {
    let values = requested_ranges(reader);
    if values.is_empty() {
        let family = reader.service.ip_families.first().copied().unwrap_or(IpFamily::V4);
        return SourceRanges { networks: BTreeSet::from([everybody(family)]), requested: false };
    }
    let networks = values.iter().filter_map(|value| network(reader, value)).collect();
    SourceRanges { networks, requested: true }
}

fn requested_ranges<'a>(reader: &SettingsReader<'a>) -> Vec<Sourced<'a>> {
    let field = Origin::Field("spec.loadBalancerSourceRanges");
    let service = reader.service;
    if !service.source_ranges.is_empty() {
        let texts = service.source_ranges.iter().map(|text| text.trim());
        let aspects = SOURCE_RANGES.aspects;
        return texts.map(|text| Sourced { text, origin: field.clone(), aspects }).collect();
    }
    reader.annotation(&SOURCE_RANGES).iter().flat_map(Sourced::items).collect()
}

/// Parses a CIDR, and clears its host bits.
pub(super) fn network(reader: &mut SettingsReader<'_>, value: &Sourced<'_>) -> Option<IpNet> {
    match value.text.parse::<IpNet>() {
        Ok(network) => Some(network.trunc()),
        Err(_) => {
            let fix = "write networks such as 192.0.2.0/24, and a single address as 192.0.2.7/32";
            reader.reject(value, "is not a CIDR", fix);
            None
        }
    }
}
