//! Manages the security group of a Service, which lets the load balancer reach the node ports (`manage-security-groups`).
//!
//! This is separate from the steps of the load balancer, because neither has to wait for the other: a group that cannot be created
//! does not hide a serving load balancer, and is reported and tried again.
//!
//! | step | module | does |
//! | --- | --- | --- |
//! | observe | `observe` | reads the Service's groups and the ports that carry them |
//! | | `duplicates` | decides which of a Service's several groups is used |
//! | desired | `desired` | the rules and the ports |
//! | | `model` | desired and observed state, in the same comparable types |
//! | plan | `plan` | steps that allow traffic, and steps that block it |
//! | | `step` | the steps |
//! | apply | `apply` | makes the calls |

mod apply;
pub(super) mod desired;
mod duplicates;
pub(super) mod model;
mod observe;
mod plan;
mod step;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::neutron::Neutron;
use openstack_ccm_openstack_api::optional::OptionalPart;
use tracing::warn;

use self::duplicates::GroupChoice;
use self::model::DesiredGroup;
use self::observe::LegacyGroups;
use crate::load_balancer::identity::ownership::Claim;

/// The security groups of all Services.
#[derive(Debug)]
pub(super) struct SecurityGroups {
    neutron: Neutron,
    legacy: LegacyGroups,
}

impl SecurityGroups {
    pub(super) fn new(neutron: Neutron) -> Self {
        Self { neutron, legacy: LegacyGroups::default() }
    }

    /// Returns whether the cloud has no security groups.
    fn are_lacking(&self) -> bool {
        self.neutron.lacks(OptionalPart::SecurityGroups)
    }

    /// Allows the traffic that the Service wants. Returns whether anything was changed.
    ///
    /// # Errors
    /// A failed call; several groups that nothing distinguishes.
    pub(super) async fn open(&self, claim: &Claim<'_>, desired: &DesiredGroup) -> Result<bool, Failure> {
        let observed = GroupChoice::of(observe::read(&self.neutron, claim).await?)?.used;
        apply::apply(&self.neutron, &plan::open(desired, observed.as_ref())).await
    }

    /// Makes the group exactly the desired one. Returns whether anything was changed.
    pub(super) async fn converge(&self, claim: &Claim<'_>, desired: &DesiredGroup) -> Result<bool, Failure> {
        let mut observed = match observe::read(&self.neutron, claim).await {
            Err(_) if self.are_lacking() => return Ok(false),
            groups => GroupChoice::of(groups?)?,
        };
        let opened = apply::apply(&self.neutron, &plan::open(desired, observed.used.as_ref())).await?;
        if opened {
            // Neutron may have added its own rules to a new group.
            observed = GroupChoice::of(observe::read(&self.neutron, claim).await?)?;
        }
        let GroupChoice { used: Some(used), duplicates } = observed else { return Ok(opened) };
        let mut steps = plan::close(desired, &used);
        steps.extend(duplicates.iter().flat_map(plan::release));
        let closed = apply::apply(&self.neutron, &steps).await?;
        Ok(opened || closed)
    }

    /// Deletes the Service's groups, whichever ports have them.
    ///
    /// # Errors
    /// A failed call; a group that is still in use. A cloud without security groups is no failure.
    pub(super) async fn release(&self, claim: &Claim<'_>) -> Result<(), Failure> {
        let groups = match observe::read(&self.neutron, claim).await {
            Err(_) if self.are_lacking() => return Ok(()),
            groups => groups?,
        };
        for group in groups {
            apply::apply(&self.neutron, &plan::release(&group)).await?;
        }
        self.legacy.forget(&claim.names.security_group());
        Ok(())
    }

    /// Deletes a group from the time when groups were managed. If there is none, this costs one call in the lifetime of the
    /// process, for all Services together.
    ///
    /// # Errors
    /// As [`Self::release`]. A cloud that cannot list its groups is no failure, since groups are not managed.
    pub(super) async fn release_legacy(&self, claim: &Claim<'_>) -> Result<(), Failure> {
        match self.legacy.may_be_there(&self.neutron, &claim.names.security_group()).await {
            Ok(true) => self.release(claim).await,
            Ok(false) => Ok(()),
            Err(_) if self.are_lacking() => Ok(()),
            Err(error) => {
                warn!(service = %claim.key, %error, "could not look for a security group that was created while manage-security-groups \
                                                     was on");
                Ok(())
            }
        }
    }
}
