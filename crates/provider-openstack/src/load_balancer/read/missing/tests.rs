use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Mutex as StdMutex;

use futures::future::join_all;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::client::{Client, ClientSettings, RetryPolicy};
use openstack_ccm_openstack_api::transport::{FnTransport, Response};
use serde_json::json;

use super::*;
use crate::load_balancer::annotations::{LOAD_BALANCER_ADDRESS, OWNED_LOAD_BALANCER_ID};

/// Services that name `lb-0` and so on, each one that was made for it.
struct Named(usize);

impl Neighbours for Named {
    fn node_addresses(&self) -> BTreeSet<IpAddr> {
        BTreeSet::new()
    }

    fn served(&self) -> Vec<Service> {
        (0..self.0).map(service).collect()
    }
}

fn service(number: usize) -> Service {
    let id = format!("lb-{number}");
    let written =
        [(LOAD_BALANCER_ID, &*id), (OWNED_LOAD_BALANCER_ID, &*id), (LOAD_BALANCER_ADDRESS, "203.0.113.1")];
    let annotations = written.map(|(one, value)| (one.key.to_owned(), value.to_owned()));
    let new = Service::new(ServiceKey::new("default", format!("web-{number}")), format!("uid-{number}"));
    Service { annotations: annotations.into(), is_published: true, ..new }
}

/// An Octavia that takes a second to list some of them, and what it was asked.
#[derive(Clone, Default)]
struct ListingOctavia {
    listed: Arc<StdMutex<Vec<usize>>>,
    asked: Arc<StdMutex<Vec<String>>>,
}

impl ListingOctavia {
    fn shows(&self, numbers: impl IntoIterator<Item = usize>) {
        *self.listed.lock().unwrap() = numbers.into_iter().collect();
    }

    /// Judges the absences of load balancers of which so many are named.
    fn judge(&self, named: usize) -> MissingLoadBalancers {
        let octavia = self.clone();
        let transport = FnTransport::new(move |request| {
            octavia.asked.lock().unwrap().push(request.path_and_query());
            let listed = octavia.listed.lock().unwrap().clone();
            let view = |number: usize| json!({"id": format!("lb-{number}"), "name": format!("kube_service_kubernetes_default_web-{number}"), "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
            let body = json!({"loadbalancers": listed.into_iter().map(view).collect::<Vec<_>>()}).to_string();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(Response::from(http::Response::new(bytes::Bytes::from(body))))
            }
        });
        let settings = ClientSettings { retry: RetryPolicy::never(), ..ClientSettings::default() };
        let openstack = OpenStack::new(Client::new(Arc::new(transport), settings));
        let cluster = ClusterIdentity { name: "kubernetes".to_owned(), uid: "uid".to_owned() };
        let judge = MissingLoadBalancers::new(openstack, cluster);
        judge.set_neighbours(Arc::new(Named(named)));
        judge
    }

    fn lists(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn absence(judge: &MissingLoadBalancers, number: usize) -> Absence {
    judge.absence(&service(number)).await.expect("a list").0
}

#[tokio::test(start_paused = true)]
async fn no_absence_is_judged_by_a_list_from_before_it() {
    let octavia = ListingOctavia::default();
    let judge = octavia.judge(10);
    octavia.shows(1..10);
    assert_eq!(absence(&judge, 0).await, Absence::Gone);
    octavia.shows([]);
    assert_eq!(absence(&judge, 1).await, Absence::Most, "the others disappeared after the first list");
    octavia.shows(1..10);
    assert_eq!(absence(&judge, 2).await, Absence::Most, "what proves nothing may be older");
    assert_eq!(octavia.lists(), 2);
    tokio::time::sleep(COUNT_LIFETIME).await;
    assert_eq!(absence(&judge, 0).await, Absence::Gone);
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_share_the_next_list() {
    let octavia = ListingOctavia::default();
    let judge = octavia.judge(32);
    octavia.shows(16..32);
    let ask = async |number: usize| {
        tokio::time::sleep(Duration::from_millis(number as u64)).await;
        absence(&judge, number).await
    };
    assert_eq!(join_all((0..16).map(ask)).await, [Absence::Gone; 16]);
    assert_eq!(octavia.lists(), 2);
    assert!(octavia.asked.lock().unwrap().iter().all(|query| query.contains("limit=")), "in pages");
}

#[tokio::test(start_paused = true)]
async fn one_list_lets_many_new_services_have_their_first_one() {
    let octavia = ListingOctavia::default();
    let judge = octavia.judge(10);
    octavia.shows(1..10);
    for _ in 0..5 {
        judge.allow_first().await.expect("it is allowed");
    }
    assert_eq!(octavia.lists(), 1);
}
