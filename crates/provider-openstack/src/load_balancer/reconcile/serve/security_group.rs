//! Manages the security group of a Service before and after its load balancer changes.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Ready;
use tracing::debug;

use super::Serving;
use crate::load_balancer::objects::facts::Facts;
use crate::load_balancer::plan::{Plan, Then};
use crate::load_balancer::report::Report;
use crate::load_balancer::security_group::desired::{self, GroupSources};
use crate::load_balancer::security_group::model::DesiredGroup;

impl Serving<'_> {
    /// Opens new node ports before the load balancer uses them. A failure is not reported here: the load balancer is changed
    /// anyway, and the group is tried again when it serves.
    pub(super) async fn open_node_ports(&self, plan: &Plan, facts: &Facts, report: &mut Report) {
        if !self.settings.manage_security_groups || plan.steps.is_empty() || plan.then != Then::Done {
            return;
        }
        let opened = match self.wanted_group(facts, report).await {
            Ok(Some(wanted)) => self.reconciler.security_groups.open(&self.claim, &wanted).await.map(drop),
            Ok(None) => Ok(()),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = opened {
            debug!(service = %self.service.key, %failure, "node ports are not open yet");
        }
    }

    /// Updates the group of a serving load balancer, or deletes it where groups are no longer managed. A failure is part of the
    /// result: the load balancer is published anyway.
    pub(super) async fn converge_group(&self, facts: &Facts, ready: &mut Ready, report: &mut Report) {
        match self.try_converge_group(facts, report).await {
            Ok(changed) => ready.changed |= changed,
            Err(failure) => {
                // Outdated knowledge of the nodes' ports may be the cause.
                self.reconciler.resolver.forget_node_ports();
                ready.unfinished.get_or_insert(failure);
            }
        }
    }

    async fn try_converge_group(&self, facts: &Facts, report: &mut Report) -> Result<bool, Failure> {
        let groups = &self.reconciler.security_groups;
        if !self.settings.manage_security_groups {
            return groups.release_legacy(&self.claim).await.map(|()| false);
        }
        let Some(wanted) = self.wanted_group(facts, report).await? else {
            return Err(Failure::user_input(
                "the security group cannot be created because the members' subnet is not known: set member-subnet-id in cloud.conf or \
                 loadbalancer.openstack.org/member-subnet-id on the Service",
            ));
        };
        groups.converge(&self.claim, &wanted).await
    }

    /// Returns the wanted group; `None` while the subnet of a new load balancer is not known.
    async fn wanted_group(
        &self,
        facts: &Facts,
        report: &mut Report,
    ) -> Result<Option<DesiredGroup>, Failure> {
        let resolver = &self.reconciler.resolver;
        let Some(member_networks) = resolver.member_networks(facts).await? else { return Ok(None) };
        let mut notices = Vec::new();
        let node_ports =
            resolver.node_ports(self.intent, self.settings, &facts.node_addresses, &mut notices).await;
        let wanted = node_ports.map(|node_ports| {
            let sources = GroupSources {
                service: self.service,
                settings: self.settings,
                names: self.claim.names,
                features: self.features,
                member_networks: &member_networks,
                node_ports: &node_ports,
            };
            desired::desired(sources, &mut notices)
        });
        report.notices(notices);
        wanted.map(Some)
    }
}
