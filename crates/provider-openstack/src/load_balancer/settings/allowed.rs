//! The allow-lists of cloud.conf: what the Services of a namespace may refer to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::service::Service;

use super::reader::{SettingsReader, Sourced};
use crate::config::{ANY_NAMESPACE, Config, LoadBalancerNamespace};
use crate::load_balancer::annotations::{
    Annotation, DEFAULT_TLS_CONTAINER_REF, FLOATING_IP, FLOATING_NETWORK_ID, FLOATING_SUBNET,
    FLOATING_SUBNET_ID, FLOATING_SUBNET_TAGS, LOAD_BALANCER_ADDRESS, MEMBER_SUBNET_ID, NETWORK_ID, PORT_ID,
    RECLAIM_POLICY, SNI_CONTAINER_REFS, SUBNET_ID, VIP_ADDRESS,
};

type AllowedIds = Option<BTreeSet<String>>;

/// A Service asks to keep its load balancer, which the operator does not allow.
pub(super) const RETAIN_NOT_ALLOWED: &str = "LoadBalancerRetainNotAllowed";

/// Checks the Service's own references. Returns the foreign load balancers that the Service may use; `None` allows any.
pub(super) fn check(reader: &mut SettingsReader<'_>, config: &Config) -> AllowedIds {
    let policy = policy(reader, config)?;
    let LoadBalancerNamespace { networks, subnets, ports, load_balancers, secrets, addresses, allow_retain } =
        policy;
    for (annotation, list, key) in [
        (&NETWORK_ID, networks, "allowed-networks"),
        (&FLOATING_NETWORK_ID, networks, "allowed-networks"),
        (&SUBNET_ID, subnets, "allowed-subnets"),
        (&MEMBER_SUBNET_ID, subnets, "allowed-subnets"),
        (&FLOATING_SUBNET_ID, subnets, "allowed-subnets"),
        (&PORT_ID, ports, "allowed-ports"),
    ] {
        each(reader, annotation, list, key, BTreeSet::contains);
    }
    for annotation in [&FLOATING_SUBNET, &FLOATING_SUBNET_TAGS] {
        each(reader, annotation, subnets, "allowed-subnets", |_, _| false);
    }
    for annotation in [&DEFAULT_TLS_CONTAINER_REF, &SNI_CONTAINER_REFS] {
        each(reader, annotation, secrets, "allowed-secrets", is_allowed_secret);
    }
    address(reader, addresses);
    if !allow_retain && wants_retain(reader.service) {
        reader.warn(RETAIN_NOT_ALLOWED, retain_not_allowed());
    }
    load_balancers.clone()
}

fn policy<'a>(reader: &SettingsReader<'_>, config: &'a Config) -> Option<&'a LoadBalancerNamespace> {
    policy_of(reader.service, config)
}

/// Returns whether the load balancers of a Service's namespace may outlive their Services.
pub(super) fn allows_retain(service: &Service, config: &Config) -> bool {
    policy_of(service, config).is_none_or(|policy| policy.allow_retain)
}

/// Returns the warning that the load balancer is deleted with its Service despite the annotation.
pub(super) fn retain_not_allowed() -> String {
    format!(
        "annotation {}: retain is not allowed in this namespace, so the load balancer is deleted with the Service: remove the annotation, \
         or ask the operator to set allow-retain in cloud.conf",
        RECLAIM_POLICY.key
    )
}

/// Returns whether the Service asks to keep its load balancer. Case is ignored, since PersistentVolumes spell it `Retain`.
fn wants_retain(service: &Service) -> bool {
    service.annotations.get(RECLAIM_POLICY.key).is_some_and(|text| text.eq_ignore_ascii_case("retain"))
}

fn policy_of<'a>(service: &Service, config: &'a Config) -> Option<&'a LoadBalancerNamespace> {
    let namespace = &*service.key.namespace;
    config.namespaces.get(namespace).or_else(|| config.namespaces.get(ANY_NAMESPACE))
}

/// Returns the Service's former address from its annotation, if its namespace may ask for it.
pub(super) fn annotated_address(reader: &SettingsReader<'_>, config: &Config) -> Option<IpAddr> {
    let address = reader.annotation(&LOAD_BALANCER_ADDRESS)?.text.parse().ok()?;
    let allowed = policy(reader, config).and_then(|policy| policy.addresses.as_ref());
    allowed.is_none_or(|allowed| is_allowed(allowed, address)).then_some(address)
}

fn is_allowed(allowed: &BTreeSet<String>, address: IpAddr) -> bool {
    allowed.iter().any(|cidr| cidr.parse::<IpNet>().is_ok_and(|network| network.contains(&address)))
}

/// Rejects the annotation if its allow-list lacks one of its items.
fn each(
    reader: &mut SettingsReader<'_>,
    annotation: &Annotation,
    list: &AllowedIds,
    key: &str,
    allows: impl Fn(&BTreeSet<String>, &str) -> bool,
) {
    let (Some(value), Some(allowed)) = (reader.annotation(annotation), list) else { return };
    if value.items().any(|item| !allows(allowed, item.text)) {
        refuse(reader, &value, key);
    }
}

fn refuse(reader: &mut SettingsReader<'_>, value: &Sourced<'_>, key: &str) {
    let fix = format!("use an allowed value, or ask the operator to add this value to {key} in cloud.conf");
    reader.reject(value, "is not allowed in this namespace", fix);
}

/// Returns whether the list has the whole reference, or its last part, the id.
fn is_allowed_secret(allowed: &BTreeSet<String>, reference: &str) -> bool {
    let id = reference.rsplit('/').next().unwrap_or(reference);
    allowed.contains(reference) || allowed.contains(id)
}

fn address(reader: &mut SettingsReader<'_>, list: &AllowedIds) {
    let asked = [reader.load_balancer_ip(), reader.annotation(&FLOATING_IP), reader.annotation(&VIP_ADDRESS)];
    let Some(allowed) = list else { return };
    for value in asked.into_iter().flatten() {
        // Invalid addresses are rejected by the code that parses the setting.
        let mut addresses = value.items().filter_map(|item| item.text.parse::<IpAddr>().ok());
        if addresses.any(|address| !is_allowed(allowed, address)) {
            refuse(reader, &value, "allowed-addresses");
        }
    }
}
