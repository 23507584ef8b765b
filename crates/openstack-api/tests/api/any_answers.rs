//! Whatever a proxy or a stranger in between answers: a list is read to its end or refused, in bounded time.

use http::{HeaderMap, StatusCode};
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_api::neutron::{FloatingIpFilter, Neutron};
use openstack_ccm_openstack_api::octavia::{LoadBalancerFilter, Octavia};
use openstack_ccm_openstack_api::transport::{FnTransport, Response};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// Values near to what is read, and far from it.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "(ACTIVE|PENDING_UPDATE|ERROR|10\\.0\\.0\\.[0-9]{1,3}|[0-9a-f-]{36})".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn load_balancer() -> Value {
    json!({"id": "a", "name": "b", "description": "", "provisioning_status": "ACTIVE", "operating_status": "ONLINE",
        "admin_state_up": true, "project_id": "p", "vip_address": "10.0.0.1", "vip_port_id": "q", "tags": [],
        "listeners": [], "pools": [], "additional_vips": [], "created_at": "t", "updated_at": "u"})
}

/// A client of a cloud that gives this one answer to everything.
fn client(body: &Value) -> Client {
    let body = body.to_string();
    Client::over(FnTransport::new(move |_| {
        let body = body.clone();
        async move { Ok(Response { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into() }) }
    }))
}

fn lists_end(body: &Value) -> (bool, bool) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let octavia = Octavia::new(client(body)).list_load_balancers(&LoadBalancerFilter::default()).await;
        let neutron = Neutron::new(client(body)).list_floating_ips(&FloatingIpFilter::default()).await;
        (octavia.is_ok(), neutron.is_ok())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_body_is_read_or_refused(body in anything(), inner in anything(), link in "[?&=a-z]{0,12}") {
        lists_end(&body);
        let links = json!([{"rel": "next", "href": format!("http://cloud/v2?{link}")}]);
        lists_end(&json!({"loadbalancers": inner.clone(), "loadbalancers_links": links.clone(),
            "floatingips": inner, "floatingips_links": links}));
    }

    #[test]
    fn one_strange_attribute_is_read_or_refused(place in any::<Index>(), value in anything()) {
        let mut object = load_balancer();
        let keys: Vec<String> = object.as_object().unwrap().keys().cloned().collect();
        object[place.get(&keys)] = value;
        lists_end(&json!({"loadbalancers": [object]}));
    }
}

#[test]
fn the_unchanged_answer_is_read() {
    assert!(lists_end(&json!({"loadbalancers": [load_balancer()], "floatingips": []})) == (true, true));
}
