//! The program is killed at every call to the cloud, before it is sent and after it was processed, and starts over:
//! the end is the same as without, nothing is leaked and nothing is doubled. The commonest actions are in the test of the whole
//! program, which is killed at calls to either side.

use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::service::{Protocol, Service};
use openstack_ccm_provider_openstack::config::ErrorRecovery;
use rstest::rstest;
use serde_json::Value;

use crate::cloud::Cloud;
use crate::cluster::{Cluster, NAME, annotate, port, web};
use crate::line::Stop;

/// For so long after its start the program replaces nothing.
const NO_REPLACEMENT: Duration = Duration::from_secs(300);

/// What is being done when the program is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    RemovePort,
    MovePort,
    SwitchHeadersOn,
    TurnInternal,
    /// The load balancer has broken.
    Replace,
    /// The Service moves in with another one.
    Join,
    DeleteChildByChild,
    /// The Service moves out, the other one stays.
    Leave,
}

impl Action {
    /// The state before.
    async fn prepare(self, cloud: &Cloud) -> (Cluster, Service) {
        let mut config = cloud.config();
        config.load_balancer.cascade_delete = self != Self::DeleteChildByChild;
        config.load_balancer.error_recovery = ErrorRecovery::Replace;
        let mut cluster = Cluster::with_config(cloud, config);
        let mut service = web();
        annotate(&mut service, "enable-health-monitor", "true");
        if self == Self::RemovePort {
            service.ports.push(port(Protocol::Tcp, 443, 30443));
        }
        if matches!(self, Self::Join | Self::Leave) {
            let uid = "99999999-2222-3333-4444-555555555555";
            let mut host = crate::cluster::service("host", uid, vec![port(Protocol::Tcp, 8080, 31080)]);
            cluster.settle(&mut host).await.expect("served");
            annotate(
                &mut service,
                "load-balancer-id",
                &cloud.load_balancer_id("kube_service_c1_default_host"),
            );
        }
        if self != Self::Join {
            cluster.settle(&mut service).await.expect("served");
        }
        if self == Self::Replace {
            tokio::time::sleep(NO_REPLACEMENT).await;
            cloud.break_load_balancer(NAME);
        }
        (cluster, service)
    }

    fn change(self, service: &mut Service) {
        match self {
            Self::Replace | Self::Join | Self::DeleteChildByChild | Self::Leave => {}
            Self::RemovePort => drop(service.ports.remove(0)),
            Self::MovePort => service.ports[0].port = 8080,
            Self::SwitchHeadersOn => annotate(service, "x-forwarded-for", "true"),
            Self::TurnInternal => {
                annotate(service, "service.beta.kubernetes.io/openstack-internal-load-balancer", "true");
            }
        }
    }

    async fn go(self, cluster: &mut Cluster, service: &mut Service) -> Result<(), Failure> {
        match self {
            Self::DeleteChildByChild | Self::Leave => cluster.release(service).await,
            Self::RemovePort
            | Self::MovePort
            | Self::SwitchHeadersOn
            | Self::TurnInternal
            | Self::Replace
            | Self::Join => cluster.settle(service).await.map(drop),
        }
    }
}

/// One run, perhaps killed once. Returns the end state, and whether it was killed.
async fn run(action: Action, stop: Option<Stop>) -> (Value, bool) {
    let cloud = Cloud::new();
    let (mut cluster, mut service) = action.prepare(&cloud).await;
    action.change(&mut service);
    cloud.line.stop_at(stop);
    let killed = tokio::select! {
        biased;
        () = cloud.line.stopped.notified() => true,
        result = action.go(&mut cluster, &mut service) => {
            result.unwrap_or_else(|failure| panic!("{action:?} {stop:?}: {failure}"));
            false
        }
    };
    cloud.line.stop_at(None);
    if killed {
        cluster.restart();
        if action == Action::Replace {
            tokio::time::sleep(NO_REPLACEMENT).await;
        }
        let result = action.go(&mut cluster, &mut service).await;
        result.unwrap_or_else(|failure| panic!("{action:?} after {stop:?}: {failure}"));
    }
    (cloud.snapshot(), killed)
}

#[rstest]
#[case::remove_port(Action::RemovePort)]
#[case::move_port(Action::MovePort)]
#[case::switch_headers_on(Action::SwitchHeadersOn)]
#[case::turn_internal(Action::TurnInternal)]
#[case::replace(Action::Replace)]
#[case::join(Action::Join)]
#[case::delete_child_by_child(Action::DeleteChildByChild)]
#[case::leave(Action::Leave)]
#[tokio::test(start_paused = true)]
async fn killed_anywhere_the_end_is_the_same(#[case] action: Action) {
    let (expected, _) = run(action, None).await;
    let mut kills = 0;
    for stop in [Stop::Before, Stop::After] {
        for number in 0.. {
            let stop = stop(number);
            let (end, killed) = run(action, Some(stop)).await;
            assert_eq!(end, expected, "{action:?} killed at {stop:?}");
            if !killed {
                break;
            }
            kills += 1;
        }
    }
    // One that turns internal only loses its floating IP.
    let least = if action == Action::TurnInternal { 6 } else { 10 };
    assert!(kills >= least, "only {kills} calls were interrupted");
}
