//! The program is killed at every call, to either side, before it is sent and after it was carried out, and started
//! anew: the end is the same as without, nothing is leaked, nothing is doubled.

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::contract::setup::{cluster_uid, make_for_namesake};
use crate::support::ledger::Ledger;
use crate::support::{PROXY, Side, Stop, World, service};

/// What is going on when the program is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    Create,
    CreateOnOldCluster,
    AddPort,
    SwitchProxyOn,
    AddNode,
    Delete,
    DeleteHeldByAnother,
    TypeChanged,
    CreateWithGroup,
    ChangeGroup,
    DeleteWithGroup,
}

impl Story {
    fn proxy(self) -> Option<&'static str> {
        match self {
            Self::Create | Self::CreateOnOldCluster | Self::AddNode => Some("v2"),
            Self::AddPort
            | Self::SwitchProxyOn
            | Self::Delete
            | Self::DeleteHeldByAnother
            | Self::TypeChanged
            | Self::CreateWithGroup
            | Self::ChangeGroup
            | Self::DeleteWithGroup => None,
        }
    }

    fn manages_groups(self) -> bool {
        matches!(self, Self::CreateWithGroup | Self::ChangeGroup | Self::DeleteWithGroup)
    }

    async fn prepare(self, stop: Option<Stop>) -> World {
        let version = if self == Self::CreateOnOldCluster { ApiVersion::V1_28 } else { ApiVersion::V1_36 };
        let mut world = World::new(version);
        world.settings.cloud_conf = "ingress-hostname-suffix = lb.example.org\n".to_owned();
        if self.manages_groups() {
            world.settings.cloud_conf.push_str("manage-security-groups = true\n");
        }
        let mut service =
            service("web", json!({"metadata": {"annotations": {PROXY: self.proxy(), "theirs": "kept"}}}));
        if self == Self::DeleteHeldByAnother {
            service["metadata"]["finalizers"] = json!(["example.org/other"]);
        }
        if matches!(self, Self::Create | Self::CreateOnOldCluster | Self::CreateWithGroup) {
            // The start of the program belongs to the story.
            world.create(&service);
            world.start_until(stop).await;
            return world;
        }
        world.start().await;
        world.serve(&service).await;
        world.take_calls();
        if let Some(stop) = stop {
            world.stop_at(stop);
        }
        world
    }

    fn act(self, world: &World) {
        match self {
            Self::Create | Self::CreateOnOldCluster | Self::CreateWithGroup => {}
            Self::AddPort => {
                let ports = json!([
                    {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
                    {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
                ]);
                world.patch("web", &json!({"spec": {"ports": ports}}));
            }
            Self::SwitchProxyOn => world.annotate("web", PROXY, Some("v2")),
            Self::AddNode => world.add_node("node-3", "v1.36.0"),
            Self::ChangeGroup => {
                let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30099}]);
                world.patch("web", &json!({"spec": {"ports": ports}}));
                let label = "node.kubernetes.io/exclude-from-external-load-balancers";
                let exclude = json!({"metadata": {"labels": {label: "true"}}});
                world.kube.patch("nodes", "", "node-1", &exclude).unwrap();
            }
            Self::Delete | Self::DeleteHeldByAnother | Self::DeleteWithGroup => world.delete("web"),
            Self::TypeChanged => world.patch("web", &json!({"spec": {"type": "ClusterIP"}})),
        }
    }
}

/// One run, killed once at most. Answers how it ended, and whether it was killed.
async fn tell(story: Story, stop: Option<Stop>) -> (String, bool) {
    let mut world = story.prepare(stop).await;
    story.act(&world);
    let killed = !world.survives().await;
    if killed {
        world.kill().await;
        world.start().await;
        world.quiet().await;
    }
    let leaked = format!("leaked ports: {}", world.cloud.leaked_ports().len());
    (format!("{}{leaked}", world.state()), killed)
}

/// Defect: 85, better: every order of calls is safe to stop at.
#[rstest]
#[case::create(Story::Create)]
#[case::create_on_old_cluster(Story::CreateOnOldCluster)]
#[case::add_port(Story::AddPort)]
#[case::switch_proxy_on(Story::SwitchProxyOn)]
#[case::add_node(Story::AddNode)]
#[case::delete(Story::Delete)]
#[case::delete_held_by_another(Story::DeleteHeldByAnother)]
#[case::type_changed(Story::TypeChanged)]
#[case::create_with_group(Story::CreateWithGroup)]
#[case::change_group(Story::ChangeGroup)]
#[case::delete_with_group(Story::DeleteWithGroup)]
#[tokio::test(start_paused = true)]
async fn killed_at_any_call_the_end_is_the_same(#[case] story: Story) {
    let _all = Ledger::open();
    let (expected, _) = tell(story, None).await;
    insta::assert_snapshot!(format!("{story:?}"), expected);
    for stop in [Stop::Before, Stop::After] {
        let mut kills = 0;
        loop {
            let stop = stop(kills);
            let (end, killed) = tell(story, Some(stop)).await;
            assert!(
                end == expected,
                "{story:?} killed {stop:?} a call ended differently:\n{end}\nexpected:\n{expected}"
            );
            if !killed {
                break;
            }
            kills += 1;
        }
        assert!(kills >= 6, "{story:?} makes only {kills} calls");
    }
}

/// A request can outlive the process that sent it: the cloud carries it out after the next process has looked at what
/// is there. What both have made does not stay double.
#[rstest]
#[case::create(Story::Create)]
#[case::add_port(Story::AddPort)]
#[case::switch_proxy_on(Story::SwitchProxyOn)]
#[case::create_with_group(Story::CreateWithGroup)]
#[tokio::test(start_paused = true)]
async fn what_is_made_by_a_request_that_outlives_the_program_is_not_made_twice(#[case] story: Story) {
    let world = story.prepare(None).await;
    story.act(&world);
    world.quiet().await;
    let expected = format!("{}leaked ports: 0", world.state());
    let calls = world.take_calls().into_iter().enumerate();
    let creating = calls.filter(|(_, call)| call.side == Side::OpenStack && call.name.starts_with("POST "));
    for (number, call) in creating {
        let (end, killed) = tell(story, Some(Stop::OnItsWay(number))).await;
        assert!(killed, "{story:?} did not send {} again", call.name);
        assert!(
            end == expected,
            "{story:?} with a late {} ended differently:\n{end}\nexpected:\n{expected}",
            call.name
        );
    }
}

/// Requests can outlive the Service as well: what they made for it goes with the next Service of the name.
#[rstest]
#[case::when_the_next_one_is_served(false)]
#[case::when_the_next_one_goes_at_once(true)]
#[tokio::test(start_paused = true)]
async fn what_late_requests_made_for_a_namesake_is_given_up(#[case] goes: bool) {
    let mut world = World::new(ApiVersion::V1_36);
    let (cluster, service_uid) = (cluster_uid(&world), "11111111-2222-4333-8444-555555555555");
    for _ in 0..2 {
        let description = "Kubernetes external service default/web from cluster c1";
        make_for_namesake(&world, &cluster, service_uid, description);
    }
    world.create(&service("web", json!({})));
    world.start().await;
    if goes {
        world
            .until("held by the finalizer", |world| !world.service("web")["metadata"]["finalizers"].is_null())
            .await;
        world.delete("web");
        world.until_gone("web").await;
        assert!(world.cloud.load_balancers().is_empty() && world.cloud.leaked_ports().is_empty());
        return;
    }
    world.until_published("web").await;
    world.quiet().await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(world.warnings("web"), [""; 0]);
}
