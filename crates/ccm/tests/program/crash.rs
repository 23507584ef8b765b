//! The program is killed beside calls to either side, before they are sent and after they were carried out, and started
//! anew: the end is the same as without, nothing is leaked, nothing is doubled.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, FaultId};
use rstest::rstest;
use serde_json::{Value, json};

use crate::cloud_faults::{REPLACE, breaks_down};
use crate::contract::setup::{INTERNAL, cluster_uid, id, make_for_namesake};
use crate::support::ledger::Ledger;
use crate::support::{Call, PROXY, Side, Stop, World, lb_name, service};

const MONITOR: &str = "loadbalancer.openstack.org/enable-health-monitor";
const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";

/// For so long after its start the program replaces nothing.
const NO_REPLACEMENT: Duration = Duration::from_secs(300);

/// What is going on when the program is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    Create,
    CreateOnOldCluster,
    AddPort,
    RemovePort,
    MovePort,
    SwitchProxyOn,
    SwitchHeadersOn,
    TurnInternal,
    AddNode,
    /// The load balancer has broken down.
    Replace,
    /// The Service moves in with another one.
    Join,
    /// The Service moves out, the other one stays.
    Leave,
    Delete,
    DeleteChildByChild,
    DeleteHeldByAnother,
    TypeChanged,
    CreateWithGroup,
    ChangeGroup,
    DeleteWithGroup,
}

impl Story {
    fn proxy(self) -> Option<&'static str> {
        matches!(self, Self::Create | Self::CreateOnOldCluster | Self::AddNode).then_some("v2")
    }

    fn health_monitor(self) -> Option<&'static str> {
        let with_monitor = [
            Self::RemovePort,
            Self::MovePort,
            Self::SwitchHeadersOn,
            Self::TurnInternal,
            Self::Replace,
            Self::Join,
            Self::Leave,
            Self::DeleteChildByChild,
        ];
        with_monitor.contains(&self).then_some("true")
    }

    /// Beside what all stories have in cloud.conf.
    fn cloud_conf(self) -> &'static str {
        match self {
            Self::CreateWithGroup | Self::ChangeGroup | Self::DeleteWithGroup => {
                "manage-security-groups = true\n"
            }
            Self::DeleteChildByChild => "cascade-delete = false\n",
            Self::Replace => REPLACE,
            Self::Create
            | Self::CreateOnOldCluster
            | Self::AddPort
            | Self::RemovePort
            | Self::MovePort
            | Self::SwitchProxyOn
            | Self::SwitchHeadersOn
            | Self::TurnInternal
            | Self::AddNode
            | Self::Join
            | Self::Leave
            | Self::Delete
            | Self::DeleteHeldByAnother
            | Self::TypeChanged => "",
        }
    }

    /// The Service that the story is about, on the load balancer of the other one where there is one.
    fn service(self, world: &World) -> Value {
        let host = world.cloud.load_balancer(&lb_name("host")).map(|host| id(&host));
        let annotations = json!({
            PROXY: self.proxy(),
            MONITOR: self.health_monitor(),
            LB_ID: host,
            "theirs": "kept",
        });
        let mut service = service("web", json!({"metadata": {"annotations": annotations}}));
        if self == Self::RemovePort {
            service["spec"]["ports"] = json!([
                {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
                {"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443},
            ]);
        }
        if self == Self::DeleteHeldByAnother {
            service["metadata"]["finalizers"] = json!(["example.org/other"]);
        }
        service
    }

    async fn prepare(self, stop: Option<Stop>) -> World {
        let version = if self == Self::CreateOnOldCluster { ApiVersion::V1_28 } else { ApiVersion::V1_36 };
        let mut world = World::new(version);
        world.settings.cloud_conf =
            format!("ingress-hostname-suffix = lb.example.org\n{}", self.cloud_conf());
        if matches!(self, Self::Create | Self::CreateOnOldCluster | Self::CreateWithGroup) {
            // The start of the program belongs to the story.
            world.create(&self.service(&world));
            world.start_until(stop).await;
            return world;
        }
        world.start().await;
        if matches!(self, Self::Join | Self::Leave) {
            let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP", "nodePort": 31080}]);
            world.serve(&service("host", json!({"spec": {"ports": ports}}))).await;
        }
        if self != Self::Join {
            world.serve(&self.service(&world)).await;
        }
        if self == Self::Replace {
            tokio::time::sleep(NO_REPLACEMENT).await;
        }
        world.take_calls();
        if let Some(stop) = stop {
            world.stop_at(stop);
        }
        world
    }

    fn act(self, world: &World) {
        let set_ports = |ports: Value| world.patch("web", &json!({"spec": {"ports": ports}}));
        match self {
            Self::Create | Self::CreateOnOldCluster | Self::CreateWithGroup => {}
            Self::AddPort => set_ports(json!([
                {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
                {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
            ])),
            Self::RemovePort => {
                set_ports(json!([{"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443}]));
            }
            Self::MovePort => {
                set_ports(json!([{"name": "http", "port": 8080, "protocol": "TCP", "nodePort": 30080}]));
            }
            Self::SwitchProxyOn => world.annotate("web", PROXY, Some("v2")),
            Self::SwitchHeadersOn => {
                world.annotate("web", "x-forwarded-for", Some("true"));
            }
            Self::TurnInternal => world.annotate("web", INTERNAL, Some("true")),
            Self::AddNode => world.add_node("node-3", "v1.36.0"),
            Self::Replace => {
                breaks_down(world, "web");
                // A change of the Service has it looked at.
                world.annotate("web", "connection-limit", Some("100"));
            }
            Self::Join => world.create(&self.service(world)),
            Self::ChangeGroup => {
                set_ports(json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30099}]));
                let label = "node.kubernetes.io/exclude-from-external-load-balancers";
                let exclude = json!({"metadata": {"labels": {label: "true"}}});
                world.kube.patch("nodes", "", "node-1", &exclude).unwrap();
            }
            Self::Leave
            | Self::Delete
            | Self::DeleteChildByChild
            | Self::DeleteHeldByAnother
            | Self::DeleteWithGroup => world.delete("web"),
            Self::TypeChanged => world.patch("web", &json!({"spec": {"type": "ClusterIP"}})),
        }
    }
}

/// How a run ended.
struct End {
    state: String,
    killed: bool,
    /// What its programs sent.
    calls: Vec<Call>,
}

/// One run, killed once at most.
async fn run(story: Story, stop: Option<Stop>) -> End {
    let mut world = story.prepare(stop).await;
    story.act(&world);
    let killed = !world.survives().await;
    if killed {
        world.kill().await;
        world.start().await;
        if story == Story::Replace {
            tokio::time::sleep(2 * NO_REPLACEMENT).await;
        }
        world.quiet().await;
    }
    let leaked = format!("leaked ports: {}", world.cloud.leaked_ports().len());
    End { state: format!("{}{leaked}", world.state()), killed, calls: world.take_calls() }
}

/// Defect: 85, better: every order of calls is safe to stop at.
#[rstest]
#[case::create(Story::Create)]
#[case::create_on_old_cluster(Story::CreateOnOldCluster)]
#[case::add_port(Story::AddPort)]
#[case::remove_port(Story::RemovePort)]
#[case::move_port(Story::MovePort)]
#[case::switch_proxy_on(Story::SwitchProxyOn)]
#[case::switch_headers_on(Story::SwitchHeadersOn)]
#[case::turn_internal(Story::TurnInternal)]
#[case::add_node(Story::AddNode)]
#[case::replace(Story::Replace)]
#[case::join(Story::Join)]
#[case::leave(Story::Leave)]
#[case::delete(Story::Delete)]
#[case::delete_child_by_child(Story::DeleteChildByChild)]
#[case::delete_held_by_another(Story::DeleteHeldByAnother)]
#[case::type_changed(Story::TypeChanged)]
#[case::create_with_group(Story::CreateWithGroup)]
#[case::change_group(Story::ChangeGroup)]
#[case::delete_with_group(Story::DeleteWithGroup)]
#[tokio::test(start_paused = true)]
async fn killed_at_any_call_the_end_is_the_same(#[case] story: Story) {
    let _all = Ledger::open();
    let End { state: expected, calls, .. } = run(story, None).await;
    insta::assert_snapshot!(format!("{story:?}"), expected);
    assert!(calls.len() >= 6, "{story:?} makes only {} calls", calls.len());
    for stop in Stop::beside(&calls) {
        let end = run(story, Some(stop)).await.state;
        assert!(
            end == expected,
            "{story:?} killed {stop:?} a call ended differently:\n{end}\nexpected:\n{expected}"
        );
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
        let End { state: end, killed, .. } = run(story, Some(Stop::OnItsWay(number))).await;
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
        world.release("web").await;
        assert!(world.cloud.load_balancers().is_empty() && world.cloud.leaked_ports().is_empty());
        return;
    }
    world.until_served("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(world.warnings("web"), [""; 0]);
}

/// Of two load balancers of one internal Service no floating IP shows which one clients use; its connections do.
#[rstest]
#[case::clients_use_it(5, 2)]
#[case::nobody_uses_it(0, 1)]
#[tokio::test(start_paused = true)]
async fn a_duplicate_that_clients_use_is_kept(#[case] connections: u64, #[case] left: usize) {
    let mut world =
        World::serving(&service("web", json!({"metadata": {"annotations": {INTERNAL: "true"}}}))).await;
    world.settings.plans = false;
    world.stop().await;
    let cluster = cluster_uid(&world);
    let service_uid = world.service("web")["metadata"]["uid"].as_str().unwrap().to_owned();
    let description = "Kubernetes external service default/web from cluster c1";
    let duplicate = make_for_namesake(&world, &cluster, &service_uid, description);
    world.cloud.settle();
    assert!(world.cloud.set_total_connections(&duplicate, connections));
    world.start_to_rest().await;
    assert_eq!(world.cloud.load_balancers().len(), left);
    let warnings = world.warnings("web").concat();
    assert_eq!(warnings.contains("LoadBalancerDuplicateKept"), connections > 0, "{warnings}");
}

/// Makes a second load balancer of an internal Service, which has had so many connections, while the program does not run, and starts
/// that with this answer of the statistics.
async fn with_duplicate(provider: &str, connections: u64, statistics: Fault) -> (World, FaultId) {
    let mut world =
        World::serving(&service("web", json!({"metadata": {"annotations": {INTERNAL: "true"}}}))).await;
    world.settings.plans = false;
    world.stop().await;
    let cluster = cluster_uid(&world);
    let service_uid = world.service("web")["metadata"]["uid"].as_str().unwrap().to_owned();
    let description = "Kubernetes external service default/web from cluster c1";
    if provider != "amphora" {
        world.cloud.set_default_octavia_provider(provider);
    }
    let duplicate = make_for_namesake(&world, &cluster, &service_uid, description);
    world.cloud.settle();
    assert!(world.cloud.set_total_connections(&duplicate, connections));
    let fault = world.cloud.faults().add(statistics.service("load-balancer").path("/stats$"));
    world.start().await;
    (world, fault)
}

/// No answer is no evidence that nobody uses it.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_duplicate_is_kept_while_its_statistics_cannot_be_read(#[values(429, 500, 503, 504)] status: u16) {
    let (world, failing) = with_duplicate("amphora", 1000, Fault::new().answer(status, json!({}))).await;
    world.pass(900).await;
    assert_eq!(world.cloud.load_balancers().len(), 2);
    world.cloud.faults().remove(failing);
    world.until_warned("web", "its statistics show connections").await;
    world.pass(900).await;
    assert_eq!(world.cloud.load_balancers().len(), 2);
}

/// Only the statistics of amphora count connections for sure.
#[rstest]
#[case::refused("amphora", Fault::new().answer(403, json!({})), "Octavia does not show its statistics")]
#[case::unknown("amphora", Fault::new().answer(404, json!({})), "Octavia does not show its statistics")]
#[case::not_implemented("amphora", Fault::new().answer(501, json!({})), "Octavia does not show its statistics")]
#[case::ovn("ovn", Fault::new().latency(Duration::ZERO), "the provider ovn might not count connections")]
#[tokio::test(start_paused = true)]
async fn a_duplicate_is_kept_where_nothing_shows_that_nobody_uses_it(
    #[case] provider: &str,
    #[case] statistics: Fault,
    #[case] why: &str,
) {
    let world = with_duplicate(provider, 0, statistics).await.0;
    world.until_warned("web", why).await;
    world.pass(900).await;
    assert_eq!(world.cloud.load_balancers().len(), 2);
    world.until_warned("web", "openstack loadbalancer delete --cascade").await;
}
