//! Which cluster owns a load balancer without our tags: its members prove more than its name, which two clusters may have in
//! common.

use std::net::IpAddr;

use openstack_ccm_core::advertise::hostname;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::octavia::LoadBalancer;

use super::find::{Found, looking};
use crate::load_balancer::annotations::{Annotation, HOSTNAME, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID};
use crate::load_balancer::failure::present;
use crate::load_balancer::identity::outputs;
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::objects::Ownership;
use crate::load_balancer::objects::convert::MemberList;
use crate::load_balancer::read::lists::Reader;

/// Returns whether a load balancer with this Service's name and description leads to another cluster: it has members, none of which
/// is a node of this cluster, and the Service was never published with its address.
///
/// # Errors
/// Any failed call.
pub(crate) async fn leads_elsewhere(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    service: &Service,
    found: &Found,
) -> Result<bool, Failure> {
    let there = &found.load_balancer;
    let Some(nodes) = claim.scope.others.node_addresses() else { return Ok(false) };
    if found.ownership == Ownership::Guest
        || !claim.needs_evidence(there)
        || is_published(reader, service, there).await?
    {
        return Ok(false);
    }
    let mut has_members = false;
    for pool in reader.pools(there).await.map_err(|error| looking(&error))? {
        let listed = reader.openstack().octavia.list_members(&pool.id, MemberList::default()).await;
        let listed = present(listed).map_err(|error| looking(&error))?;
        let members = listed.map(MemberList::into_members).transpose()?.unwrap_or_default();
        if members.iter().any(|member| nodes.contains(&member.key().address)) {
            return Ok(false);
        }
        has_members |= !members.is_empty();
    }
    Ok(has_members)
}

/// Returns whether the Service was published with the load balancer. Users cannot write a status. A controller's annotations travel
/// with a copy of the Service; with a status of this cluster they say what a hostname of the user's own stands for.
async fn is_published(reader: Reader<'_>, service: &Service, there: &LoadBalancer) -> Result<bool, Failure> {
    if !service.is_published {
        return Ok(false);
    }
    let value = |annotation: &Annotation| service.annotations.get(annotation.key);
    let is_named = value(&LOAD_BALANCER_ID) == Some(&there.id) && !outputs::may_have_moved(service);
    if is_named && value(&HOSTNAME).is_some_and(|own| service.published_hostnames.contains(own)) {
        return Ok(true);
    }
    let annotated = value(&LOAD_BALANCER_ADDRESS).filter(|_| is_named).and_then(|text| text.parse().ok());
    let is_known = |address: IpAddr| annotated == Some(address) || has_published(service, address);
    let is_one = |text: &str| text.parse().is_ok_and(is_known);
    let additional = there.additional_vips.iter().filter_map(|vip| vip.ip_address.as_deref());
    let mut vips = there.vip_address.as_deref().into_iter().chain(additional);
    if vips.any(is_one) {
        return Ok(true);
    }
    let Some(port) = &there.vip_port_id else { return Ok(false) };
    let on_vip = reader.floating_ips_on(port).await.map_err(|error| looking(&error))?;
    Ok(on_vip.iter().any(|one| is_one(&one.floating_ip_address)))
}

/// Returns whether the address was published, or a hostname made of it, such as `203.0.113.1.nip.io`.
fn has_published(service: &Service, address: IpAddr) -> bool {
    let begin = hostname::for_address(address, "");
    service.published.contains(&address)
        || service.published_hostnames.iter().any(|name| name.starts_with(&begin))
}
