//! What is sent.

use std::collections::BTreeSet;

use openstack_ccm_openstack_api::ErrorKind;
use openstack_ccm_openstack_api::neutron::{
    AllowedAddressPair, CreateFloatingIp, CreateSecurityGroup, CreateSecurityGroupRule, Direction, EtherType,
    FloatingIpFilter, NetworkFilter, Neutron, PortFilter, Route, SecurityGroupFilter, SubnetFilter, Tagged,
    UpdatePort,
};
use openstack_ccm_openstack_api::nova::Nova;
use openstack_ccm_openstack_api::octavia::{
    CreateHealthMonitor, CreateListener, CreateLoadBalancer, CreatePool, Fields as _, HealthMonitorType,
    HttpCheck, LbAlgorithm, ListenerAttributes, ListenerLimits, ListenerProtocol, LoadBalancerFilter,
    MemberSpec, MonitorAttributes, Octavia, PoolAttributes, PoolProtocol, SessionPersistence,
    SessionPersistenceType, UpdateChild, UpdateLoadBalancer,
};
use serde_json::{Value, json};

use crate::recorded::exchange;
use crate::stand_in::StandIn;

/// Runs one call against a cloud that knows nothing and gives what was sent.
macro_rules! sent {
    ($service:ident, |$api:ident| $call:expr) => {{
        let stand_in = StandIn::json(404, &Value::Null);
        let $api = $service::new(stand_in.client());
        assert!($call.await.is_err());
        stand_in.only()
    }};
}

fn by_source_ip() -> SessionPersistence {
    SessionPersistence { kind: SessionPersistenceType::SourceIp, persistence_timeout: None }
}

fn in_turn(session_persistence: Option<SessionPersistence>) -> PoolAttributes {
    PoolAttributes { lb_algorithm: LbAlgorithm::RoundRobin, session_persistence }
}

fn member(address: &str, port: u16) -> MemberSpec {
    MemberSpec {
        address: address.to_owned(),
        protocol_port: port,
        name: Some("node-1".to_owned()),
        subnet_id: Some("subnet".to_owned()),
        ..MemberSpec::default()
    }
}

fn tree() -> CreateLoadBalancer {
    let attributes = MonitorAttributes {
        delay: 5,
        timeout: 3,
        max_retries: 1,
        max_retries_down: 3,
        http: Some(HttpCheck::get("/healthz")),
    };
    let monitor = CreateHealthMonitor {
        name: "monitor_0".to_owned(),
        kind: HealthMonitorType::Http,
        attributes: attributes.to_create(),
        pool_id: None,
        tags: Vec::new(),
    };
    let pool = CreatePool {
        members: vec![member("198.18.0.50", 30_080)],
        health_monitor: Some(monitor),
        ..CreatePool::new("pool_0", PoolProtocol::ProxyV2, &in_turn(Some(by_source_ip())))
    };
    let limits = ListenerLimits { connection_limit: Some(-1), ..ListenerLimits::default() };
    let everybody = Some(["0.0.0.0/0".parse().unwrap()].into());
    let attributes = ListenerAttributes { limits, allowed_cidrs: everybody, ..ListenerAttributes::default() };
    let listener = CreateListener {
        attributes: attributes.to_create(),
        default_pool: Some(Box::new(pool)),
        ..CreateListener::new("listener_0", ListenerProtocol::Tcp, 80)
    };
    CreateLoadBalancer {
        name: "kube_service_x".to_owned(),
        description: Some("Kubernetes external service".to_owned()),
        provider: Some("amphora".to_owned()),
        tags: vec!["kube_service_x".to_owned()],
        vip_subnet_id: Some("subnet".to_owned()),
        listeners: vec![listener],
        ..CreateLoadBalancer::default()
    }
}

#[tokio::test]
async fn a_whole_tree_is_one_request_with_nothing_that_was_not_set() {
    let (line, body) = sent!(Octavia, |octavia| octavia.create_load_balancer(tree()));
    assert_eq!(line, "POST /v2.0/lbaas/loadbalancers");
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
}

#[tokio::test]
async fn listener_pool_and_monitor_on_their_own_match_the_recorded_requests() {
    let mut listener = CreateListener::new("tcp80", ListenerProtocol::Tcp, 80);
    let recorded = exchange("lifecycle", "listener: create TCP with cidrs, timeouts, tags").request.unwrap();
    let wanted = &recorded["listener"];
    listener.loadbalancer_id = wanted["loadbalancer_id"].as_str().map(str::to_owned);
    listener.tags = vec!["kube".to_owned(), "a".to_owned()];
    let limits = ListenerLimits {
        connection_limit: wanted["connection_limit"].as_i64(),
        timeout_client_data: Some(60_000),
        timeout_member_connect: Some(6_000),
        timeout_member_data: Some(60_000),
        timeout_tcp_inspect: Some(0),
    };
    let allowed_cidrs = Some(["10.0.0.0/8".parse().unwrap()].into());
    let attributes = ListenerAttributes { limits, allowed_cidrs, ..ListenerAttributes::default() };
    listener.attributes = attributes.to_create();
    let (_, body) = sent!(Octavia, |octavia| octavia.create_listener(&listener));
    assert_eq!(body, recorded);

    let recorded =
        exchange("lifecycle", "pool: create PROXY as default pool of the listener").request.unwrap();
    let mut pool = CreatePool::new("p", PoolProtocol::Proxy, &in_turn(None));
    pool.name = recorded["pool"]["name"].as_str().unwrap_or_default().to_owned();
    pool.listener_id = recorded["pool"]["listener_id"].as_str().map(str::to_owned);
    if !recorded["pool"]["session_persistence"].is_null() {
        pool.attributes = in_turn(Some(by_source_ip())).to_create();
    }
    let (line, body) = sent!(Octavia, |octavia| octavia.create_pool(&pool));
    assert_eq!((line.as_str(), body), ("POST /v2.0/lbaas/pools", recorded));
}

#[tokio::test]
async fn a_batch_holds_the_whole_list_and_may_be_empty() {
    let members = vec![member("198.18.0.50", 30_080)];
    let (line, body) = sent!(Octavia, |octavia| octavia.batch_members("pool", members));
    assert_eq!(line, "PUT /v2.0/lbaas/pools/pool/members");
    let expected =
        json!({"address": "198.18.0.50", "protocol_port": 30080, "name": "node-1", "subnet_id": "subnet"});
    assert_eq!(body, json!({ "members": [expected] }));

    let (line, body) = sent!(Octavia, |octavia| octavia.batch_members("pool", Vec::new()));
    assert_eq!((line.as_str(), body), ("PUT /v2.0/lbaas/pools/pool/members", json!({"members": []})));
}

#[tokio::test]
async fn one_member_can_be_added_and_taken_away() {
    let member = MemberSpec { address: "fd00::1".to_owned(), protocol_port: 1, ..MemberSpec::default() };
    let (line, body) = sent!(Octavia, |octavia| octavia.create_member("pool", &member));
    assert_eq!(line, "POST /v2.0/lbaas/pools/pool/members");
    assert_eq!(body, json!({ "member": {"address": "fd00::1", "protocol_port": 1} }));
    let (line, _) = sent!(Octavia, |octavia| octavia.delete_member("pool", "member"));
    assert_eq!(line, "DELETE /v2.0/lbaas/pools/pool/members/member");
}

#[tokio::test]
async fn an_update_sends_what_changes_and_null_for_what_goes() {
    let mut changes = UpdateChild::of("allowed_cidrs", vec!["10.0.0.0/8"]);
    for name in ["default_tls_container_ref", "default_pool_id"] {
        changes.attributes.set(name, Value::Null);
    }
    changes.attributes.set("insert_headers", json!({}));
    let (line, body) = sent!(Octavia, |octavia| octavia.update_listener("l", &changes));
    assert_eq!(line, "PUT /v2.0/lbaas/listeners/l");
    let expected = json!({
        "allowed_cidrs": ["10.0.0.0/8"], "default_tls_container_ref": null, "default_pool_id": null, "insert_headers": {}
    });
    assert_eq!(body, json!({ "listener": expected }));

    let changes = UpdateChild::of("session_persistence", Value::Null);
    let (_, body) = sent!(Octavia, |octavia| octavia.update_pool("p", &changes));
    assert_eq!(body, json!({ "pool": {"session_persistence": null} }));

    let changes = UpdateLoadBalancer { tags: Some(BTreeSet::new()), ..UpdateLoadBalancer::default() };
    let (_, body) = sent!(Octavia, |octavia| octavia.update_load_balancer("lb", &changes));
    assert_eq!(body, json!({ "loadbalancer": {"tags": []} }));

    let changes = UpdateChild::of("delay", 7);
    let (line, body) = sent!(Octavia, |octavia| octavia.update_health_monitor("h", &changes));
    assert_eq!(
        (line.as_str(), body),
        ("PUT /v2.0/lbaas/healthmonitors/h", json!({ "healthmonitor": {"delay": 7} }))
    );
}

#[tokio::test]
async fn deletes_and_failover_have_no_body() {
    let cases = [
        (
            sent!(Octavia, |octavia| octavia.delete_load_balancer("a", true)),
            "DELETE /v2.0/lbaas/loadbalancers/a?cascade=true",
        ),
        (
            sent!(Octavia, |octavia| octavia.delete_load_balancer("a", false)),
            "DELETE /v2.0/lbaas/loadbalancers/a",
        ),
        (
            sent!(Octavia, |octavia| octavia.failover_load_balancer("a")),
            "PUT /v2.0/lbaas/loadbalancers/a/failover",
        ),
        (sent!(Octavia, |octavia| octavia.delete_listener("a")), "DELETE /v2.0/lbaas/listeners/a"),
        (sent!(Octavia, |octavia| octavia.delete_pool("a")), "DELETE /v2.0/lbaas/pools/a"),
        (sent!(Octavia, |octavia| octavia.delete_health_monitor("a")), "DELETE /v2.0/lbaas/healthmonitors/a"),
        (sent!(Neutron, |neutron| neutron.delete_port("a")), "DELETE /v2.0/ports/a"),
        (sent!(Neutron, |neutron| neutron.delete_floating_ip("a")), "DELETE /v2.0/floatingips/a"),
        (sent!(Neutron, |neutron| neutron.delete_security_group("a")), "DELETE /v2.0/security-groups/a"),
        (
            sent!(Neutron, |neutron| neutron.delete_security_group_rule("a")),
            "DELETE /v2.0/security-group-rules/a",
        ),
        (
            sent!(Neutron, |neutron| neutron.delete_tag(Tagged::Port, "a", "b/c ä")),
            "DELETE /v2.0/ports/a/tags/b%2Fc%20%C3%A4",
        ),
    ];
    for ((line, body), expected) in cases {
        assert_eq!((line.as_str(), body), (expected, Value::Null));
    }
}

#[tokio::test]
async fn filters_become_queries() {
    let filter = LoadBalancerFilter {
        name: Some("kube service".to_owned()),
        tags: vec!["a".to_owned(), "b".to_owned()],
        id: Some("1".to_owned()),
        ..LoadBalancerFilter::default()
    };
    let (line, _) = sent!(Octavia, |octavia| octavia.list_load_balancers(&filter));
    let query = "id=1&name=kube+service&tags=a%2Cb";
    assert_eq!(line, format!("GET /v2.0/lbaas/loadbalancers?{query}"));
    let (line, _) = sent!(Octavia, |octavia| octavia.list_load_balancers_of_project::<Vec<_>>(Some("p")));
    assert_eq!(line, "GET /v2.0/lbaas/loadbalancers?project_id=p&limit=400");

    let filter = PortFilter {
        network_id: Some("n".to_owned()),
        security_group_id: Some("g".to_owned()),
        ..PortFilter::default()
    };
    let (line, _) = sent!(Neutron, |neutron| neutron.list_ports(&filter));
    assert_eq!(line, "GET /v2.0/ports?network_id=n&security_groups=g");

    let filter = SubnetFilter { network_id: Some("n".to_owned()), ..SubnetFilter::default() };
    let (line, _) = sent!(Neutron, |neutron| neutron.list_subnets(&filter));
    assert_eq!(line, "GET /v2.0/subnets?network_id=n");

    let filter =
        FloatingIpFilter { tags: vec!["k".to_owned(), "l".to_owned()], ..FloatingIpFilter::default() };
    let (line, _) = sent!(Neutron, |neutron| neutron.list_floating_ips(&filter));
    assert_eq!(line, "GET /v2.0/floatingips?tags=k%2Cl");
    // What nobody reads is left out of a list of all.
    let (line, _) = sent!(Neutron, |neutron| neutron.list_floating_ips_of_project::<Vec<_>>(Some("p")));
    let fields = "fields=id&fields=floating_ip_address&fields=floating_network_id&fields=port_id&fields=fixed_ip_address";
    assert_eq!(
        line,
        format!(
            "GET /v2.0/floatingips?{fields}&fields=description&fields=tags&fields=created_at&fields=router_id&fields=port_forwardings&fields=port_details&project_id=p&limit=400"
        )
    );

    let (line, _) = sent!(Neutron, |neutron| neutron.list_subnets(&SubnetFilter::ids(["a", "b"])));
    assert_eq!(line, "GET /v2.0/subnets?id=a&id=b");

    let filter = NetworkFilter { external: Some(true), ..NetworkFilter::default() };
    let (line, _) = sent!(Neutron, |neutron| neutron.list_networks(&filter));
    assert_eq!(line, "GET /v2.0/networks?router%3Aexternal=true");

    let (line, _) =
        sent!(Neutron, |neutron| neutron.list_floating_ips(&FloatingIpFilter::address("198.19.0.53")));
    assert_eq!(line, "GET /v2.0/floatingips?floating_ip_address=198.19.0.53");

    let filter = SecurityGroupFilter { name: Some("lb-sg-x".to_owned()), ..SecurityGroupFilter::default() };
    let (line, _) = sent!(Neutron, |neutron| neutron.list_security_groups(&filter));
    assert_eq!(line, "GET /v2.0/security-groups?name=lb-sg-x");
}

#[tokio::test]
async fn a_server_name_is_quoted() {
    let stand_in = StandIn::json(200, &json!({"servers": []}));
    Nova::new(stand_in.client()).list_servers_named("node-1.a(b)").await.unwrap();
    let query = stand_in.requests()[0].query.clone();
    assert_eq!(query, [("name".to_owned(), r"^node-1\.a\(b\)$".to_owned())]);
}

#[tokio::test]
async fn neutron_bodies_match_the_recorded_requests() {
    let recorded = exchange("network", "floating IP: create for the VIP port").request.unwrap();
    let wanted = &recorded["floatingip"];
    let text = |key: &str| wanted[key].as_str().map(str::to_owned);
    let new = CreateFloatingIp {
        floating_network_id: text("floating_network_id").unwrap(),
        port_id: text("port_id"),
        description: text("description"),
        ..CreateFloatingIp::default()
    };
    assert_eq!(sent!(Neutron, |neutron| neutron.create_floating_ip(&new)).1, recorded);

    let recorded = exchange("network", "floating IP: disassociate").request.unwrap();
    assert_eq!(sent!(Neutron, |neutron| neutron.update_floating_ip("f", None)).1, recorded);

    let tags = BTreeSet::from(["a".to_owned()]);
    let recorded = exchange("network", "floating IP: tags").request.unwrap();
    let (line, body) = sent!(Neutron, |neutron| neutron.replace_tags(Tagged::FloatingIp, "f", &tags));
    assert_eq!((line.as_str(), body), ("PUT /v2.0/floatingips/f/tags", recorded));

    let group = CreateSecurityGroup { name: "lb-sg-x".to_owned(), description: "d".to_owned() };
    let recorded = exchange("network", "security group: create").request.unwrap();
    assert_eq!(sent!(Neutron, |neutron| neutron.create_security_group(&group)).1, recorded);

    let routes = [Route { destination: "10.244.0.0/24".to_owned(), nexthop: "198.18.0.50".to_owned() }];
    let recorded = exchange("network", "router: add_extraroutes").request.unwrap();
    let (line, body) = sent!(Neutron, |neutron| neutron.remove_extra_routes("r", &routes));
    assert_eq!((line.as_str(), body), ("PUT /v2.0/routers/r/remove_extraroutes", recorded));
    let recorded = exchange("network", "router: no routes").request.unwrap();
    assert_eq!(sent!(Neutron, |neutron| neutron.replace_extra_routes("r", &[], None)).1, recorded);
}

#[tokio::test]
async fn a_rule_without_a_range_matches_everything() {
    let rule = CreateSecurityGroupRule {
        security_group_id: "g".to_owned(),
        direction: Direction::Ingress,
        ethertype: EtherType::Ipv4,
        protocol: Some("tcp".to_owned()),
        port_range_min: Some(30_080),
        port_range_max: Some(30_080),
        remote_ip_prefix: None,
    };
    let (_, body) = sent!(Neutron, |neutron| neutron.create_security_group_rule(&rule));
    let expected = json!({"security_group_id": "g", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp",
        "port_range_min": 30080, "port_range_max": 30080});
    assert_eq!(body, json!({ "security_group_rule": expected }));
}

#[tokio::test]
async fn a_port_can_be_changed_only_if_nobody_else_did() {
    let pair = AllowedAddressPair { ip_address: "10.244.0.0/24".to_owned(), mac_address: None };
    let changes = UpdatePort { allowed_address_pairs: Some(vec![pair]), ..UpdatePort::default() };
    let stand_in = StandIn::new([Ok(exchange("network", "port: allowed address pairs, none").answer())]);
    let error = Neutron::new(stand_in.client()).update_port("p", &changes, Some(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict(openstack_ccm_openstack_api::ConflictCause::Stale));
    assert_eq!(stand_in.requests()[0].headers["if-match"], "revision_number=1");
    let recorded = exchange("network", "port: allowed address pairs").request.unwrap();
    assert_eq!(stand_in.only().1, recorded);
}
