//! Carries out the steps of a security group: one change each.
//!
//! The groups of a port are one list that several Services and other clients write, so each change is a read and a write that
//! Neutron refuses if another client was faster (`If-Match`).

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::neutron::{
    CreateSecurityGroup, CreateSecurityGroupRule, Direction, Neutron, Port, Tagged, UpdatePort,
};
use openstack_ccm_openstack_api::optional::OptionalPart;
use tracing::info;

use super::model::Opening;
use super::step::GroupStep;
use crate::limits::MAX_TRIES;
use crate::load_balancer::failure::{self, Missing, present};
use crate::load_balancer::objects::step::Handle;

/// Carries out all steps in order. Returns whether anything was changed.
///
/// # Errors
/// The first call that fails, with its step. A group that is still in use is [`FailureClass::Busy`]: Neutron needs a moment to
/// notice that the last port has lost it.
pub(super) async fn apply(neutron: &Neutron, steps: &[GroupStep]) -> Result<bool, Failure> {
    let mut applier = GroupApplier { neutron, made: None };
    let lacks_tags = || neutron.lacks(OptionalPart::SecurityGroupTags);
    let mut changed = false;
    for step in steps {
        let only_marks = matches!(step, GroupStep::Tag { .. });
        if only_marks && lacks_tags() {
            continue;
        }
        match applier.step(step).await {
            Err(_) if only_marks && lacks_tags() => continue,
            done => done.map_err(|error| explain(step, &error))?,
        }
        changed = true;
        info!(call = %step, "OpenStack write");
    }
    Ok(changed)
}

fn explain(step: &GroupStep, error: &ApiError) -> Failure {
    let mut failure = failure::of_call(error, step, Missing::Race);
    if matches!(step, GroupStep::Delete { .. }) && error.kind() == ErrorKind::Conflict(ConflictCause::Other) {
        failure.class = FailureClass::Busy;
    }
    failure
}

struct GroupApplier<'a> {
    neutron: &'a Neutron,
    /// Id of the group that an earlier step created.
    made: Option<String>,
}

impl GroupApplier<'_> {
    async fn step(&mut self, step: &GroupStep) -> Result<(), ApiError> {
        let neutron = self.neutron;
        match step {
            GroupStep::Create { name, description } => {
                let new = CreateSecurityGroup { name: name.clone(), description: description.clone() };
                self.made = Some(neutron.create_security_group(&new).await?.id);
                Ok(())
            }
            GroupStep::Tag { group, tags } => {
                neutron.replace_tags(Tagged::SecurityGroup, self.id(group), tags).await
            }
            GroupStep::Open { group, opening } => self.open(self.id(group), opening).await,
            GroupStep::DeleteRule { id, .. } => {
                present(neutron.delete_security_group_rule(id).await).map(drop)
            }
            GroupStep::AddToPort { group, port_id } => {
                let group_id = self.id(group).to_owned();
                let add = |port: &Port| {
                    // A port without port security accepts no groups.
                    let lacks = port.port_security_enabled && !port.security_groups.contains(&group_id);
                    lacks.then(|| port.security_groups.iter().cloned().chain([group_id.clone()]).collect())
                };
                self.change_port(port_id, add).await.map(drop)
            }
            GroupStep::RemoveFromPort { group_id, port_id } => self.remove(group_id, port_id).await,
            GroupStep::Delete { id } => present(neutron.delete_security_group(id).await).map(drop),
        }
    }

    /// Returns the id of an existing group, or of the one that an earlier step created.
    fn id<'a>(&'a self, group: &'a Handle) -> &'a str {
        group.id().or(self.made.as_deref()).unwrap_or_default()
    }

    async fn open(&self, group_id: &str, opening: &Opening) -> Result<(), ApiError> {
        let rule = CreateSecurityGroupRule {
            security_group_id: group_id.to_owned(),
            direction: Direction::Ingress,
            ethertype: opening.ethertype(),
            protocol: Some(opening.protocol_name().to_owned()),
            port_range_min: Some(opening.port),
            port_range_max: Some(opening.port),
            remote_ip_prefix: Some(opening.from.to_string()),
        };
        match self.neutron.create_security_group_rule(&rule).await {
            Err(error) if exists_already(&error) => Ok(()),
            result => result.map(drop),
        }
    }

    async fn remove(&self, group_id: &str, port_id: &str) -> Result<(), ApiError> {
        let take_off = |port: &Port| {
            let carries = port.security_groups.iter().any(|group| group == group_id);
            let others = || port.security_groups.iter().filter(|group| *group != group_id).cloned().collect();
            carries.then(others)
        };
        let port = present(self.change_port(port_id, take_off).await)?;
        if port.is_some_and(|port| port.tags.iter().any(|tag| tag == group_id)) {
            present(self.neutron.delete_tag(Tagged::Port, port_id, group_id).await)?;
        }
        Ok(())
    }

    /// Changes the groups of a port to the result of `change`, if any. Returns the port as it is then.
    async fn change_port(
        &self,
        port_id: &str,
        change: impl Fn(&Port) -> Option<Vec<String>>,
    ) -> Result<Port, ApiError> {
        let mut attempt = 1;
        loop {
            let port = self.neutron.get_port(port_id).await?;
            let Some(security_groups) = change(&port) else { return Ok(port) };
            let changes = UpdatePort { security_groups: Some(security_groups), ..UpdatePort::default() };
            match self.neutron.update_port(port_id, &changes, port.revision_number).await {
                Err(error) if is_stale(&error) && attempt < MAX_TRIES => attempt += 1,
                result => return result,
            }
        }
    }
}

fn is_stale(error: &ApiError) -> bool {
    error.kind() == ErrorKind::Conflict(ConflictCause::Stale)
}

fn exists_already(error: &ApiError) -> bool {
    error.fault().and_then(|fault| fault.name.as_deref()) == Some("SecurityGroupRuleExists")
}
