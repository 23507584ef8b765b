//! Floating IPs, internal Services, and what is published.

use openstack_ccm_openstack_sim::Fault;
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{
    INTERNAL, annotated, attach, configured, external_network, floating_ip, id, load_balancer, make,
    only_floating_ip, subnet,
};
use crate::support::{ADDRESS, PROXY, Side, World, lb_name, service};

const VIP: &str = "198.18.0.2(VIP)";
const FLOATING: &str = "198.19.0.11(VIP)";

fn floating_ip_calls(world: &World) -> Vec<String> {
    let calls = world.take_calls().into_iter();
    calls
        .filter(|call| call.name.contains("floatingips") || call.name.contains("networks"))
        .map(|call| call.name)
        .collect()
}

/// An internal Service has its VIP as address and asks for nothing outside.
///
/// Contract: F1, same.
#[tokio::test(start_paused = true)]
async fn f1_an_internal_service_asks_for_nothing_outside() {
    let world = World::started().await;
    world.create(&annotated(&[(INTERNAL, "true")]));
    world.until_served_at("web", VIP).await;
    assert!(world.cloud.floating_ips().is_empty());
    let calls = floating_ip_calls(&world);
    assert!(calls.iter().all(|call| call == "GET floatingips" || call == "GET networks/ID"), "{calls:?}");
}

/// `internal-lb` of cloud.conf makes every Service internal; a Service that asked for the opposite gets an Event.
///
/// Contract: F2, better: a Service that asked to be external gets an event.
/// Defect: 82, better: a Service that asked to be external gets an Event.
#[tokio::test(start_paused = true)]
async fn f2_the_operator_makes_every_service_internal() {
    let world = configured(|_| "internal-lb=true\n".to_owned()).await;
    world.create(&annotated(&[(INTERNAL, "false")]));
    world.until_served_at("web", VIP).await;
    world.assert_warned_once("web", "LoadBalancerForcedInternal");
}

/// An internal Service chooses the address of its VIP.
///
/// Contract: F3, same.
#[tokio::test(start_paused = true)]
async fn f3_an_internal_service_chooses_its_vip() {
    let world = World::started().await;
    let mut object = annotated(&[(INTERNAL, "true")]);
    object["spec"]["loadBalancerIP"] = json!("198.18.0.200");
    world.create(&object);
    world.until_ingress("web", "198.18.0.200(VIP)").await;
    assert_eq!(load_balancer(&world)["vip_address"], "198.18.0.200");
}

fn asking_for(address: &str) -> Value {
    service("web", json!({"spec": {"loadBalancerIP": address}}))
}

/// A floating IP of the user that the Service asks for is attached, and never changed or deleted.
///
/// Contract: F4, same.
#[tokio::test(start_paused = true)]
async fn f4_a_floating_ip_of_the_user_is_attached_and_given_back() {
    let world = World::started().await;
    let own = floating_ip(&world.cloud, "198.19.0.77", "the user's own");
    world.create(&asking_for("198.19.0.77"));
    world.until_served_at("web", "198.19.0.77(VIP)").await;
    let writes = world.take_cloud_writes();
    assert!(!writes.iter().any(|write| write == "POST floatingips"), "{writes:?}");
    let seen = only_floating_ip(&world);
    assert_eq!((&seen["id"], &seen["description"]), (&json!(own), &json!("the user's own")));
    world.release("web").await;
    let seen = only_floating_ip(&world);
    assert_eq!((&seen["id"], &seen["port_id"]), (&json!(own), &Value::Null));
}

/// A floating IP that leads elsewhere is not taken away, and no load balancer is made that could not be published.
///
/// Contract: F5, better: OCCM makes the load balancer before it looks.
#[tokio::test(start_paused = true)]
async fn f5_a_floating_ip_that_leads_elsewhere_is_left_there() {
    let world = World::started().await;
    let taken = floating_ip(&world.cloud, "198.19.0.77", "");
    let port = json!({"network_id": world.cloud.seed().network_id});
    let (_, port) = world.cloud.user().post("network", "/v2.0/ports", &json!({"port": port}));
    let port = id(&port["port"]);
    attach(&world.cloud, &taken, &port);
    world.create(&asking_for("198.19.0.77"));
    world.until_warned_at_rest("web", &format!("is already attached to port {port}")).await;
    assert_eq!(only_floating_ip(&world)["port_id"], json!(port));
    assert!(world.cloud.load_balancers().is_empty());
    assert!(world.ingress("web").is_empty());
}

/// An address that nobody has yet is requested; Neutron refuses that to most users, and the Service gets an Event.
///
/// Contract: F6, same.
#[tokio::test(start_paused = true)]
async fn f6_an_address_that_nobody_has_is_asked_for() {
    let world = World::started().await;
    world.create(&asking_for("198.19.0.77"));
    world.until_warned_at_rest("web", "remove spec.loadBalancerIP").await;
    assert!(world.take_cloud_writes().contains(&"POST floatingips".to_owned()));
    assert!(world.ingress("web").is_empty());
    world.patch("web", &json!({"spec": {"loadBalancerIP": null}}));
    world.until_ingress("web", FLOATING).await;
}

/// A floating IP that is already attached to the VIP is used, whoever attached it; if the Service asks for another one, an Event says so.
///
/// Contract: F7, better: an Event says that `spec.loadBalancerIP` is not used.
#[tokio::test(start_paused = true)]
async fn f7_a_floating_ip_that_is_there_stays() {
    let world = World::started().await;
    world.serve(&annotated(&[(INTERNAL, "true")])).await;
    let own = floating_ip(&world.cloud, "198.19.0.88", "by hand");
    attach(&world.cloud, &own, load_balancer(&world)["vip_port_id"].as_str().unwrap());
    world.patch(
        "web",
        &json!({"metadata": {"annotations": {INTERNAL: null}}, "spec": {"loadBalancerIP": "198.19.0.99"}}),
    );
    world.until_served_at("web", "198.19.0.88(VIP)").await;
    assert_eq!(world.cloud.floating_ips().len(), 1);
    world.assert_warned_once("web", "LoadBalancerIPIgnored");
}

/// `spec.loadBalancerIP` that changes to a free floating IP of the project swaps the one that was made for the Service, also
/// where it changes while the program does not run.
#[rstest]
#[case::at_work(false)]
#[case::away(true)]
#[tokio::test(start_paused = true)]
async fn f7_an_own_floating_ip_gives_way_to_the_one_that_is_asked_for(#[case] away: bool) {
    let mut world = World::serving(&service("web", json!({}))).await;
    if away {
        world.stop().await;
    }
    floating_ip(&world.cloud, "198.19.0.77", "");
    world.patch("web", &json!({"spec": {"loadBalancerIP": "198.19.0.77"}}));
    if away {
        world.start().await;
    }
    world.until_served_at("web", "198.19.0.77(VIP)").await;
    assert_eq!(only_floating_ip(&world)["floating_ip_address"], "198.19.0.77");
}

/// Without a configured floating network the only external one is used; an empty annotation asks for that as well.
///
/// Contract: F8, same.
/// Contract: F9, same.
#[rstest]
#[case::f8_not_configured(false)]
#[case::f9_empty_annotation(true)]
#[tokio::test(start_paused = true)]
async fn f8_f9_the_only_external_network_is_found(#[case] by_annotation: bool) {
    let world = configured(|_| {
        let configured = if by_annotation { "00000000-0000-4000-8000-000000000000" } else { "" };
        format!("floating-network-id={configured}\n")
    })
    .await;
    let object =
        if by_annotation { annotated(&[("floating-network-id", "")]) } else { service("web", json!({})) };
    world.create(&object);
    world.until_served_at("web", FLOATING).await;
    assert!(world.warnings("web").is_empty());
}

/// Where there is no external network the Service is internal, with a Warning. Several are named, not guessed among.
///
/// Contract: F8, better: among several external networks OCCM takes the first that Neutron happens to list.
#[rstest]
#[case::none(false)]
#[case::several(true)]
#[tokio::test(start_paused = true)]
async fn f8_no_external_network_makes_the_service_internal(#[case] several: bool) {
    let world = configured(|_| "floating-network-id=\n".to_owned()).await;
    if several {
        external_network(&world.cloud, "ext2", "198.51.100.0/24");
        let router = format!("/v2.0/routers/{}", world.cloud.seed().router_id);
        let leads_nowhere = json!({"router": {"external_gateway_info": null}});
        assert_eq!(world.cloud.user().put("network", &router, &leads_nowhere).0, 200);
    } else {
        let public = &world.cloud.seed().public_network_id;
        let hidden = json!({"networks": []});
        world.cloud.faults().add(Fault::new().service("network").path("networks").answer(200, hidden));
        assert!(!public.is_empty());
    }
    world.create(&service("web", json!({})));
    world.until_served_at("web", VIP).await;
    let warnings = world.warnings("web").join("\n");
    assert!(warnings.contains("LoadBalancerExternalNetworkSearchFailed"), "{warnings}");
    assert!(warnings.contains("LoadBalancerForcedInternal"), "{warnings}");
    assert_eq!(warnings.contains("ext2"), several, "the candidates are named");
}

/// Of several external networks the one is taken to which a router leads from the load balancer's network.
#[tokio::test(start_paused = true)]
async fn among_several_external_networks_the_only_one_behind_a_router_is_taken() {
    let world = configured(|_| "floating-network-id=\n".to_owned()).await;
    external_network(&world.cloud, "ext2", "198.51.100.0/24");
    world.create(&service("web", json!({})));
    world.until_served("web").await;
    let address: Vec<_> = world.ingress("web");
    let public = world.cloud.user().get("network", "/v2.0/floatingips").1;
    assert_eq!(public["floatingips"][0]["floating_network_id"], world.cloud.seed().public_network_id);
    assert!(address[0].starts_with(public["floatingips"][0]["floating_ip_address"].as_str().unwrap()));
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// The floating IP comes from the configured subnet. One of another network is an error before anything is made.
///
/// Contract: F10, same.
#[rstest]
#[case::right(true)]
#[case::of_another_network(false)]
#[tokio::test(start_paused = true)]
async fn f10_the_floating_ip_comes_from_the_configured_subnet(#[case] right: bool) {
    let world = configured(|world| {
        let seed = world.cloud.seed();
        let other = subnet(&world.cloud, &seed.public_network_id, "other", "203.0.113.0/24");
        format!("floating-subnet-id={}\n", if right { &other } else { &seed.subnet_id })
    })
    .await;
    world.create(&service("web", json!({})));
    if right {
        world.until_published("web").await;
        assert!(world.ingress("web")[0].starts_with("203.0.113."));
    } else {
        world.until_warned_at_rest("web", "floating-subnet-id").await;
        assert!(world.cloud.load_balancers().is_empty() && world.take_cloud_writes().is_empty());
    }
}

/// Of the subnets whose name matches, the first with a free address is taken.
///
/// Contract: F11, same.
#[tokio::test(start_paused = true)]
async fn f11_the_first_matching_subnet_with_a_free_address_is_taken() {
    let world = World::started().await;
    let public = world.cloud.seed().public_network_id.clone();
    let full = json!({"name": "pool-1", "network_id": public, "ip_version": 4, "cidr": "192.0.2.0/24",
        "allocation_pools": [{"start": "192.0.2.10", "end": "192.0.2.10"}]});
    let full = id(&make(&world.cloud, "subnets", "subnet", &full));
    let last = json!({"floating_network_id": public, "subnet_id": full});
    make(&world.cloud, "floatingips", "floatingip", &last);
    subnet(&world.cloud, &public, "pool-2", "203.0.113.0/24");
    subnet(&world.cloud, &public, "other", "198.51.100.0/24");
    world.create(&annotated(&[("floating-subnet", "pool-*")]));
    world.until_published("web").await;
    assert!(world.ingress("web")[0].starts_with("203.0.113."), "{:?}", world.ingress("web"));
}

/// Names, globs, regular expressions and their negations choose the subnet of the floating IP.
///
/// Contract: F12, better: an expression is held to the whole name, so that `~a|ab` fits `ab`, and a subnet without a name
/// fits no pattern by accident.
#[rstest]
#[case::exact("b-net", Some("b"))]
#[case::expression("~pool-[0-9]+", Some("pool-7"))]
#[case::alternatives("~pool|pool-7", Some("pool-7"))]
#[case::negated("!{pool-*,b-net,public-v4}", Some("a"))]
#[case::braces("{a,x}-net", Some("a"))]
#[case::one_letter("pool-?", Some("pool-7"))]
#[case::nothing_fits("nothing-*", None)]
#[tokio::test(start_paused = true)]
async fn f12_patterns_choose_the_subnet(#[case] pattern: &str, #[case] expected: Option<&str>) {
    let world = World::started().await;
    let public = world.cloud.seed().public_network_id.clone();
    let ranges = [("a-net", "192.0.2."), ("b-net", "203.0.113."), ("pool-7", "198.51.100.")];
    for (name, range) in ranges {
        subnet(&world.cloud, &public, name, &format!("{range}0/24"));
    }
    world.create(&annotated(&[("floating-subnet", pattern)]));
    match expected {
        Some(expected) => {
            world.until_published("web").await;
            let range = ranges.iter().find(|(name, _)| name.starts_with(expected)).unwrap().1;
            assert!(world.ingress("web")[0].starts_with(range), "{:?}", world.ingress("web"));
        }
        None => {
            world.until_warned("web", pattern).await;
            assert!(world.cloud.floating_ips().is_empty());
        }
    }
}

/// Tags choose the subnet of the floating IP by their documented meaning: one of them, all, none, not all.
///
/// Contract: F13, better: OCCM sends `!` and `!&` with each other's meaning.
#[rstest]
#[case::one_of_them("b,c", &["only-b", "both"])]
#[case::all("&a,b", &["both"])]
#[case::none("!a,b", &["plain"])]
#[case::not_all("!&a,b", &["only-b", "plain"])]
#[tokio::test(start_paused = true)]
async fn f13_tags_mean_what_is_documented(#[case] condition: &str, #[case] fitting: &[&str]) {
    let world = World::started().await;
    let ranges = tagged_subnets(&world);
    world.create(&annotated(&[("floating-subnet-tags", condition), ("floating-subnet", "!public-v4")]));
    world.until_published("web").await;
    let address = world.ingress("web")[0].clone();
    let (name, _) = ranges.iter().find(|(_, range)| address.starts_with(range)).unwrap();
    assert!(fitting.contains(name), "{name} ({address})");
}

/// With pattern and tags both must fit.
///
/// Contract: F14, same.
#[tokio::test(start_paused = true)]
async fn f14_pattern_and_tags_must_both_fit() {
    let world = World::started().await;
    let ranges = tagged_subnets(&world);
    world.create(&annotated(&[("floating-subnet-tags", "b"), ("floating-subnet", "only-*")]));
    world.until_published("web").await;
    assert!(world.ingress("web")[0].starts_with(ranges[0].1));
}

/// Subnets of the public network by name and range, with tags.
fn tagged_subnets(world: &World) -> [(&'static str, &'static str); 3] {
    let ranges = [("only-b", "192.0.2."), ("both", "203.0.113."), ("plain", "198.51.100.")];
    for ((name, range), tags) in ranges.iter().zip([&["b"][..], &["a", "b"], &[]]) {
        let subnet =
            subnet(&world.cloud, &world.cloud.seed().public_network_id, name, &format!("{range}0/24"));
        for tag in tags {
            let path = format!("/v2.0/subnets/{subnet}/tags/{tag}");
            world.cloud.admin().change("network", &path, &json!({}));
        }
    }
    ranges
}

/// A malformed pattern is an error of its Service; others are served.
///
/// Contract: F15, better: OCCM's process panics.
#[tokio::test(start_paused = true)]
async fn f15_a_malformed_pattern_stops_its_service_only() {
    let world = World::started().await;
    world.create(&annotated(&[("floating-subnet", "[abc")]));
    world.until_warned("web", "\"[abc\" is not a pattern").await;
    world.create(&service("other", json!({})));
    world.until_published("other").await;
    assert!(world.cloud.load_balancer(&lb_name("web")).is_none());
}

/// A wanted address has its subnet already: the pattern is not looked at.
///
/// Contract: F16, same.
#[tokio::test(start_paused = true)]
async fn f16_a_wanted_address_needs_no_pattern() {
    let world = World::started().await;
    let mut object = annotated(&[("floating-subnet", "nothing-*")]);
    object["spec"]["loadBalancerIP"] = json!("198.19.0.77");
    world.create(&object);
    world.until_warned("web", "remove spec.loadBalancerIP").await;
    let posts = world.take_cloud_writes().iter().filter(|write| *write == "POST floatingips").count();
    assert_eq!(posts, 1, "one call, with the address");
    assert!(!world.warnings("web").join("\n").contains("nothing-*"));
}

/// An external Service that becomes internal loses its floating IP: one that was made for it is deleted, one that is to be
/// kept or is somebody else's only taken off. On the way back it gets one again.
///
/// Contract: F17, same.
/// Contract: F18, same.
/// Defect: 78, better: a floating IP is taken off with an explicit `null`, not by Neutron's reading of an empty request.
#[rstest]
#[case::made_here(false, false, 0)]
#[case::to_be_kept(true, false, 1)]
#[case::described_otherwise(false, true, 1)]
#[tokio::test(start_paused = true)]
async fn f17_f18_a_service_turns_internal_and_back(
    #[case] keep: bool,
    #[case] foreign: bool,
    #[case] left: usize,
) {
    let mut world = World::started().await;
    // A plan does not know that the controller has seen the Service become internal.
    world.settings.plans = !foreign;
    let annotations: &[(&str, &str)] = if keep { &[("keep-floatingip", "true")] } else { &[] };
    world.serve(&annotated(annotations)).await;
    assert_eq!(world.ingress("web"), [FLOATING]);
    if foreign {
        let path = format!("/v2.0/floatingips/{}", id(&only_floating_ip(&world)));
        let port = only_floating_ip(&world)["port_id"].clone();
        let body = json!({"floatingip": {"description": "mine", "port_id": port}});
        world.cloud.user().change("network", &path, &body);
    }
    world.annotate("web", INTERNAL, Some("true"));
    world.until_served_at("web", VIP).await;
    let floating_ips = world.cloud.floating_ips();
    assert_eq!(floating_ips.len(), left);
    assert!(floating_ips.iter().all(|one| one["port_id"].is_null()));
    let calls = world.take_calls().into_iter().filter(|call| call.name == "PUT floatingips/ID");
    let detached: Vec<Value> = calls.filter_map(|call| Some(call.request?.body)).collect();
    // The one that somebody described stays on the port with which it was described.
    assert_eq!(detached.len(), left);
    assert!(detached.iter().all(|body| *body == json!({"floatingip": {"port_id": null}})), "{detached:?}");
    world.annotate("web", INTERNAL, None);
    world.until("it is external again", |world| world.ingress("web")[0].starts_with("198.19.0.")).await;
}

/// A hostname stands alone in the status; the annotation still shows the address.
///
/// Contract: F19, same.
#[tokio::test(start_paused = true)]
async fn f19_a_hostname_is_published_alone() {
    let world = World::serving(&annotated(&[("hostname", "app.example.org")])).await;
    assert_eq!(world.ingress("web"), ["app.example.org"]);
    assert_eq!(world.annotation("web", ADDRESS).as_deref(), Some("198.19.0.11"));
}

/// A PROXY Service is published by its address with the mode Proxy, or by a hostname where the operator asks for that; the
/// Service's own hostname wins, and without PROXY the operator's wish changes nothing.
///
/// Contract: F20, same.
/// Contract: F21, same.
/// Contract: F22, same.
#[rstest]
#[case::f20_mode("", &[(PROXY, "true")], "198.19.0.11(Proxy)")]
#[case::f20_hostname("enable-ingress-hostname=true\n", &[(PROXY, "true")], "198.19.0.11.nip.io")]
#[case::f20_suffix("enable-ingress-hostname=true\ningress-hostname-suffix=example.org\n", &[(PROXY, "true")], "198.19.0.11.example.org")]
#[case::f21_own_hostname("enable-ingress-hostname=true\n", &[(PROXY, "true"), ("hostname", "app.example.org")], "app.example.org")]
#[case::f22_no_proxy("enable-ingress-hostname=true\n", &[], FLOATING)]
#[tokio::test(start_paused = true)]
async fn f20_f21_f22_the_operator_may_ask_for_hostnames(
    #[case] conf: &str,
    #[case] annotations: &[(&str, &str)],
    #[case] expected: &str,
) {
    let world = configured(|_| conf.to_owned()).await;
    world.create(&annotated(annotations));
    world.until_served_at("web", expected).await;
    assert_eq!(world.ingress("web"), [expected]);
}

/// Reconciling a Service that does not change writes nothing and emits no Event.
///
/// Contract: F23, better: OCCM announces every reconciliation with two Events.
#[tokio::test(start_paused = true)]
async fn f23_a_service_that_does_not_change_costs_no_write() {
    let mut world = World::serving(&service("web", json!({}))).await;
    let events = world.events("web").len();
    world.annotate_to_rest("web", "keep-floatingip", Some("false")).await;
    world.restart_to_rest().await;
    world.pass(7200).await;
    let calls = world.take_calls();
    let writes: Vec<_> = calls.iter().filter(|call| call.write && !call.name.contains("events")).collect();
    assert!(
        writes.iter().all(|call| call.side == Side::Kubernetes && call.name.contains("leases")),
        "{writes:?}"
    );
    assert_eq!(world.events("web").len(), events, "{:?}", world.events("web"));
}
