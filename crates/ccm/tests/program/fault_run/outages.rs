//! One of the two servers is away for an hour, or its clock jumps, while users and machines go on: nothing is deleted
//! meanwhile, the log says what is wrong, and afterwards everything ends as in a calm run, without a restart.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use openstack_ccm_kube_sim::Fault as KubernetesFault;
use openstack_ccm_openstack_sim::Fault as CloudFault;
use rstest::rstest;
use serde_json::json;

use super::outcome;
use super::stage::Stage;
use super::story::{Edit, Story};
use super::{LONG_ENOUGH, alone};
use crate::support::log;

const HOUR: Duration = Duration::from_secs(3600);
/// How far a clock jumps.
const DAYS: SignedDuration = SignedDuration::from_hours(48);

/// What is wrong for an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    KubernetesGone,
    KubernetesOverloaded,
    KubernetesTokenExpired,
    KubernetesRightsTaken,
    CloudGone,
    CloudInMaintenance,
    CloudPasswordChanged,
    ClockAhead,
    ClockBehind,
}

impl Trouble {
    fn begin(self, stage: &Stage) {
        let (kube, cloud) = (&stage.world.kube, &stage.world.cloud);
        if let Some(fault) = self.kubernetes() {
            kube.inject(fault);
            // An API server that goes away takes its watches with it.
            kube.break_watches();
        }
        if let Some(fault) = self.cloud() {
            cloud.faults().add(fault);
        }
        match self {
            Self::ClockAhead => kube.set_time(Timestamp::now().checked_add(DAYS).unwrap()),
            Self::ClockBehind => kube.set_time(Timestamp::now().checked_sub(DAYS).unwrap()),
            Self::KubernetesGone
            | Self::KubernetesOverloaded
            | Self::KubernetesTokenExpired
            | Self::KubernetesRightsTaken
            | Self::CloudGone
            | Self::CloudInMaintenance
            | Self::CloudPasswordChanged => {}
        }
    }

    fn kubernetes(self) -> Option<KubernetesFault> {
        let every = KubernetesFault::when(|_| true);
        match self {
            Self::KubernetesGone => Some(every.refuse()),
            Self::KubernetesOverloaded => Some(every.unavailable()),
            Self::KubernetesTokenExpired => Some(every.fail(401, "Unauthorized", "Unauthorized")),
            Self::KubernetesRightsTaken => Some(every.fail(
                403,
                "Forbidden",
                "nodes is forbidden: User \"ccm\" cannot list resource \"nodes\"",
            )),
            Self::CloudGone
            | Self::CloudInMaintenance
            | Self::CloudPasswordChanged
            | Self::ClockAhead
            | Self::ClockBehind => None,
        }
    }

    fn cloud(self) -> Option<CloudFault> {
        match self {
            Self::CloudGone => Some(CloudFault::new().drop_before()),
            Self::CloudInMaintenance => Some(CloudFault::new().answer(503, json!({}))),
            Self::CloudPasswordChanged => Some(CloudFault::new().unauthorized()),
            Self::KubernetesGone
            | Self::KubernetesOverloaded
            | Self::KubernetesTokenExpired
            | Self::KubernetesRightsTaken
            | Self::ClockAhead
            | Self::ClockBehind => None,
        }
    }

    fn end(self, stage: &Stage) {
        stage.world.kube.clear_faults();
        stage.world.cloud.faults().clear();
        if matches!(self, Self::ClockAhead | Self::ClockBehind) {
            stage.world.kube.set_time(Timestamp::now());
        }
    }

    /// Whether the program can do its work all the same.
    fn is_harmless(self) -> bool {
        matches!(self, Self::ClockAhead | Self::ClockBehind)
    }
}

/// What is there before, and changed during the hour.
const BEFORE: [Edit; 2] = [
    Edit::Create { service: 1, proxy: true, settings: Vec::new() },
    Edit::Create { service: 2, proxy: false, settings: Vec::new() },
];
const DURING: [Edit; 7] = [
    Edit::Create { service: 3, proxy: true, settings: Vec::new() },
    Edit::SetProxy { service: 2, on: true },
    Edit::SetPorts { service: 1, ports: 2 },
    Edit::Delete { service: 2 },
    Edit::Join { node: 9 },
    Edit::Vanish { node: 4 },
    Edit::DropRoutes,
];

/// How an hour with, or without, trouble ended.
async fn play(trouble: Option<Trouble>) -> Vec<String> {
    let mut stage = Stage::new().await;
    BEFORE.iter().for_each(|edit| stage.apply(edit));
    tokio::time::sleep(LONG_ENOUGH).await;
    let nodes = stage.world.kube.list("nodes", "").unwrap().len();
    if let Some(trouble) = trouble {
        trouble.begin(&stage);
    }
    stage.world.take_calls();
    DURING.iter().for_each(|edit| stage.apply(edit));
    tokio::time::sleep(HOUR).await;
    if let Some(trouble) = trouble {
        if !trouble.is_harmless() {
            assert_eq!(stage.world.kube.list("nodes", "").unwrap().len(), nodes + 1, "no node was deleted");
            let deletions = stage.world.take_calls();
            let served = deletions.iter().filter(|call| call.name.starts_with("DELETE loadbalancers"));
            // A deletion that is asked of a cloud that does not answer deletes nothing.
            assert!(trouble.kubernetes().is_none() || served.count() == 0, "{deletions:?}");
            assert_eq!(stage.world.cloud.load_balancers().len(), 4, "two of ours and two of others");
        }
        trouble.end(&stage);
    }
    tokio::time::sleep(LONG_ENOUGH).await;
    let end = outcome::describe(&stage.world);
    stage.assert_nothing_taken(&Story::default());
    assert!(stage.world.cloud.leaked_ports().is_empty(), "ports of load balancers are left");
    stage.end().await;
    end
}

#[rstest]
#[case::kubernetes_gone(Trouble::KubernetesGone, &["watch of nodes interrupted", "watch of services interrupted"])]
#[case::kubernetes_overloaded(Trouble::KubernetesOverloaded, &["watch of nodes interrupted", "unable to handle"])]
#[case::kubernetes_token_expired(Trouble::KubernetesTokenExpired, &["watch of nodes interrupted", "Unauthorized"])]
#[case::kubernetes_rights_taken(Trouble::KubernetesRightsTaken, &["watch of nodes interrupted", "is forbidden"])]
#[case::cloud_gone(Trouble::CloudGone, &["routes could not be listed", "nodes that are not ready could not be checked"])]
#[case::cloud_in_maintenance(Trouble::CloudInMaintenance, &["routes could not be listed", "503"])]
#[case::cloud_password_changed(Trouble::CloudPasswordChanged, &["routes could not be listed", "401"])]
#[case::clock_ahead(Trouble::ClockAhead, &[])]
#[case::clock_behind(Trouble::ClockBehind, &[])]
fn an_hour_of_trouble_costs_nothing_and_ends_without_a_restart(
    #[case] trouble: Trouble,
    #[case] logged: &[&str],
) {
    let calm = alone(play(None));
    let (rough, log) = log::logged(|| alone(play(Some(trouble))));
    let difference = outcome::difference(&calm, &rough);
    assert!(difference.is_empty(), "- calm\n+ after {trouble:?}\n{difference}");
    for text in logged {
        assert!(log.contains(text), "{text:?} is not in the log:\n{log}");
    }
}
