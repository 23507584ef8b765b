//! The calls of the steps on floating IPs.

use std::collections::BTreeSet;

use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::neutron::{CreateFloatingIp, FloatingIp, Tagged};

use tracing::warn;

use super::Applier;
use crate::load_balancer::failure::{self, present};
use crate::load_balancer::model::{ObservedFloatingIp, SubnetChoice};
use crate::load_balancer::step::{FloatingIpStep, Step};

impl Applier<'_> {
    pub(super) async fn floating_ip(&mut self, step: &FloatingIpStep) -> Result<(), ApiError> {
        let neutron = &self.openstack.neutron;
        match step {
            FloatingIpStep::Create { network_id, subnet, address, description, tags, port } => {
                let body = CreateFloatingIp {
                    floating_network_id: network_id.clone(),
                    subnet_id: None,
                    floating_ip_address: address.map(|address| address.to_string()),
                    port_id: port.id().map(str::to_owned),
                    description: Some(description.clone()),
                };
                let made = self.create_floating_ip(body, subnet).await?;
                self.applied.changed = true;
                self.applied.address = made.floating_ip_address.parse().ok();
                let tagged = match tags.is_empty() {
                    true => Ok(()),
                    false => neutron.replace_tags(Tagged::FloatingIp, &made.id, tags).await.map(drop),
                };
                if tagged.is_err() {
                    let (id, tags) = (made.id.clone(), tags.clone());
                    self.applied.refused = Some(Step::FloatingIp(FloatingIpStep::Tag { id, tags }));
                }
                self.applied.floating_ips.extend(self.applied.address.map(|address| ObservedFloatingIp {
                    claimed_by: None,
                    id: made.id,
                    address,
                    network_id: made.floating_network_id,
                    port_id: made.port_id,
                    in_use: false,
                    ours: true,
                    tags: if tagged.is_ok() { tags.clone() } else { BTreeSet::new() },
                }));
                tagged?;
            }
            FloatingIpStep::Attach { id, address, port, instead_of } => {
                if let Some(former) = instead_of {
                    present(neutron.update_floating_ip(&former.id, None).await)?;
                }
                let attached = neutron.update_floating_ip(id, port.id()).await.map(drop);
                if let (Err(_), Some(former)) = (&attached, instead_of) {
                    // Where the answer was lost, the port may have the new one, and Neutron refuses this.
                    let restored = neutron.update_floating_ip(&former.id, port.id()).await;
                    if let Err(error) = restored {
                        self.is_unsettled = true;
                        warn!(address = %former.address, error = %failure::chain(&error), "a floating IP was not put back");
                    }
                }
                attached?;
                self.applied.address = Some(*address);
            }
            FloatingIpStep::Detach { id, address: _ } => {
                present(neutron.update_floating_ip(id, None).await)?;
            }
            FloatingIpStep::Tag { id, tags } => {
                neutron.replace_tags(Tagged::FloatingIp, id, tags).await?;
            }
            FloatingIpStep::Delete { id, address: _ } => {
                present(neutron.delete_floating_ip(id).await)?;
            }
        }
        Ok(())
    }

    /// One call, or one for each subnet until one has a free address.
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

/// Whether another subnet may do better: this one is full, or has no addresses of its own to give.
fn concerns_subnet(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict(ConflictCause::Other) | ErrorKind::BadRequest)
        || failure::is_out_of_addresses(error)
}
