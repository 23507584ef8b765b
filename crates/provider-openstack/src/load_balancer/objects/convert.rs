//! Converts answers of Octavia and Neutron to the types that plans compare. An invalid value is a failure.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::octavia::{
    CreatedPool, Fields as _, HealthMonitor, HealthMonitorType, HttpCheck, Listener, LoadBalancer,
    Member as OctaviaMember, MonitorAttributes, Pool,
};

use super::member::Member;
use super::observed::{
    MadeWith, ObservedListener, ObservedLoadBalancer, ObservedMember, ObservedMonitor, ObservedPool,
    Ownership,
};

/// Converts a load balancer without its children.
pub(crate) fn load_balancer(
    seen: LoadBalancer,
    ownership: Ownership,
    previous_name: Option<String>,
) -> Result<ObservedLoadBalancer, Failure> {
    let vip_address = seen.vip_address.as_deref().map(|text| address("load balancer", &seen.id, text));
    let additional_vips = seen.additional_vips.into_iter().filter_map(|vip| {
        let text = vip.ip_address?;
        Some(address("load balancer", &seen.id, &text).map(|address| (vip.subnet_id, address)))
    });
    let additional_vips = additional_vips.collect::<Result<_, _>>()?;
    Ok(ObservedLoadBalancer {
        vip_address: vip_address.transpose()?,
        additional_vips,
        id: seen.id,
        name: seen.name,
        description: seen.description,
        status: seen.provisioning_status,
        operating: seen.operating_status,
        vip_port_id: seen.vip_port_id,
        vip_subnet_id: seen.vip_subnet_id,
        made_with: MadeWith {
            provider: seen.provider,
            flavor_id: seen.flavor_id,
            availability_zone: seen.availability_zone,
            vip_network_id: seen.vip_network_id,
        },
        tags: seen.tags,
        ownership,
        previous_name,
        children: None,
    })
}

pub(crate) fn listener(seen: Listener, ours: bool) -> Result<ObservedListener, Failure> {
    let cidrs = seen.allowed_cidrs.iter().map(|cidr| parse("listener", &seen.id, "network", cidr));
    let cidrs: BTreeSet<_> = cidrs.collect::<Result<_, _>>()?;
    let mut attributes = seen.attributes.shown();
    attributes.allowed_cidrs = (!cidrs.is_empty()).then_some(cidrs);
    // Octavia shows "no limit" as -1, or as null if the limit was never set.
    attributes.limits.connection_limit.get_or_insert(-1);
    attributes.tls_container_ref.take_if(|reference| reference.is_empty());
    Ok(ObservedListener {
        id: seen.id,
        name: seen.name,
        ours,
        status: seen.provisioning_status,
        protocol: seen.protocol,
        port: seen.protocol_port,
        default_pool_id: seen.default_pool_id,
        has_policies: !seen.l7policies.is_empty(),
        attributes,
        tags: seen.tags,
    })
}

/// Converts a pool. The caller adds members and monitor if the pool is the Service's own.
pub(crate) fn pool(seen: Pool, ours: bool, used_by: BTreeSet<String>) -> ObservedPool {
    ObservedPool {
        attributes: seen.attributes(),
        id: seen.id,
        name: seen.name,
        ours,
        status: seen.provisioning_status,
        admin_state_up: seen.admin_state_up,
        protocol: seen.protocol,
        tags: seen.tags,
        used_by,
        members: Vec::new(),
        members_from_status: false,
        monitor: None,
    }
}

/// Converts a pool of the Service that was just created, with members and monitor.
pub(crate) fn created_pool(seen: CreatedPool) -> Result<ObservedPool, Failure> {
    let CreatedPool { pool: seen, members, healthmonitor } = seen;
    let used_by = seen.listeners.iter().map(|listener| listener.id.clone()).collect();
    let mut listed = MemberList::default();
    listed.extend(members);
    let members = listed.into_members()?;
    Ok(ObservedPool { members, monitor: healthmonitor.map(monitor), ..pool(seen, true, used_by) })
}

/// The members of a pool, each converted as soon as it is parsed: a thousand members in both types at once would be most of a
/// reconciliation's memory.
#[derive(Debug, Default)]
pub(crate) struct MemberList {
    members: Vec<ObservedMember>,
    failure: Option<Failure>,
}

impl MemberList {
    /// Returns the members.
    ///
    /// # Errors
    /// A member has an invalid value.
    pub(crate) fn into_members(self) -> Result<Vec<ObservedMember>, Failure> {
        self.failure.map_or(Ok(self.members), Err)
    }

    /// Returns the id of a subnet, shared between consecutive members.
    fn subnet(&self, id: &str) -> Arc<str> {
        let before = self.members.last().and_then(|member| member.member.subnet_id.as_ref());
        before.filter(|before| ***before == *id).map_or_else(|| Arc::from(id), Arc::clone)
    }
}

impl Extend<OctaviaMember> for MemberList {
    fn extend<I: IntoIterator<Item = OctaviaMember>>(&mut self, items: I) {
        for mut seen in items {
            let subnet_id = seen.subnet_id.take().map(|id| self.subnet(&id));
            match member(seen, subnet_id) {
                Ok(member) => self.members.push(member),
                Err(failure) => self.failure = Some(failure),
            }
        }
    }
}

fn member(seen: OctaviaMember, subnet_id: Option<Arc<str>>) -> Result<ObservedMember, Failure> {
    let monitor_address = seen.monitor_address.filter(|address| !address.is_empty());
    let member = Member {
        address: address("member", &seen.id, &seen.address)?,
        monitor_address: monitor_address.map(|text| address("member", &seen.id, &text)).transpose()?,
        name: seen.name,
        port: seen.protocol_port,
        subnet_id,
        monitor_port: seen.monitor_port,
        weight: seen.weight,
        backup: seen.backup,
        admin_state_up: seen.admin_state_up,
    };
    Ok(ObservedMember { id: seen.id, status: seen.provisioning_status, member: Arc::new(member) })
}

pub(crate) fn monitor(seen: HealthMonitor) -> ObservedMonitor {
    let asks_http = matches!(seen.kind, HealthMonitorType::Http | HealthMonitorType::Https);
    let http = asks_http.then(|| seen.attributes.http.unwrap_or_else(|| HttpCheck::get("/")));
    ObservedMonitor {
        id: seen.id,
        name: seen.name,
        status: seen.provisioning_status,
        kind: seen.kind,
        attributes: MonitorAttributes { http, ..seen.attributes },
        tags: seen.tags,
    }
}

/// Parses an address that OpenStack shows for an object.
pub(crate) fn address(kind: &str, id: &str, text: &str) -> Result<IpAddr, Failure> {
    parse(kind, id, "address", text)
}

fn parse<T: FromStr>(kind: &str, id: &str, what: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| {
        let message = format!("the {what} {text:?} that OpenStack shows for {kind} {id} is not valid");
        Failure::new(FailureClass::Bug, message)
    })
}
