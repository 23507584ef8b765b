//! The Neutron calls for steps on floating IPs.

use std::collections::BTreeSet;

use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::neutron::{CreateFloatingIp, FloatingIp, Tagged};
use openstack_ccm_openstack_api::optional::OptionalPart;
use tracing::warn;

use super::Applier;
use crate::load_balancer::failure::{self, Missing, present};
use crate::load_balancer::names;
use crate::load_balancer::objects::step::{FloatingIpStep, Step};
use crate::load_balancer::objects::{ObservedFloatingIp, SubnetChoice, Tags};

/// The cloud does not allow the deletion of a floating IP.
const NOT_DELETED: &str = "FloatingIPNotDeleted";

impl Applier<'_> {
    pub(super) async fn floating_ip(&mut self, step: &FloatingIpStep) -> Result<(), ApiError> {
        let openstack = self.openstack;
        let neutron = &openstack.neutron;
        match step {
            FloatingIpStep::Create { network_id, subnet, address, description, tags, port, vip } => {
                let body = CreateFloatingIp {
                    floating_network_id: network_id.clone(),
                    subnet_id: None,
                    floating_ip_address: address.map(|address| address.to_string()),
                    port_id: port.id().map(str::to_owned),
                    fixed_ip_address: None,
                    description: Some(match openstack.client.lacks(OptionalPart::FloatingIpTags) {
                        true => names::described_owner(description, tags),
                        false => description.clone(),
                    }),
                };
                let made = match self.create_floating_ip(body.clone(), subnet).await {
                    Err(error) if lacks_fixed_address(&error) && vip.is_some() => {
                        let fixed_ip_address = vip.map(|vip| vip.to_string());
                        self.create_floating_ip(CreateFloatingIp { fixed_ip_address, ..body }, subnet).await?
                    }
                    made => made?,
                };
                self.applied.changed = true;
                self.applied.address = made.floating_ip_address.parse().ok();
                let is_marked = tags.is_empty() || openstack.client.lacks(OptionalPart::FloatingIpTags);
                let tagged = match is_marked {
                    true => Ok(()),
                    false => self.mark(&made.id, tags, description, made.port_id.as_deref()).await,
                };
                if tagged.is_err() {
                    let (id, tags, description) = (made.id.clone(), tags.clone(), description.clone());
                    let port_id = made.port_id.clone();
                    let tag = FloatingIpStep::Tag { id, tags, description, port_id };
                    self.part = Some(Step::FloatingIp(tag));
                }
                self.applied.floating_ips.extend(self.applied.address.map(|address| ObservedFloatingIp {
                    claimed_by: None,
                    user: None,
                    device: None,
                    fixed_address: *vip,
                    id: made.id,
                    address,
                    network_id: made.floating_network_id,
                    port_id: made.port_id,
                    in_use: false,
                    ours: true,
                    description: description.clone(),
                    tags: if tagged.is_ok() { tags.clone() } else { BTreeSet::new() },
                }));
                tagged?;
            }
            FloatingIpStep::Attach { id, address, port, vip, instead_of } => {
                if let Some(former) = instead_of {
                    present(neutron.update_floating_ip(&former.id, None).await)?;
                }
                let attached = match neutron.update_floating_ip(id, port.id()).await {
                    Err(error) if lacks_fixed_address(&error) && vip.is_some() => {
                        let vip = vip.map(|vip| vip.to_string());
                        neutron.attach_floating_ip(id, port.id(), vip.as_deref()).await
                    }
                    attached => attached.map(drop),
                };
                if let (Err(_), Some(former)) = (&attached, instead_of) {
                    // If the answer was lost, the port may have the new floating IP, and Neutron refuses this call.
                    let restored = neutron.update_floating_ip(&former.id, port.id()).await;
                    if let Err(error) = restored {
                        self.is_unsettled = true;
                        warn!(address = %former.address, error = %failure::chain(&error), "the former floating IP could not be attached again");
                    }
                }
                attached?;
                self.applied.address = Some(*address);
            }
            FloatingIpStep::Detach { id, address: _ } => {
                present(neutron.update_floating_ip(id, None).await)?;
            }
            FloatingIpStep::Tag { id, tags, description, port_id } => {
                self.mark(id, tags, description, port_id.as_deref()).await?;
            }
            FloatingIpStep::Delete { id, address } => match present(neutron.delete_floating_ip(id).await) {
                Err(error) if error.kind() == ErrorKind::Policy => {
                    present(neutron.update_floating_ip(id, None).await)?;
                    let failure =
                        failure::of_call(&error, "deleting the Service's floating IP", Missing::Race);
                    let message = format!(
                        "floating IP {address} ({id}) is not deleted and remains in the project: {failure}"
                    );
                    self.applied.notices.push(Notice::warning(NOT_DELETED, message));
                }
                answer => answer.map(drop)?,
            },
        }
        Ok(())
    }

    /// Marks the owner of a floating IP, by tags or else in its description. If the cloud supports neither, it stays unmarked.
    async fn mark(
        &self,
        id: &str,
        tags: &Tags,
        description: &str,
        port_id: Option<&str>,
    ) -> Result<(), ApiError> {
        let (client, neutron) = (&self.openstack.client, &self.openstack.neutron);
        if !client.lacks(OptionalPart::FloatingIpTags) {
            match neutron.replace_tags(Tagged::FloatingIp, id, tags).await {
                Err(_) if client.lacks(OptionalPart::FloatingIpTags) => {}
                answer => return answer,
            }
        }
        if client.lacks(OptionalPart::FloatingIpDescription) {
            return Ok(());
        }
        let described = names::described_owner(description, tags);
        match neutron.describe_floating_ip(id, &described, port_id).await {
            Err(_) if client.lacks(OptionalPart::FloatingIpDescription) => Ok(()),
            answer => answer,
        }
    }

    /// Creates a floating IP: in one call, or in one call per subnet until one has a free address.
    async fn create_floating_ip(
        &self,
        mut body: CreateFloatingIp,
        subnet: &SubnetChoice,
    ) -> Result<FloatingIp, ApiError> {
        let neutron = &self.openstack.neutron;
        let subnets = match subnet {
            SubnetChoice::Any => return neutron.create_floating_ip(&body).await,
            SubnetChoice::Id(id) => std::slice::from_ref(id),
            SubnetChoice::FirstFree(ids) => ids.as_slice(),
        };
        let mut refusal = None;
        for id in subnets {
            body.subnet_id = Some(id.clone());
            match neutron.create_floating_ip(&body).await {
                Err(error) if concerns_subnet(&error) => refusal = Some(error),
                result => return result,
            }
        }
        match refusal {
            Some(refusal) => Err(refusal),
            // No subnet to choose from: Neutron chooses.
            None => neutron.create_floating_ip(&body).await,
        }
    }
}

/// Returns whether Neutron needs the fixed address in the request, because the port shows none.
fn lacks_fixed_address(error: &ApiError) -> bool {
    error.kind() == ErrorKind::BadRequest
        && error.fault().is_some_and(|fault| fault.message.contains("has no fixed IPv4 addresses"))
}

/// Returns whether another subnet may work: this one is full, or has no addresses to give.
fn concerns_subnet(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict(ConflictCause::Other) | ErrorKind::BadRequest)
        || failure::is_out_of_addresses(error)
}
