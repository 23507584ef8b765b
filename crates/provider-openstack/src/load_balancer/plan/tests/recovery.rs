//! Which remedy is chosen for a load balancer in ERROR.

use openstack_ccm_openstack_api::octavia::{OperatingStatus, ProvisioningStatus};
use rstest::rstest;

use super::cloud::Cloud;
use super::shape::Shape;
use crate::config::ErrorRecovery;
use crate::load_balancer::objects::{Desired, Failover, Ownership, Recovery};
use crate::load_balancer::plan::recovery::{Remedy, remedy};

const REPORT: ErrorRecovery = ErrorRecovery::Report;
const FAILOVER: ErrorRecovery = ErrorRecovery::Failover;
const REPLACE: ErrorRecovery = ErrorRecovery::Replace;

/// A load balancer in ERROR, and what is known beside it.
struct Case {
    operating: OperatingStatus,
    children: ProvisioningStatus,
    recovery: Recovery,
    change: fn(&mut Cloud),
}

impl Case {
    fn broken(choice: ErrorRecovery, operating: OperatingStatus) -> Self {
        let recovery = Recovery { choice, was_ready: true, was_published: true, ..Recovery::default() };
        Self { operating, children: ProvisioningStatus::Active, recovery, change: |_| {} }
    }

    fn never_built(choice: ErrorRecovery) -> Self {
        let recovery = Recovery { choice, ..Recovery::default() };
        let (operating, children) = (OperatingStatus::Offline, ProvisioningStatus::PendingCreate);
        Self { operating, children, recovery, change: |_| {} }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn knows(self, change: impl FnOnce(&mut Recovery)) -> Self {
        self.with(|case| change(&mut case.recovery))
    }

    fn remedy(self) -> String {
        let desired = Shape::web().desired();
        let mut cloud = Cloud::serving(&desired);
        let below = cloud.children();
        below.listeners.iter_mut().for_each(|listener| listener.status = self.children.clone());
        for pool in &mut below.pools {
            pool.status = self.children.clone();
            pool.members.iter_mut().for_each(|member| member.status = self.children.clone());
        }
        cloud.load_balancer().status = ProvisioningStatus::Error;
        cloud.load_balancer().operating = self.operating;
        (self.change)(&mut cloud);
        let desired = Desired { recovery: self.recovery, ..desired };
        let broken = cloud.observed.load_balancer.as_ref().unwrap();
        match remedy(&desired, &cloud.observed, broken) {
            Remedy::Replace => "replace".to_owned(),
            Remedy::FailOver => "fail over".to_owned(),
            Remedy::Leave(reason) => format!("leave: {reason}"),
        }
    }
}

#[rstest]
#[case::its_creation_failed(Case::never_built(REPORT), "replace")]
#[case::whatever_the_operator_chose(Case::never_built(FAILOVER), "replace")]
#[case::with_retain_too(Case::never_built(REPORT).knows(|one| one.retained = true), "replace")]
#[case::the_one_before_it_was_published(Case::never_built(REPORT).knows(|one| one.was_published = true), "replace")]
#[case::children_failed_and_nothing_was_published(Case::never_built(REPORT).with(|one| one.children = ProvisioningStatus::Error), "replace")]
#[case::children_failed_below_what_was_published(
    Case::never_built(REPORT).with(|one| one.children = ProvisioningStatus::Error).knows(|one| one.was_published = true),
    "leave: it might still forward traffic"
)]
#[case::the_service_says_it_was_ready(Case::never_built(REPORT).knows(|one| one.was_ready = true), "leave: it might still forward traffic")]
#[case::it_sends_heartbeats(Case::never_built(REPORT).with(|one| one.operating = OperatingStatus::Online), "leave: it might still forward traffic")]
#[case::its_children_were_built(Case::never_built(REPORT).with(|one| one.children = ProvisioningStatus::Active), "leave: it might still forward traffic")]
#[case::of_somebody_else(Case::never_built(REPORT).with(|one| one.change = guest), "leave: it was not created for this Service")]
#[case::switched_off(Case::broken(REPORT, OperatingStatus::Offline), "leave: it might still forward traffic")]
#[case::serves(Case::broken(REPORT, OperatingStatus::Online), "leave: it might still forward traffic")]
#[case::fail_over(Case::broken(FAILOVER, OperatingStatus::Online), "fail over")]
#[case::once(Case::broken(FAILOVER, OperatingStatus::Online).knows(|one| one.failover = Failover::Asked), "leave: a failover did not repair it")]
#[case::refused(
    Case::broken(FAILOVER, OperatingStatus::Error).knows(|one| one.failover = Failover::Refused("no".to_owned())),
    "leave: Octavia refused to fail it over (no)"
)]
#[case::shared_is_failed_over(Case::broken(FAILOVER, OperatingStatus::Online).with(|one| one.change = shared), "fail over")]
#[case::not_that_of_others(Case::broken(FAILOVER, OperatingStatus::Online).with(|one| one.change = guest), "leave: it was not created for this Service")]
#[case::offline(Case::broken(REPLACE, OperatingStatus::Offline), "replace")]
#[case::error(Case::broken(REPLACE, OperatingStatus::Error), "replace")]
#[case::online(
    Case::broken(REPLACE, OperatingStatus::Online),
    "leave: its operating status says that it forwards traffic"
)]
#[case::degraded(
    Case::broken(REPLACE, OperatingStatus::Degraded),
    "leave: its operating status says that it forwards traffic"
)]
#[case::unmonitored(
    Case::broken(REPLACE, OperatingStatus::NoMonitor),
    "leave: its operating status says that it forwards traffic"
)]
#[case::retained(
    Case::broken(REPLACE, OperatingStatus::Error).knows(|one| one.retained = true),
    "leave: its reclaim-policy is retain"
)]
#[case::not_its_turn(Case::broken(REPLACE, OperatingStatus::Error).knows(|one| one.no_replacement = Some("wait".to_owned())), "leave: wait")]
#[case::not_what_is_shared(Case::broken(REPLACE, OperatingStatus::Error).with(|one| one.change = shared), "leave: other Services use it too")]
fn what_may_serve_is_left_unless_the_operator_chose_otherwise(#[case] case: Case, #[case] expected: &str) {
    assert_eq!(case.remedy(), expected);
}

fn guest(cloud: &mut Cloud) {
    cloud.load_balancer().ownership = Ownership::Guest;
}

fn shared(cloud: &mut Cloud) {
    cloud.load_balancer().ownership = Ownership::Shared;
}
