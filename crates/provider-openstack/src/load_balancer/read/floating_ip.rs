//! Reads the floating IPs that matter to a Service, each once.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{FloatingIp, FloatingIpFilter, Subnet, SubnetFilter};
use openstack_ccm_openstack_api::optional::OptionalPart;

use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::names;
use crate::load_balancer::objects::observed::{ObservedFloatingIp, Ownership};
use crate::load_balancer::objects::{FloatingIpMarks, convert};
use crate::load_balancer::read::lists::Reader;

/// Which floating IPs matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatingIpQuery {
    /// None: the VIP needs none, or its floating IP is left alone.
    Nothing,
    /// Only the one on the VIP, to detach it.
    OnVip,
    /// The one on the VIP; without one, those that could be attached: the one with the address that the user asks for, or the
    /// Service's own.
    ForVip {
        /// `spec.loadBalancerIP`
        asked: Option<IpAddr>,
        /// The address that the Service is published with. OCCM sets no tags by which its floating IPs could be found.
        published: Option<IpAddr>,
    },
    /// Those to give up: the one on the VIP while the VIP exists, afterwards the Service's own.
    ToRelease {
        /// The address that the Service is published with.
        published: Option<IpAddr>,
    },
}

/// The VIP port and its ownership.
#[derive(Debug)]
pub(crate) struct VipOwner {
    pub(crate) port_id: String,
    pub(crate) address: Option<IpAddr>,
    pub(crate) load_balancer_name: String,
    pub(crate) ownership: Ownership,
}

/// Reads the floating IPs that `question` asks for.
pub(crate) async fn read(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    question: &FloatingIpQuery,
    vip: Option<&VipOwner>,
) -> Result<Vec<ObservedFloatingIp>, Failure> {
    let seen = list(reader, claim, question, vip).await;
    let seen = seen.map_err(|error| failure::of_call(&error, "looking for floating IPs", Missing::Race))?;
    let client = &reader.openstack().client;
    let identity = claim.names.identity_tags();
    if seen.iter().any(|one| one.tags.is_superset(&identity)) {
        client.note_shown(OptionalPart::FloatingIpTags);
    }
    let marks = FloatingIpMarks::of(client);
    seen.into_iter().map(|floating_ip| observed(floating_ip, claim, vip, marks)).collect()
}

async fn list(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    question: &FloatingIpQuery,
    vip: Option<&VipOwner>,
) -> Result<Vec<FloatingIp>, Arc<ApiError>> {
    let vip_port_id = vip.map(|vip| vip.port_id.as_str());
    let on_vip = async {
        match vip_port_id {
            Some(port) => reader.floating_ips_on(port).await,
            None => Ok(Vec::new()),
        }
    };
    match question {
        FloatingIpQuery::Nothing => Ok(Vec::new()),
        // There is rarely one, and a list of the project cannot prove that there is none: one of another project may be attached.
        FloatingIpQuery::OnVip => match vip_port_id {
            Some(port) => by_filter(reader, FloatingIpFilter::port(port)).await,
            None => Ok(Vec::new()),
        },
        FloatingIpQuery::ForVip { asked, published } => {
            let mut found = on_vip.await?;
            let has_asked = asked.is_none_or(|asked| found.iter().any(|found| has_address(found, asked)));
            if found.is_empty() || !has_asked {
                let is_bare = found.is_empty();
                found.extend(candidates(reader, claim, *asked, *published).await?);
                if is_bare && asked.is_some() {
                    // One that was detached for the address that is asked for, and has to go back if that address is not available.
                    let others = own(reader, claim).await?;
                    found.extend(
                        others.into_iter().filter(|one| asked.is_none_or(|asked| !has_address(one, asked))),
                    );
                }
                if let Some(vip) = vip.filter(|_| found.is_empty()) {
                    found.extend(at_address(reader, vip).await?);
                }
            }
            Ok(found)
        }
        FloatingIpQuery::ToRelease { published } => match (vip_port_id, published) {
            (Some(_), _) => on_vip.await,
            // A floating IP without marks is recognised by its address alone.
            (None, published) => candidates(reader, claim, None, *published).await,
        },
    }
}

/// Returns a floating IP that leads to the VIP's address although Neutron does not show its port. It leads to the VIP if the
/// project sees only one subnet that contains the address.
async fn at_address(reader: Reader<'_>, vip: &VipOwner) -> Result<Option<FloatingIp>, Arc<ApiError>> {
    let Some(address) = vip.address.filter(IpAddr::is_ipv4) else { return Ok(None) };
    let filter =
        FloatingIpFilter { fixed_ip_address: Some(address.to_string()), ..FloatingIpFilter::default() };
    let leads_there = |one: &FloatingIp| {
        let shown = one.fixed_ip_address.as_ref().and_then(|shown| shown.parse().ok());
        one.port_id.as_ref().is_none_or(String::is_empty) && shown == Some(address)
    };
    let Some(mut found) = by_filter(reader, filter).await?.into_iter().find(leads_there) else {
        return Ok(None);
    };
    let subnets = reader.openstack().neutron.list_subnets(&SubnetFilter::default()).await;
    let subnets = subnets.map_err(Arc::new)?;
    let has_it =
        |subnet: &&Subnet| subnet.cidr.parse::<IpNet>().is_ok_and(|addresses| addresses.contains(&address));
    found.port_id = Some(vip.port_id.clone());
    Ok((subnets.iter().filter(has_it).count() == 1).then_some(found))
}

async fn candidates(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    asked: Option<IpAddr>,
    published: Option<IpAddr>,
) -> Result<Vec<FloatingIp>, Arc<ApiError>> {
    if let Some(asked) = asked {
        return by_filter(reader, FloatingIpFilter::address(asked.to_string())).await;
    }
    let own = own(reader, claim).await?;
    match published.filter(|_| own.is_empty()) {
        None => Ok(own),
        Some(published) => {
            let mut found = by_filter(reader, FloatingIpFilter::address(published.to_string())).await?;
            found.retain(|one| one.description == claim.names.floating_ip_description());
            Ok(found)
        }
    }
}

async fn by_filter(reader: Reader<'_>, filter: FloatingIpFilter) -> Result<Vec<FloatingIp>, Arc<ApiError>> {
    reader.openstack().neutron.list_floating_ips(&filter).await.map_err(Arc::new)
}

/// Returns the Service's own floating IPs, attached or not. A description proves little, so they are found by the uids of cluster
/// and Service.
async fn own(reader: Reader<'_>, claim: &Claim<'_>) -> Result<Vec<FloatingIp>, Arc<ApiError>> {
    let tags = claim.names.identity_tags();
    if !reader.openstack().client.lacks(OptionalPart::FloatingIpTags) {
        return reader.floating_ips_tagged(tags.into_iter().collect()).await;
    }
    // Some may have tags from before.
    let described = names::described_owner(&claim.names.floating_ip_description(), &tags);
    let mut found = reader.floating_ips_described(described.clone()).await?;
    let tagged = reader.floating_ips_tagged(tags.iter().cloned().collect()).await?;
    found.extend(tagged.into_iter().filter(|one| one.description != described));
    Ok(found)
}

fn has_address(floating_ip: &FloatingIp, address: IpAddr) -> bool {
    floating_ip.floating_ip_address.parse() == Ok(address)
}

fn observed(
    mut seen: FloatingIp,
    claim: &Claim<'_>,
    vip: Option<&VipOwner>,
    marks: FloatingIpMarks,
) -> Result<ObservedFloatingIp, Failure> {
    let tags = seen.tags.clone();
    let (text, described) = names::read_owner(&seen.description);
    seen.description = text.to_owned();
    seen.tags.extend(described);
    let inherited = vip.is_some_and(|vip| {
        vip.ownership == Ownership::Sole
            && seen.port_id.as_ref() == Some(&vip.port_id)
            && claim.inherits_floating_ip(&seen, &vip.load_balancer_name)
    });
    let ours = claim.owns_floating_ip(&seen) || inherited;
    let claimed_by = claim.claim_of_another(&seen).filter(|_| !ours);
    Ok(ObservedFloatingIp {
        in_use: seen.is_in_use(),
        fixed_address: seen.fixed_ip_address.as_ref().and_then(|address| address.parse().ok()),
        device: seen.device(),
        user: if ours { None } else { claim.user_of(&seen) },
        address: convert::address("floating IP", &seen.id, &seen.floating_ip_address)?,
        id: seen.id,
        network_id: seen.floating_network_id,
        port_id: seen.port_id.filter(|port| !port.is_empty()),
        ours,
        claimed_by,
        description: seen.description,
        tags: if marks == FloatingIpMarks::Tags { tags } else { seen.tags },
    })
}
