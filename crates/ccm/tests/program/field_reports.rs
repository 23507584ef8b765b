//! What users of this and of other controllers reported, each by its number in the list of reports that was tried.

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, Lack};
use rstest::rstest;
use serde_json::json;

use crate::contract::setup::{
    annotated, attach, configured, floating_ip, id, load_balancer, only_floating_ip, put,
};
use crate::refused::{leads, on_port_80};
use crate::support::{World, lb_name, service};

/// OpenSDN lists the extension for tags, and setting them fails.
#[rstest]
#[case::from_the_beginning(false)]
#[case::later(true)]
#[tokio::test(start_paused = true)]
async fn field_42_a_floating_ip_that_takes_no_tags_is_published_and_released(#[case] later: bool) {
    let world = World::started().await;
    let lack = || {
        let tags = Fault::new().service("network").method(Method::PUT).path("/floatingips/[^/]+/tags$");
        world.cloud.faults().add(tags.answer(404, json!({"message": "The resource could not be found."})))
    };
    if !later {
        lack();
    }
    world.create(&on_port_80());
    world.until_published("web").await;
    world.quiet_unplanned().await;
    lack();
    assert_eq!(world.warnings("web").len(), usize::from(!later), "{:#?}", world.warnings("web"));
    world.release("web").await;
    assert!(world.cloud.floating_ips().is_empty() && world.cloud.load_balancers().is_empty());
}

/// A gateway that forwards `/v2*` of Octavia and not its root.
#[tokio::test(start_paused = true)]
async fn field_43_members_follow_nodes_where_octavias_versions_cannot_be_read() {
    let mut world = World::serving(&on_port_80()).await;
    let before = world.ingress("web");
    let description = json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}});
    world.patch_to_rest("web", &description).await;
    world.stop().await;
    world.cloud.lack(Lack::Versions);
    world.start().await;
    world.add_node("node-3", "v1.36.0");
    world.until("the new node is a member", |world| leads(world, &[80], 3)).await;
    world.quiet_unplanned().await;
    assert_eq!(world.ingress("web"), before);
    let [listener] = &world.cloud.listeners()[..] else { panic!("one listener") };
    assert_eq!(listener["allowed_cidrs"], json!(["192.0.2.0/24"]), "who may connect stays as it is");
    let tags = world.cloud.load_balancers()[0]["tags"].to_string();
    assert!(tags.contains("openstack-ccm-service="), "{tags}");
}

/// An application credential with access rules that were written for the calls of OCCM.
#[rstest]
#[case::tags(Method::PUT, "/floatingips/[^/]+/tags$")]
#[case::networks(Method::GET, "/networks/[^/]+$")]
#[case::security_groups(Method::GET, "/security-groups")]
#[case::statuses(Method::GET, "/status$")]
#[tokio::test(start_paused = true)]
async fn field_72_a_call_that_access_rules_do_not_allow_costs_what_needs_it(
    #[case] method: Method,
    #[case] path: &str,
) {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = format!("floating-network-id = {}", world.cloud.seed().public_network_id);
    world.cloud.faults().add(Fault::new().method(method.clone()).path(path).unauthorized());
    world.start().await;
    world.create(&on_port_80());
    world.until_published("web").await;
    world.add_node("node-3", "v1.36.0");
    world.until("the new node is a member", |world| leads(world, &[80], 3)).await;
    world.quiet_unplanned().await;
    let warnings = world.warnings("web");
    assert!(warnings.iter().all(|warning| !warning.contains("expired")), "{warnings:#?}");
    let asks = |warning: &&String| warning.contains(method.as_str()) && warning.contains("access rule");
    assert_eq!(warnings.iter().filter(asks).count(), 1, "{warnings:#?}");
    world.release("web").await;
    assert!(world.cloud.floating_ips().is_empty() && world.cloud.load_balancers().is_empty());
}

const KEEP: &str = "loadbalancer.openstack.org/keep-floatingip";
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// A person attaches a floating IP to the load balancer of an internal Service: nobody asked for it to go.
///
/// Contract: O16, better: OCCM detaches it at the next change of Service or nodes.
#[tokio::test(start_paused = true)]
async fn field_45_a_floating_ip_of_a_person_stays_on_an_internal_service() {
    let mut world = World::serving(&annotated(&[(INTERNAL, "true")])).await;
    let id = floating_ip(&world.cloud, "198.19.0.77", "of a person");
    let port = load_balancer(&world)["vip_port_id"].as_str().unwrap().to_owned();
    attach(&world.cloud, &id, &port);
    let is_on = |world: &World| world.cloud.floating_ips()[0]["port_id"] == json!(port);
    let warned = |world: &World| {
        world.warnings("web").iter().filter(|one| one.contains("FloatingIPOnInternalService")).count()
    };
    world.restart_to_rest().await;
    assert!(is_on(&world), "a restart asks for nothing");
    assert_eq!(warned(&world), 1, "{:#?}", world.warnings("web"));
    assert!(world.metrics().contains("openstack_ccm_internal_services_with_floating_ip 1"));
    world.patch_to_rest("web", &json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}})).await;
    world.pass(7200).await;
    assert!(is_on(&world), "neither does another change, nor the check for drift");
    world.annotate_to_rest("web", KEEP, Some("true")).await;
    assert!(is_on(&world) && world.metrics().contains("openstack_ccm_internal_services_with_floating_ip 0"));
    assert_eq!(world.cloud.floating_ips().len(), 1);
}

/// A Service that becomes internal while the controller watches has asked for it.
#[tokio::test(start_paused = true)]
async fn field_45_a_service_that_becomes_internal_gives_up_the_floating_ip_of_a_person() {
    let mut world = World::started().await;
    // A plan does not know what the controller has seen.
    world.settings.plans = false;
    floating_ip(&world.cloud, "198.19.0.77", "of a person");
    world.serve(&service("web", json!({"spec": {"loadBalancerIP": "198.19.0.77"}}))).await;
    world
        .patch_to_rest(
            "web",
            &json!({"metadata": {"annotations": {INTERNAL: "true"}}, "spec": {"loadBalancerIP": null}}),
        )
        .await;
    let [left] = &world.cloud.floating_ips()[..] else { panic!("one floating IP") };
    assert!(left["port_id"].is_null(), "{left}");
}

/// The report of drift lists what was done in Neutron, too.
#[tokio::test(start_paused = true)]
async fn field_45_drift_of_a_floating_ip_is_reported_with_what_was_done() {
    let world = World::serving(&on_port_80()).await;
    let id = world.cloud.floating_ips()[0]["id"].as_str().unwrap().to_owned();
    world.cloud.user().put(
        "network",
        &format!("/v2.0/floatingips/{id}"),
        &json!({"floatingip": {"port_id": null}}),
    );
    world.until_warned_at_rest("web", "LoadBalancerDriftRepaired").await;
    world.until_warned("web", "attach floating IP").await;
}

/// Users may not delete floating IPs: the Service goes all the same.
///
/// Contract: O17, better: with OCCM the Service stays for ever, and its load balancer too.
#[tokio::test(start_paused = true)]
async fn field_46_a_floating_ip_that_may_not_be_deleted_is_left_with_both_ways_out() {
    let world = World::serving(&on_port_80()).await;
    let body = json!({"NeutronError": {"type": "PolicyNotAuthorized", "detail": "",
        "message": "(rule:delete_floatingip and rule:admin_or_owner) is disallowed by policy"}});
    world
        .cloud
        .faults()
        .add(Fault::new().service("network").method(Method::DELETE).path("/floatingips/").answer(403, body));
    world.release("web").await;
    let warnings = world.warnings("web");
    let [warning] = &warnings[..] else { panic!("{warnings:#?}") };
    for part in ["FloatingIPNotDeleted", "delete_floatingip", "keep-floatingip", "198.19.0.11"] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert!(world.cloud.load_balancers().is_empty());
    let [left] = &world.cloud.floating_ips()[..] else { panic!("one floating IP") };
    assert!(left["port_id"].is_null(), "{left}");
}

/// AVI on Contrail: the port of the VIP shows no address.
#[tokio::test(start_paused = true)]
async fn field_49_a_port_without_addresses_gets_its_floating_ip_by_the_address_of_the_load_balancer() {
    let world = World::started().await;
    let body = json!({"NeutronError": {"type": "BadRequest", "detail": "",
        "message": "Bad floatingip request: Cannot add floating IP to port that has no fixed IPv4 addresses."}});
    for method in [Method::POST, Method::PUT] {
        let attach = Fault::new()
            .service("network")
            .method(method)
            .path("/v2.0/floatingips")
            .with_body("\"port_id\":\"");
        world.cloud.faults().add(attach.without_body("fixed_ip_address").answer(400, body.clone()));
    }
    world.create(&on_port_80());
    world.until_published("web").await;
    let [made] = &world.cloud.floating_ips()[..] else { panic!("one floating IP") };
    assert_eq!(made["fixed_ip_address"], load_balancer(&world)["vip_address"]);
}

/// A load balancer without its port is no load balancer without an address.
#[tokio::test(start_paused = true)]
async fn field_50_a_load_balancer_that_octavia_shows_without_its_port_is_said_to_be_one() {
    let world = World::serving(&annotated(&[(INTERNAL, "true")])).await;
    let before = world.ingress("web");
    assert!(world.cloud.hide_vip_port(&lb_name("web")));
    world.annotate("web", INTERNAL, None);
    world.until_warned("web", "vip_port_id").await;
    let warnings = world.warnings("web");
    assert!(warnings.iter().all(|warning| !warning.contains("no address")), "{warnings:#?}");
    assert_eq!(world.ingress("web"), before);
    assert!(world.cloud.floating_ips().is_empty());
}

/// The floating IP of the Service is somewhere else: a second one would be one too many.
#[tokio::test(start_paused = true)]
async fn field_50_a_floating_ip_of_the_service_that_is_on_another_port_is_not_replaced() {
    let world = World::serving(&on_port_80()).await;
    let before = world.ingress("web");
    let id = world.cloud.floating_ips()[0]["id"].as_str().unwrap().to_owned();
    let server = world.cloud.nodes()[0].server_id.clone();
    let port = world.cloud.ports().into_iter().find(|port| port["device_id"] == json!(server)).unwrap();
    attach(&world.cloud, &id, port["id"].as_str().unwrap());
    world.until_warned("web", "is attached to port").await;
    world.pass(3600).await;
    let warnings = world.warnings("web");
    let [warning] = &warnings[..] else { panic!("{warnings:#?}") };
    assert!(warning.contains("compute:") && warning.contains("unset --port"), "{warning}");
    assert_eq!(world.ingress("web"), before, "the published address stays");
    assert_eq!(world.cloud.floating_ips().len(), 1);
}

/// TCP here, UDP there, and one address.
#[tokio::test(start_paused = true)]
async fn field_52_two_services_with_one_address_are_refused_before_anything_is_made() {
    let world = World::started().await;
    floating_ip(&world.cloud, "198.19.0.77", "");
    let asks = |name: &str| service(name, json!({"spec": {"loadBalancerIP": "198.19.0.77"}}));
    world.serve(&asks("web")).await;
    let id = load_balancer(&world)["id"].as_str().unwrap().to_owned();
    world.create(&asks("dns"));
    world.until_warned_at_rest("dns", "SyncLoadBalancerFailed").await;
    let events = world.kube.list("events", "default").unwrap();
    let text =
        |event: &&serde_json::Value| event["involvedObject"]["name"] == "dns" && event["type"] == "Warning";
    let messages: Vec<&str> =
        events.iter().filter(text).filter_map(|event| event["message"].as_str()).collect();
    for part in ["default/web", "loadbalancer.openstack.org/load-balancer-id", &id] {
        assert!(messages.iter().any(|message| message.contains(part)), "{part}: {messages:#?}");
    }
    assert_eq!(world.cloud.load_balancers().len(), 1);
}

/// A server that was rebuilt under its name: its kubelet did not register the Node anew, and its addresses are those of the old one.
#[tokio::test(start_paused = true)]
async fn field_53_a_node_whose_server_was_replaced_under_its_name_is_told_how_to_be_registered_anew() {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    world.join("node-2").await;
    let before = world.server_id("node-1");
    world.cloud.remove_node("node-1");
    world.cloud.add_node("node-1");
    let now = world.server_id("node-1");
    world.pass(310).await;
    let [warning] = &world.node_warnings("node-1")[..] else { panic!("{:?}", world.node_warnings("node-1")) };
    assert!(warning.starts_with("NodeServerReplaced: "), "{warning}");
    for part in [
        format!("openstack:///{before}"),
        format!("openstack:///{now}"),
        "kubectl drain node-1".to_owned(),
        "kubectl delete node node-1".to_owned(),
        "on node-1 itself: systemctl restart kubelet".to_owned(),
    ] {
        assert!(warning.contains(&part), "{part} is missing: {warning}");
    }
    world.pass(900).await;
    assert_eq!(world.node_warnings("node-1").len(), 1, "repeats are counted in one Event");
    assert!(world.node_warnings("node-2").is_empty());
    assert_eq!(world.provider_id("node-1"), format!("openstack:///{before}"), "nobody can correct it");
}

/// A Node that was never initialised, or whose machine another tool looks after.
#[tokio::test(start_paused = true)]
async fn field_54_a_node_without_a_provider_id_whose_server_is_gone_says_so_once() {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lost"}});
    world.kube.create(&node).unwrap();
    world.set_ready("lost", "Unknown");
    world.pass(60).await;
    let [warning] = &world.node_warnings("lost")[..] else { panic!("{:?}", world.node_warnings("lost")) };
    assert!(warning.starts_with("NodeServerNotFound: "), "{warning}");
    for part in ["no server named lost", "spec.providerID", "kubectl delete node lost"] {
        assert!(warning.contains(part), "{part} is missing: {warning}");
    }
    world.pass(3600).await;
    assert_eq!(world.node_warnings("lost").len(), 1);
    assert!(!world.node("lost").is_null(), "it is kept");
}

/// Nodes apply the source ranges, too, and drop what the load balancer would let in.
#[rstest]
#[case::of_its_own("192.0.2.0/24", &[], ApiVersion::V1_36, "(Proxy)", &[])]
#[case::that_hold_the_cluster("198.18.0.0/15", &[], ApiVersion::V1_36, "(VIP)", &[])]
#[case::another_mode("192.0.2.0/24", &[("ip-mode", "vip")], ApiVersion::V1_36, "(VIP)",
    &["LoadBalancerBypassRequested", "ip-mode or set it to proxy", "drop"])]
#[case::a_cluster_that_cannot("192.0.2.0/24", &[], ApiVersion::V1_28, "", &["LoadBalancerIPModeNotHonoured", "source ranges"])]
#[tokio::test(start_paused = true)]
async fn field_75_a_cluster_that_source_ranges_let_in_gets_in(
    #[case] ranges: &str,
    #[case] annotations: &[(&str, &str)],
    #[case] version: ApiVersion,
    #[case] mode: &str,
    #[case] warning: &[&str],
) {
    let mut world = World::new(version);
    world.start().await;
    let mut wanted = annotated(&[annotations, &[("allow-cluster-sources", "true")]].concat());
    wanted["spec"]["loadBalancerSourceRanges"] = json!([ranges]);
    world.serve(&wanted).await;
    let ingress = world.ingress("web").concat();
    assert!(ingress.ends_with(mode), "{ingress}");
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), usize::from(!warning.is_empty()), "{warnings:#?}");
    assert!(warning.iter().all(|part| warnings[0].contains(part)), "{warnings:#?}");
}

/// Names and firewalls go by the address, so its change is said, with whoever made it.
#[tokio::test(start_paused = true)]
async fn field_78_a_floating_ip_that_somebody_exchanges_is_followed_and_said() {
    let world = World::serving(&on_port_80()).await;
    let own = only_floating_ip(&world);
    let port = own["port_id"].as_str().unwrap().to_owned();
    let other = floating_ip(&world.cloud, "198.19.0.77", "of a person");
    put(&world, &format!("/v2.0/floatingips/{}", id(&own)), &json!({"floatingip": {"port_id": null}}));
    attach(&world.cloud, &other, &port);
    world.until_ingress("web", "198.19.0.77(VIP)").await;
    world.quiet_unplanned().await;
    let warnings = world.warnings("web");
    let changed = warnings.iter().find(|one| one.contains("LoadBalancerAddressChanged")).expect("a Warning");
    let former = own["floating_ip_address"].as_str().unwrap();
    for part in
        [&format!("from {former} to 198.19.0.77"), &other, "of a person", &format!("{former} ({})", id(&own))]
    {
        assert!(changed.contains(part), "{part}: {changed}");
    }
}

/// As somebody asks for it, nothing has to be mended.
#[tokio::test(start_paused = true)]
async fn field_78_an_address_that_the_service_asks_for_is_said_without_a_warning() {
    let world = World::serving(&on_port_80()).await;
    floating_ip(&world.cloud, "198.19.0.77", "");
    world.patch("web", &json!({"spec": {"loadBalancerIP": "198.19.0.77"}}));
    world.until_ingress("web", "198.19.0.77(VIP)").await;
    world.quiet_unplanned().await;
    let events = world.events("web");
    assert!(events.iter().any(|one| one.contains("LoadBalancerAddressChanged")), "{events:#?}");
    assert_eq!(world.warnings("web"), [""; 0]);
}

/// The form that annotations of other controllers have, and that was proposed for this one.
#[tokio::test(start_paused = true)]
async fn field_81_tags_written_as_a_json_list_are_said_to_be_ignored() {
    let world = World::serving(&annotated(&[("load-balancer-tags", r#"["team-a", "cost-1"]"#)])).await;
    let tags = world.cloud.load_balancers()[0]["tags"].to_string();
    assert!(!tags.contains("team-a") && !tags.contains("cost-1"), "{tags}");
    world.until_warned("web", r#"write "team-a,cost-1""#).await;
}

/// No router leads from a network to itself, so no floating IP ever arrives.
#[rstest]
#[case::network(false)]
#[case::subnet(true)]
#[tokio::test(start_paused = true)]
async fn field_84_an_address_on_the_external_network_is_not_given_a_floating_ip(#[case] by_subnet: bool) {
    let world = configured(|_| "subnet-id =\nnetwork-id =\n".to_owned()).await;
    let seed = world.cloud.seed();
    let placed = match by_subnet {
        true => ("subnet-id", seed.public_subnet_id.as_str()),
        false => ("network-id", seed.public_network_id.as_str()),
    };
    world.create(&annotated(&[placed]));
    world.until_warned("web", "openstack-internal-load-balancer").await;
    world.pass(900).await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
    world.annotate("web", INTERNAL, Some("true"));
    world.until_published("web").await;
    world.until_warned("web", "LoadBalancerMembersOutOfReach").await;
    world.until_warned("web", "member-subnet-id").await;
}

/// It is told where its nodes are.
#[tokio::test(start_paused = true)]
async fn field_84_a_load_balancer_on_the_external_network_that_reaches_its_members_is_not_warned() {
    let world = configured(|_| "subnet-id =\nnetwork-id =\n".to_owned()).await;
    let seed = world.cloud.seed();
    let placed = [
        ("network-id", seed.public_network_id.as_str()),
        ("member-subnet-id", &seed.subnet_id),
        (INTERNAL, "true"),
    ];
    world.serve(&annotated(&placed)).await;
    assert_eq!(world.warnings("web"), [""; 0]);
}

/// Manifests of clusters that OVHcloud manages.
#[tokio::test(start_paused = true)]
async fn field_85_annotations_of_ovhcloud_are_answered_with_ours() {
    let world = World::serving(&annotated(&[
        ("service.beta.kubernetes.io/ovh-loadbalancer-proxy-protocol", "v2"),
        ("loadbalancer.ovhcloud.com/flavor", "small"),
    ]))
    .await;
    let [warning] = &world.warnings("web")[..] else { panic!("one hint: {:#?}", world.warnings("web")) };
    for part in [
        "ovh-loadbalancer-proxy-protocol",
        "ovhcloud.com/flavor",
        "loadbalancer.openstack.org/proxy-protocol: v2",
    ] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
}
