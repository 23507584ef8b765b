use std::collections::BTreeSet;
use std::sync::Mutex;

use rstest::rstest;

use super::*;
use crate::client::Client;
use crate::neutron::{CreateFloatingIp, FloatingIpFilter, Neutron, Tagged};
use crate::octavia::{
    ChildFilter, CreateListener, CreateLoadBalancer, ListenerProtocol, LoadBalancerFilter, MemberSpec,
    Octavia, ProvisioningStatus, UpdateLoadBalancer,
};
use crate::transport::FnTransport;

/// What happened.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<Write>>);

impl Recorder for Notes {
    fn read(&self, _kind: Kind, _object: &Value) {}

    fn wrote(&self, write: Write) {
        self.0.lock().unwrap().push(write);
    }
}

/// A cloud with one load balancer, one listener, one pool and one member, that takes nothing but GET, and how often it was
/// asked.
fn cloud(ahead: bool) -> (Octavia, Neutron, Arc<Notes>, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    let transport = FnTransport::new(move |request| {
        assert_eq!(request.method, Method::GET);
        log.lock().unwrap().push(request.path_and_query());
        let body = existing(&request);
        let status = if body.is_null() { StatusCode::NOT_FOUND } else { StatusCode::OK };
        async move { Ok(answer(status, &body)) }
    });
    let notes = Arc::new(Notes::default());
    let reading = Reading { ahead, project_id: Some("p".to_owned()) };
    let client = Client::over(DryRun::new(Arc::new(transport), reading, notes.clone()));
    (Octavia::new(client.clone()), Neutron::new(client), notes, asked)
}

fn existing(request: &Request) -> Value {
    let status = |mut object: Value| {
        object["provisioning_status"] = json!("ACTIVE");
        object["operating_status"] = json!("ONLINE");
        object
    };
    let load_balancer = status(json!({"id": "lb", "name": "web", "project_id": "p", "vip_port_id": "vip"}));
    let listener = status(json!({"id": "li", "name": "l", "protocol": "TCP", "protocol_port": 80,
        "default_pool_id": "po", "project_id": "p", "loadbalancers": [{"id": "lb"}]}));
    let pool = status(json!({"id": "po", "name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
        "project_id": "p", "listeners": [{"id": "li"}], "loadbalancers": [{"id": "lb"}]}));
    let member =
        status(json!({"id": "m1", "name": "n1", "address": "10.0.0.1", "protocol_port": 30080, "weight": 1,
        "backup": false, "admin_state_up": true, "monitor_port": null, "monitor_address": null, "tags": []}));
    let chosen = |object: Value, key: &str, value: &str| {
        let all = request.query.iter().all(|(asked, text)| asked != key || text == value);
        if all { json!([object]) } else { json!([]) }
    };
    match request.path.trim_start_matches("/v2.0/lbaas/") {
        "loadbalancers" => json!({"loadbalancers": chosen(load_balancer, "name", "web")}),
        "loadbalancers/lb" => json!({"loadbalancer": load_balancer}),
        "listeners" => json!({"listeners": chosen(listener, "loadbalancer_id", "lb")}),
        "listeners/li" => json!({"listener": listener}),
        "pools" => json!({"pools": chosen(pool, "loadbalancer_id", "lb")}),
        "pools/po" => json!({"pool": pool}),
        "pools/po/members" => json!({"members": [member]}),
        "/v2.0/floatingips" => json!({"floatingips": []}),
        "/v2.0/subnets" => json!({"subnets": [{"ip_version": 4}]}),
        _ => Value::Null,
    }
}

fn new(name: &str) -> CreateLoadBalancer {
    let listeners = vec![CreateListener::new("listener", ListenerProtocol::Tcp, 443)];
    CreateLoadBalancer {
        name: name.to_owned(),
        vip_subnet_id: Some("s".to_owned()),
        listeners,
        ..Default::default()
    }
}

#[tokio::test]
async fn what_is_created_is_seen_by_later_reads_and_stands_out() {
    let (octavia, neutron, notes, _) = cloud(false);
    let made = octavia.create_load_balancer(new("api")).await.unwrap().load_balancer;
    assert!(is_placeholder(&made.id));
    assert!(is_placeholder_address(made.vip_address.as_deref().unwrap().parse().unwrap()));
    let listed = octavia.list_load_balancers(&LoadBalancerFilter::name("api")).await.unwrap();
    assert_eq!(listed, [octavia.get_load_balancer(&made.id).await.unwrap()]);
    assert_eq!(listed[0].provisioning_status, ProvisioningStatus::Active);
    let listeners = octavia.list_listeners(&ChildFilter::load_balancer(&made.id)).await.unwrap();
    assert_eq!(listeners.iter().map(|one| one.protocol_port).collect::<Vec<_>>(), [443]);
    let port_id = made.vip_port_id.clone();
    let body = CreateFloatingIp { floating_network_id: "n".to_owned(), port_id, ..Default::default() };
    let floating_ip = neutron.create_floating_ip(&body).await.unwrap();
    neutron
        .replace_tags(Tagged::FloatingIp, &floating_ip.id, &BTreeSet::from(["a".to_owned()]))
        .await
        .unwrap();
    let port = FloatingIpFilter::port(made.vip_port_id.unwrap());
    assert_eq!(neutron.list_floating_ips(&port).await.unwrap()[0].tags, BTreeSet::from(["a".to_owned()]));
    let writes = notes.0.lock().unwrap();
    let calls: Vec<String> = writes
        .iter()
        .map(|write| format!("{} {}", write.method, write.path.replace(&floating_ip.id, "ID")))
        .collect();
    assert_eq!(
        calls,
        ["POST /v2.0/lbaas/loadbalancers", "POST /v2.0/floatingips", "PUT /v2.0/floatingips/ID/tags"]
    );
}

#[rstest]
#[case::object_by_object(false)]
#[case::lists_ahead(true)]
#[tokio::test]
async fn a_change_is_recorded_with_what_was_there_and_is_seen_by_later_reads(#[case] ahead: bool) {
    let (octavia, _, notes, _) = cloud(ahead);
    let changes = UpdateLoadBalancer { tags: Some(BTreeSet::from(["t".to_owned()])), ..Default::default() };
    octavia.update_load_balancer("lb", &changes).await.unwrap();
    assert_eq!(octavia.get_load_balancer("lb").await.unwrap().tags, BTreeSet::from(["t".to_owned()]));
    let member = |address: &str| MemberSpec {
        address: address.to_owned(),
        protocol_port: 30080,
        ..Default::default()
    };
    octavia.batch_members("po", vec![member("10.0.0.1"), member("10.0.0.2")]).await.unwrap();
    assert_eq!(octavia.list_members("po", Vec::new()).await.unwrap().len(), 2);
    let writes = notes.0.lock().unwrap();
    let [update, batch] = writes.as_slice() else { panic!("{writes:?}") };
    let ObjectChange { before: Some(before), after: Some(after), .. } = &update.changes[0] else {
        panic!("{update:?}")
    };
    assert_eq!((&before["tags"], &after["tags"]), (&Value::Null, &json!(["t"])));
    let [change] = batch.changes.as_slice() else { panic!("the member that stays is no change: {batch:?}") };
    assert_eq!(
        (change.kind, change.before.is_none(), change.parent.as_deref()),
        (Kind::Member, true, Some("po"))
    );
}

#[tokio::test]
async fn what_is_deleted_is_gone_with_all_below() {
    let (octavia, _, notes, _) = cloud(false);
    octavia.delete_load_balancer("lb", true).await.unwrap();
    assert!(octavia.get_load_balancer("lb").await.unwrap_err().is_not_found());
    assert!(octavia.list_load_balancers(&LoadBalancerFilter::name("web")).await.unwrap().is_empty());
    assert!(octavia.list_pools(&ChildFilter::load_balancer("lb")).await.unwrap().is_empty());
    assert!(octavia.list_members("po", Vec::new()).await.unwrap_err().is_not_found());
    let kinds: Vec<Kind> = notes.0.lock().unwrap()[0].changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [Kind::LoadBalancer, Kind::Listener, Kind::Pool]);
}

#[tokio::test]
async fn whole_lists_spare_a_read_for_each_object() {
    let (octavia, _, _, asked) = cloud(true);
    let in_project =
        LoadBalancerFilter { project_id: Some("p".to_owned()), ..LoadBalancerFilter::name("web") };
    for _ in 0..3 {
        octavia.list_load_balancers(&in_project).await.unwrap();
        octavia.get_load_balancer("lb").await.unwrap();
        octavia.list_listeners(&ChildFilter::load_balancer("lb")).await.unwrap();
        octavia.get_listener("li").await.unwrap();
    }
    let asked = asked.lock().unwrap();
    assert_eq!(*asked, ["/v2.0/lbaas/loadbalancers?project_id=p", "/v2.0/lbaas/listeners?project_id=p"]);
}

/// One that the whole lists do not show may belong to another project.
#[tokio::test]
async fn what_the_lists_lack_is_asked_for() {
    let (octavia, _, _, asked) = cloud(true);
    assert!(octavia.get_load_balancer("elsewhere").await.unwrap_err().is_not_found());
    assert_eq!(asked.lock().unwrap().last().unwrap(), "/v2.0/lbaas/loadbalancers/elsewhere");
}

/// Whatever is tried, nothing but reads gets through.
#[tokio::test]
async fn a_transport_that_reads_cannot_write() {
    let transport = FnTransport::new(|_| async { panic!("a write got through") });
    let client = Client::over(ReadOnly::new(Arc::new(transport)));
    let error = Octavia::new(client).delete_load_balancer("lb", true).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    let cause = std::error::Error::source(source).unwrap().to_string();
    assert_eq!(cause, "DELETE /v2.0/lbaas/loadbalancers/lb is a write, and nothing may be written here");
}

/// What the program would not take for a list is none in a plan.
#[rstest]
#[tokio::test]
async fn a_list_that_cannot_be_read_is_not_taken_for_an_empty_one(
    #[values(false, true)] ahead: bool,
    #[values(json!({"loadbalancers": null}), json!({}), json!({"loadbalancers": [], "loadbalancers_links": [next_page()]}))]
    body: Value,
) {
    let transport = FnTransport::new(move |_| {
        let answer = answer(StatusCode::OK, &body);
        async { Ok(answer) }
    });
    let reading = Reading { ahead, project_id: Some("p".to_owned()) };
    let run = DryRun::new(Arc::new(transport), reading, Arc::new(Notes::default()));
    let octavia = Octavia::new(Client::over(run));
    let filter = LoadBalancerFilter { project_id: Some("p".to_owned()), ..LoadBalancerFilter::name("web") };
    octavia.list_load_balancers(&filter).await.unwrap_err();
}

fn next_page() -> Value {
    json!({"rel": "next", "href": "http://cloud/v2.0/lbaas/loadbalancers?marker=m"})
}
