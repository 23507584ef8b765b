//! Every answer that real services gave can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openstack_ccm_openstack_api::ApiError;
use openstack_ccm_openstack_api::barbican::{Barbican, Reference};
use openstack_ccm_openstack_api::client::{Client, ClientSettings, NoObserver, RetryPolicy};
use openstack_ccm_openstack_api::neutron::{
    Extension, FloatingIp, Network, Neutron, Port, PortFilter, PortStatus, Route, Router, SecurityGroup,
    SecurityGroupRule, Subnet,
};
use openstack_ccm_openstack_api::nova::{ComputeFlavor, Microversion, Nova, Server, ServerStatus};
use openstack_ccm_openstack_api::octavia::{
    AvailabilityZone, Capability, ChildFilter, CreateLoadBalancer, CreatedTree, Fields as _, Flavor,
    HealthMonitor, HealthMonitorType, HttpCheck, Listener, ListenerProtocol, LoadBalancer,
    LoadBalancerFilter, Member, MonitorAttributes, Octavia, OctaviaFeatures, OperatingStatus, Pool,
    PoolProtocol, Provider, ProvisioningStatus, Quota, SessionPersistenceType,
};
use openstack_ccm_openstack_api::transport::FnTransport;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::recorded::{FILES, exchange, file};
use crate::stand_in::{StandIn, answer};

/// Reads a value as `T`, one or a list, and counts.
fn read<T: DeserializeOwned>(value: &Value) -> Result<usize, serde_json::Error> {
    if value.is_array() {
        serde_json::from_value::<Vec<T>>(value.clone()).map(|items| items.len())
    } else {
        serde_json::from_value::<T>(value.clone()).map(|_| 1)
    }
}

type Read = fn(&Value) -> Result<usize, serde_json::Error>;

fn reader(service: &str, root: &str) -> Option<Read> {
    Some(match (service, root) {
        ("octavia", "loadbalancer" | "loadbalancers") => read::<LoadBalancer>,
        ("octavia", "listener" | "listeners") => read::<Listener>,
        ("octavia", "pool" | "pools") => read::<Pool>,
        ("octavia", "member" | "members") => read::<Member>,
        ("octavia", "healthmonitor" | "healthmonitors") => read::<HealthMonitor>,
        ("octavia", "flavor" | "flavors") => read::<Flavor>,
        ("octavia", "availability_zones") => read::<AvailabilityZone>,
        ("octavia", "providers") => read::<Provider>,
        ("octavia", "quota") => read::<Quota>,
        ("octavia", "flavor_capabilities") => read::<Capability>,
        ("neutron", "network" | "networks") => read::<Network>,
        ("neutron", "subnet" | "subnets") => read::<Subnet>,
        ("neutron", "port" | "ports") => read::<Port>,
        ("neutron", "floatingip" | "floatingips") => read::<FloatingIp>,
        ("neutron", "security_group" | "security_groups") => read::<SecurityGroup>,
        ("neutron", "security_group_rule" | "security_group_rules") => read::<SecurityGroupRule>,
        ("neutron", "router") => read::<Router>,
        ("neutron", "extensions") => read::<Extension>,
        ("nova", "server" | "servers") => read::<Server>,
        ("nova", "flavors") => read::<ComputeFlavor>,
        _ => return None,
    })
}

#[test]
fn every_recorded_object_can_be_read() {
    let mut counts = BTreeMap::new();
    for exchange in FILES.iter().flat_map(|name| file(name)) {
        // Nova answers the creation of a server with a fragment, and `fields` asks for fragments.
        let is_fragment = exchange.path.contains("fields=") || exchange.name == "server: create";
        let Some(Value::Object(object)) =
            exchange.response.as_ref().filter(|_| exchange.status < 300 && !is_fragment)
        else {
            continue;
        };
        for (root, value) in object {
            if let Some(read) = reader(&exchange.service, root) {
                let count = read(value).unwrap_or_else(|error| panic!("{}: {root}: {error}", exchange.name));
                *counts.entry(root.clone()).or_insert(0) += count;
            }
        }
    }
    for root in
        ["loadbalancer", "listener", "pool", "members", "healthmonitor", "port", "floatingip", "server"]
    {
        assert!(counts.get(root).is_some_and(|count| *count > 3), "{root}: {counts:?}");
    }
}

fn stand_in(file_name: &str, name: &str) -> StandIn {
    StandIn::new([Ok(exchange(file_name, name).answer())])
}

#[tokio::test]
async fn a_load_balancer_has_what_the_controller_compares() {
    let stand_in = stand_in("variants", "load balancer: dual stack once ACTIVE");
    let load_balancer = Octavia::new(stand_in.client()).get_load_balancer("bbfaf7f2").await.unwrap();
    assert_eq!(load_balancer.provisioning_status, ProvisioningStatus::Active);
    assert_eq!(load_balancer.operating_status, OperatingStatus::Online);
    assert_eq!(load_balancer.vip_address.as_deref(), Some("198.18.4.221"));
    assert_eq!(load_balancer.additional_vips[0].ip_address.as_deref(), Some("fd00:18:4::22c"));
    assert_eq!(load_balancer.provider.as_deref(), Some("amphora"));
    assert_eq!((load_balancer.listeners.len(), load_balancer.pools.len()), (1, 1));
}

#[tokio::test]
async fn the_answer_to_a_whole_tree_shows_all_of_it() {
    let stand_in = stand_in("full", "load balancer: everything in one POST");
    let new = CreateLoadBalancer::default();
    let made = Octavia::new(stand_in.client()).create_load_balancer(new).await.unwrap();
    assert_eq!(made.load_balancer.vip_address.as_deref(), Some("198.18.0.52"));
    let CreatedTree { listeners, pools } = made.tree.unwrap();
    assert_eq!((listeners.len(), pools.len()), (3, 3));
    let pool = pools.iter().find(|one| one.pool.name == "pool_0").unwrap();
    let user = listeners.iter().find(|listener| listener.default_pool_id.as_ref() == Some(&pool.pool.id));
    assert_eq!((user.unwrap().name.as_str(), &pool.pool.protocol), ("listener_0", &PoolProtocol::Proxy));
    assert_eq!(pool.members.len(), 2);
    assert_eq!(pool.members[0].provisioning_status, ProvisioningStatus::PendingCreate);
    assert_eq!(pool.healthmonitor.as_ref().unwrap().name, "monitor_0");
}

#[tokio::test]
async fn an_answer_that_shows_children_by_id_alone_is_no_tree() {
    let shown = exchange("full", "load balancer: the single POST once ACTIVE");
    let stand_in = StandIn::new([Ok(shown.answer())]);
    let new = CreateLoadBalancer::default();
    let made = Octavia::new(stand_in.client()).create_load_balancer(new).await.unwrap();
    assert_eq!((made.load_balancer.listeners.len(), made.tree), (3, None));
}

#[tokio::test]
async fn the_status_tree_shows_each_child_with_its_status() {
    let stand_in = stand_in("full", "status tree of the single POST");
    let tree = Octavia::new(stand_in.client()).load_balancer_statuses("2cecec70").await.unwrap();
    assert_eq!(stand_in.lines(), ["GET /v2.0/lbaas/loadbalancers/2cecec70/status"]);
    assert_eq!((tree.provisioning_status, tree.listeners.len()), (ProvisioningStatus::Active, 3));
    let pool = &tree.listeners[0].pools[0];
    assert!(pool.health_monitor.is_some());
    let places: Vec<_> = pool.members.iter().map(|one| (one.address.as_str(), one.protocol_port)).collect();
    assert_eq!(places, [("198.18.0.50", 30080), ("198.18.0.51", 30080)]);
}

#[tokio::test]
async fn the_status_tree_shows_a_member_that_failed_and_no_pool_without_a_listener() {
    let stand_in = stand_in("lifecycle", "load balancer: status tree, full");
    let tree = Octavia::new(stand_in.client()).load_balancer_statuses("ed88eb14").await.unwrap();
    assert_eq!(tree.provisioning_status, ProvisioningStatus::Active);
    let pools: Vec<_> = tree.listeners.iter().flat_map(|listener| &listener.pools).collect();
    assert_eq!(pools.len(), 1);
    assert_eq!(pools[0].members[0].provisioning_status, ProvisioningStatus::Error);
}

#[tokio::test]
async fn a_listener_has_what_the_controller_compares() {
    let stand_in = stand_in("lifecycle", "listener: get");
    let listener = Octavia::new(stand_in.client()).get_listener("38460e91").await.unwrap();
    assert_eq!((&listener.protocol, listener.protocol_port), (&ListenerProtocol::Tcp, 80));
    assert_eq!(listener.allowed_cidrs, ["10.0.0.0/8"]);
    let limits: Vec<i64> =
        listener.attributes.limits.values().iter().filter_map(|(_, value)| value.as_i64()).collect();
    assert_eq!(limits, [-1, 60_000, 6_000, 60_000, 0]);
    assert_eq!(listener.tags, BTreeSet::from(["a".to_owned(), "kube".to_owned()]));
    assert_eq!(listener.loadbalancers[0].id, "ed88eb14-ed5c-4bea-ab64-3a6e64991097");
}

#[tokio::test]
async fn allowed_cidrs_that_are_null_read_as_none() {
    let stand_in = stand_in("lifecycle", "listener: after allowed_cidrs null");
    let listener = Octavia::new(stand_in.client()).get_listener("38460e91").await.unwrap();
    assert!(listener.allowed_cidrs.is_empty());
}

#[tokio::test]
async fn a_tls_listener_has_its_certificate_and_headers() {
    let stand_in = stand_in("tls", "listener: TERMINATED_HTTPS, get");
    let listener = Octavia::new(stand_in.client()).get_listener("ba9e0731").await.unwrap();
    assert_eq!(listener.protocol, ListenerProtocol::TerminatedHttps);
    let reference = Reference::parse(listener.attributes.tls_container_ref.as_deref().unwrap());
    assert_eq!(reference, Some(Reference::Container("098530ee-0b79-4072-87d5-38fdebd6d904".to_owned())));
    assert_eq!(listener.attributes.insert_headers["X-Forwarded-Proto"], "true");
    assert_eq!(listener.attributes.tls.tls_versions, Some(["TLSv1.2", "TLSv1.3"].map(str::to_owned).into()));
}

#[tokio::test]
async fn members_and_monitor_have_what_the_controller_compares() {
    let members = stand_in("leaks", "batch: what remains of the attributes");
    let members = Octavia::new(members.client()).list_members("a7e04618", Vec::new()).await.unwrap();
    assert_eq!(
        (members[0].address.as_str(), members[0].protocol_port, members[0].weight),
        ("198.18.0.50", 1, 1)
    );
    assert_eq!((members[0].monitor_port, members[0].backup), (None, false));

    let monitor = stand_in("lifecycle", "health monitor: get");
    let monitor = Octavia::new(monitor.client()).get_health_monitor("80bf37df").await.unwrap();
    assert_eq!(monitor.kind, HealthMonitorType::Http);
    let http = Some(HttpCheck::get("/healthz"));
    let expected = MonitorAttributes { delay: 5, timeout: 3, max_retries: 1, max_retries_down: 2, http };
    assert_eq!(monitor.attributes, expected);
}

#[test]
fn the_proxy_pool_of_the_recordings_is_one() {
    let exchange = exchange("lifecycle", "pool: create PROXY as default pool of the listener");
    let pool: Pool = serde_json::from_value(exchange.response.unwrap()["pool"].clone()).unwrap();
    assert_eq!(pool.protocol, PoolProtocol::Proxy);
    assert_eq!(pool.healthmonitor_id, None);
    let persistence = pool.session_persistence.map(|persistence| persistence.kind);
    assert!(matches!(persistence, None | Some(SessionPersistenceType::SourceIp)));
}

#[tokio::test]
async fn a_status_that_is_new_to_us_does_not_break_a_list() {
    let mut answer = exchange("lifecycle", "load balancer: get once ACTIVE").response.unwrap();
    answer["loadbalancer"]["provisioning_status"] = json!("PENDING_MIGRATION");
    answer["loadbalancer"]["operating_status"] = json!("TIRED");
    let stand_in = StandIn::json(200, &json!({ "loadbalancers": [answer["loadbalancer"]] }));
    let found =
        Octavia::new(stand_in.client()).list_load_balancers(&LoadBalancerFilter::default()).await.unwrap();
    assert!(found[0].provisioning_status.is_pending());
    assert_eq!(found[0].operating_status, OperatingStatus::Other("TIRED".to_owned()));
}

#[tokio::test]
async fn the_version_of_octavia_is_the_highest_one_and_is_asked_for_once() {
    let stand_in = stand_in("discovery", "octavia discovery / without token");
    let octavia = Octavia::new(stand_in.client());
    let features = octavia.api_versions().await.unwrap();
    assert_eq!(features, OctaviaFeatures::of(2, 30));
    assert_eq!(octavia.clone().api_versions().await.unwrap(), features);
    assert_eq!(stand_in.lines(), ["GET /"]);
}

/// What is asked for beside the work is known when that had its turn.
async fn versions_later(octavia: &Octavia) -> (u32, u32) {
    octavia.api_versions().await.unwrap();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    octavia.api_versions().await.unwrap().version
}

/// A list of versions that hangs stops nobody who has something to go by.
#[tokio::test(start_paused = true)]
async fn what_is_known_of_the_versions_serves_while_the_list_hangs() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let transport = FnTransport::new(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if number > 0 {
                std::future::pending::<()>().await;
            }
            Ok(answer(200, &json!({"versions": [{"id": "v2.30"}]})))
        }
    });
    let octavia = Octavia::new(Client::over(transport));
    octavia.api_versions().await.unwrap();
    let start = tokio::time::Instant::now();
    for _ in 0..20 {
        octavia.doubt_api_versions();
        tokio::time::advance(std::time::Duration::from_secs(3600)).await;
        let versions =
            tokio::time::timeout(std::time::Duration::from_secs(1), versions_later(&octavia)).await;
        assert_eq!(versions.expect("nobody waits for the list"), (2, 30));
    }
    assert_eq!(start.elapsed(), std::time::Duration::from_secs(20 * 3600), "nobody waited");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "one that hangs is not sent again");
}

/// At a start all Services need the versions: an outage costs them the time of one call, not of one each.
#[tokio::test(start_paused = true)]
async fn those_who_wait_for_the_versions_share_a_failure() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let transport = FnTransport::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            Ok(answer(500, &Value::Null))
        }
    });
    let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
    let octavia = Octavia::new(Client::new(Arc::new(transport), settings));
    let answers = futures::future::join_all((0..10).map(|_| octavia.api_versions())).await;
    assert!(answers.iter().all(Result::is_err));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Octavia is upgraded while the program runs, and its list may fail for a while.
#[tokio::test(start_paused = true)]
async fn versions_are_asked_for_again_after_some_hours_and_a_failure_takes_nothing_away() {
    let versions = |minor: u8| Ok(answer(200, &json!({"versions": [{"id": format!("v2.{minor}")}]})));
    let failure = || Ok(answer(503, &Value::Null));
    let stand_in = StandIn::new([versions(11), failure(), versions(30), versions(31)]);
    let octavia = Octavia::new(stand_in.client_with(RetryPolicy::never(), Arc::new(NoObserver)));
    let after = async |hours: u64, seconds: u64| {
        tokio::time::advance(std::time::Duration::from_secs(hours * 3600 + seconds)).await;
        (versions_later(&octavia).await.1, stand_in.lines().len())
    };
    assert_eq!(after(0, 0).await, (11, 1));
    assert_eq!(after(5, 0).await, (11, 1), "still good");
    assert_eq!(after(2, 0).await, (11, 2), "the second answer is a failure");
    assert_eq!(after(0, 59).await, (11, 2));
    assert_eq!(after(0, 1).await, (30, 3));
    octavia.doubt_api_versions();
    assert_eq!(after(0, 59).await, (30, 3), "not more often than once in a minute");
    assert_eq!(after(0, 1).await, (31, 4));
}

#[tokio::test]
async fn the_order_of_versions_does_not_matter_and_odd_ones_are_passed_over() {
    let versions = json!({ "versions": [{"id": "v2.9"}, {"id": "v2.10"}, {"id": "v3-draft"}, {"id": "v1"}, {"id": "v2.2"}] });
    let stand_in = StandIn::json(200, &versions);
    let features = Octavia::new(stand_in.client()).api_versions().await.unwrap();
    assert_eq!(features.version, (2, 10));
    assert!(features.tags() && features.flavors());
    assert!(!features.allowed_cidrs() && !features.additional_vips());
}

#[tokio::test]
async fn a_failed_discovery_is_an_error_and_the_next_call_asks_again() {
    let unavailable = answer(503, &Value::Null);
    let stand_in = StandIn::new([
        Ok(unavailable.clone()),
        Ok(answer(200, &json!({ "versions": [] }))),
        Ok(exchange("discovery", "octavia discovery / without token").answer()),
    ]);
    let octavia = Octavia::new(stand_in.client_with(RetryPolicy::never(), Arc::new(NoObserver)));
    assert_eq!(octavia.api_versions().await.unwrap_err().status().map(|status| status.as_u16()), Some(503));
    let error = octavia.api_versions().await.unwrap_err();
    assert_eq!(error.kind(), openstack_ccm_openstack_api::ErrorKind::Decode);
    assert_eq!(octavia.api_versions().await.unwrap().version, (2, 30));
}

#[tokio::test]
async fn a_vip_port_shows_its_owner_and_groups() {
    let stand_in = stand_in("lifecycle", "VIP port once ACTIVE");
    let port = Neutron::new(stand_in.client()).get_port("251d79bc").await.unwrap();
    assert_eq!(port.status, PortStatus::Down);
    assert_eq!(port.device_owner, "Octavia");
    assert_eq!(port.device_id, "lb-ed88eb14-ed5c-4bea-ab64-3a6e64991097");
    assert_eq!(port.security_groups.len(), 1);
    assert_eq!(port.revision_number, Some(2));
}

#[tokio::test]
async fn ports_of_unusual_clouds_can_be_read() {
    let port = json!({
        "id": "p", "network_id": "n", "status": "N/A", "name": null, "fixed_ips": null, "mac_address": "fa:16:3e:00:00:01",
        "allowed_address_pairs": [{"ip_address": "10.244.0.0/16", "mac_address": "fa:16:3e:00:00:01"}],
        "trunk_details": {"trunk_id": "t", "sub_ports": [{"port_id": "s", "segmentation_id": 5, "segmentation_type": "vlan"}]}
    });
    let stand_in = StandIn::json(200, &json!({ "ports": [port] }));
    let ports = Neutron::new(stand_in.client()).list_ports(&PortFilter::device("d")).await.unwrap();
    assert_eq!(ports[0].status, PortStatus::Other("N/A".to_owned()));
    assert_eq!(ports[0].allowed_address_pairs[0].ip_address, "10.244.0.0/16");
    assert!(ports[0].port_security_enabled, "a Neutron without the extension filters every port");
    assert_eq!(ports[0].trunk_details.as_ref().unwrap().sub_ports[0].port_id, "s");
}

#[tokio::test]
async fn extra_routes_of_a_router_can_be_read() {
    let stand_in = stand_in("network", "router: add_extraroutes");
    let neutron = Neutron::new(stand_in.client());
    let route = Route { destination: "10.244.0.0/24".to_owned(), nexthop: "198.18.0.50".to_owned() };
    let router = neutron.add_extra_routes("bd0f3e0c", std::slice::from_ref(&route)).await.unwrap();
    assert_eq!(router.routes, [route]);
}

#[tokio::test]
async fn extensions_are_listed_by_alias() {
    let stand_in = stand_in("discovery", "neutron extensions");
    let extensions = Neutron::new(stand_in.client()).list_extensions().await.unwrap();
    assert!(extensions.iter().any(|extension| extension.alias == "extraroute-atomic"));
}

#[tokio::test]
async fn a_server_has_addresses_zone_and_size() {
    let old = stand_in("compute", "server: get with a floating IP");
    let server = Nova::new(old.client()).get_server("502753c8").await.unwrap();
    assert_eq!(server.status, ServerStatus::Active);
    assert_eq!(server.availability_zone, "nova");
    let kinds: Vec<_> = server.addresses["cluster"].iter().map(|address| address.kind.as_deref()).collect();
    assert_eq!(kinds, [Some("fixed"), Some("floating")]);
    assert_eq!(server.flavor.id.as_deref(), Some("9dc1fbf1-e73e-4837-be2c-8baa9372877b"));
    assert_eq!(server.metadata["k"], "v");

    let new = stand_in("compute", "server: get, 2.96");
    let nova = Nova::new(new.client()).with_microversion(Microversion::FLAVOR_NAME_IN_SERVER);
    assert_eq!(nova.get_server("502753c8").await.unwrap().flavor.original_name.as_deref(), Some("m1.lab"));
    let header = new.requests()[0].headers["openstack-api-version"].clone();
    assert_eq!(header, "compute 2.47");
}

#[tokio::test]
async fn microversions_of_nova_are_found() {
    let stand_in = stand_in("discovery", "nova discovery / without token");
    let range = Nova::new(stand_in.client()).microversions().await.unwrap();
    assert_eq!(range.oldest, Microversion { major: 2, minor: 1 });
    assert!(range.contains(Microversion::FLAVOR_NAME_IN_SERVER));
    assert!(!range.contains(Microversion { major: 2, minor: 1000 }));
}

#[tokio::test]
async fn a_container_is_there_and_another_answer_is_none() {
    let barbican = Barbican::new(stand_in("tls", "container: get").client());
    assert_eq!(barbican.get_container("098530ee").await.unwrap().status, "ACTIVE");
    let barbican = Barbican::new(stand_in("tls", "container: create").client());
    let error = barbican.get_container("098530ee").await.unwrap_err();
    assert!(matches!(error, ApiError::Decode { .. }), "{error:?}");
}

#[tokio::test]
async fn a_list_of_listeners_is_asked_for_by_load_balancer() {
    let stand_in = stand_in("full", "listeners by loadbalancer_id");
    let id = "2cecec70-71fe-4bc4-95e5-e715491ce3e4";
    let filter = ChildFilter::load_balancer(id);
    let listeners = Octavia::new(stand_in.client()).list_listeners(&filter).await.unwrap();
    assert!(!listeners.is_empty());
    assert_eq!(stand_in.lines(), [format!("GET /v2.0/lbaas/listeners?loadbalancer_id={id}")]);
}
