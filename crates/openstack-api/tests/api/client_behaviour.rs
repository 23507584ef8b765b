//! Retries, paging, metrics, and ids that must never be sent. The clock is paused: pauses cost no time.

use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_openstack_api::ErrorKind;
use openstack_ccm_openstack_api::client::RetryPolicy;
use openstack_ccm_openstack_api::neutron::Neutron;
use openstack_ccm_openstack_api::octavia::{CreateLoadBalancer, LoadBalancerFilter, Octavia, UpdateChild};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::recorded::exchange;
use crate::stand_in::{Ledger, StandIn, answer, answer_with, lost_answer, no_connection};

fn load_balancers() -> openstack_ccm_openstack_api::transport::Response {
    answer(200, &json!({ "loadbalancers": [], "loadbalancers_links": [] }))
}

fn all() -> LoadBalancerFilter {
    LoadBalancerFilter::default()
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_after_a_lost_connection_and_after_a_lost_answer() {
    let stand_in = StandIn::new([Err(no_connection()), Err(lost_answer()), Ok(load_balancers())]);
    Octavia::new(stand_in.client()).list_load_balancers(&all()).await.unwrap();
    assert_eq!(stand_in.lines().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_read_is_not_repeated_for_ever() {
    let stand_in = StandIn::new([
        Err(no_connection()),
        Err(no_connection()),
        Err(no_connection()),
        Ok(load_balancers()),
    ]);
    let error = Octavia::new(stand_in.client()).list_load_balancers(&all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(stand_in.lines().len(), 3);
}

#[rstest]
#[case::lost_answer(Err(lost_answer()), ErrorKind::LostAnswer)]
#[case::no_connection(Err(no_connection()), ErrorKind::Unavailable)]
#[case::bad_gateway(Ok(answer(502, &Value::Null)), ErrorKind::Unavailable)]
#[case::overloaded(Ok(answer_with(503, &[("retry-after", "1")], &Value::Null)), ErrorKind::Unavailable)]
#[tokio::test(start_paused = true)]
async fn a_creation_is_never_repeated_when_it_may_have_happened(
    #[case] outcome: Result<
        openstack_ccm_openstack_api::transport::Response,
        openstack_ccm_openstack_api::transport::TransportError,
    >,
    #[case] kind: ErrorKind,
) {
    let stand_in = StandIn::new([outcome]);
    let new = CreateLoadBalancer { name: "a".to_owned(), ..CreateLoadBalancer::default() };
    let error = Octavia::new(stand_in.client()).create_load_balancer(new).await.unwrap_err();
    assert_eq!(error.kind(), kind);
    assert_eq!(stand_in.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_out_even_for_a_creation() {
    let created = exchange("lifecycle", "load balancer: create, minimal").answer();
    let stand_in = StandIn::new([Ok(answer_with(429, &[("retry-after", "7")], &Value::Null)), Ok(created)]);
    let new = CreateLoadBalancer { name: "a".to_owned(), ..CreateLoadBalancer::default() };
    let start = Instant::now();
    Octavia::new(stand_in.client()).create_load_balancer(new).await.unwrap();
    assert_eq!(stand_in.lines().len(), 2);
    assert!(start.elapsed() >= Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_wish_to_wait_long_is_handed_to_the_caller() {
    let stand_in = StandIn::new([Ok(answer_with(429, &[("retry-after", "3600")], &Value::Null))]);
    let error = Octavia::new(stand_in.client()).list_load_balancers(&all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(stand_in.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_update_is_repeated_when_the_service_names_a_time() {
    let updated = exchange("lifecycle", "pool: get while PENDING_CREATE").answer();
    let stand_in = StandIn::new([Ok(answer_with(503, &[("retry-after", "2")], &Value::Null)), Ok(updated)]);
    Octavia::new(stand_in.client()).update_pool("p", &UpdateChild::default()).await.unwrap();
    assert_eq!(stand_in.lines().len(), 2);
}

#[tokio::test]
async fn a_refusal_is_not_repeated() {
    let refused = exchange("variants", "load balancer: unknown subnet").answer();
    let stand_in = StandIn::new([Ok(refused)]);
    Octavia::new(stand_in.client()).list_load_balancers(&all()).await.unwrap_err();
    assert_eq!(stand_in.lines().len(), 1);
}

#[tokio::test]
async fn all_pages_are_read_and_the_link_decides_the_next_one() {
    let first = answer(
        200,
        &json!({
            "servers": [{"id": "1", "name": "a", "status": "ACTIVE"}],
            "servers_links": [{"rel": "next", "href": "http://wrong-host/behind/proxy?limit=1&marker=1"}]
        }),
    );
    let last = answer(200, &json!({ "servers": [{"id": "2", "name": "b", "status": "SHUTOFF"}] }));
    let stand_in = StandIn::new([Ok(first), Ok(last)]);
    let nova = openstack_ccm_openstack_api::nova::Nova::new(stand_in.client());
    let ids: Vec<_> = nova.list_servers().await.unwrap().into_iter().map(|server| server.id).collect();
    assert_eq!(ids, ["1", "2"]);
    assert_eq!(stand_in.lines(), ["GET /v2.1/servers/detail", "GET /v2.1/servers/detail?limit=1&marker=1"]);
}

#[tokio::test]
async fn recorded_pages_of_octavia_are_read_to_the_end() {
    let mut first = exchange("full", "list load balancers: the next page");
    let last = answer(
        200,
        &json!({
            "loadbalancers": [], "loadbalancers_links": [{"rel": "previous", "href": "http://lb/v2.0/lbaas/loadbalancers?page_reverse=True"}]
        }),
    );
    first.status = 200;
    let stand_in = StandIn::new([Ok(first.answer()), Ok(last)]);
    let found = Octavia::new(stand_in.client()).list_load_balancers(&all()).await.unwrap();
    assert_eq!(found.len(), 1);
    let second = &stand_in.lines()[1];
    assert!(second.ends_with("?limit=1&sort=name&marker=5538ba8c-7cf7-4d0b-8294-fbb4ff1b4b57"), "{second}");
}

/// Octavia's link to the second page has lost the filters; without them it leads to load balancers of others.
#[tokio::test]
async fn the_second_page_is_filtered_like_the_first() {
    let first = answer(
        200,
        &json!({
            "loadbalancers": [],
            "loadbalancers_links": [{"rel": "next", "href": "http://lb/v2.0/lbaas/loadbalancers?limit=1000&marker=1"}]
        }),
    );
    let stand_in = StandIn::new([Ok(first), Ok(load_balancers())]);
    let filter = LoadBalancerFilter {
        project_id: Some("p".to_owned()),
        tags: vec!["a".to_owned()],
        ..LoadBalancerFilter::default()
    };
    Octavia::new(stand_in.client()).list_load_balancers(&filter).await.unwrap();
    let second = &stand_in.lines()[1];
    assert_eq!(second, "GET /v2.0/lbaas/loadbalancers?limit=1000&marker=1&project_id=p&tags=a");
}

/// A link that keeps one value only of what was given several times would lead to objects that lack all but one field.
#[tokio::test]
async fn the_second_page_has_the_fields_of_the_first() {
    let first = answer(
        200,
        &json!({
            "floatingips": [],
            "floatingips_links": [{"rel": "next", "href": "http://net/v2.0/floatingips?fields=created_at&limit=400&marker=1"}]
        }),
    );
    let last = answer(200, &json!({ "floatingips": [] }));
    let stand_in = StandIn::new([Ok(first), Ok(last)]);
    let neutron = Neutron::new(stand_in.client());
    let found: Vec<_> = neutron.list_floating_ips_of_project(Some("p")).await.unwrap();
    assert!(found.is_empty());
    let lines = stand_in.lines();
    let fields = |line: &str| line.split(['?', '&']).filter(|part| part.starts_with("fields=")).count();
    assert_eq!(fields(&lines[1]), fields(&lines[0]), "{lines:?}");
    assert!(lines[1].contains("limit=400&marker=1") && lines[1].contains("project_id=p"), "{lines:?}");
}

#[tokio::test]
async fn an_octavia_without_a_page_size_is_not_asked_for_a_page_that_it_refuses() {
    let whole = answer(
        200,
        &json!({
            "loadbalancers": [],
            "loadbalancers_links": [{"rel": "next", "href": "http://lb/v2.0/lbaas/loadbalancers?limit=None&marker=1"}]
        }),
    );
    let stand_in = StandIn::new([Ok(whole)]);
    Octavia::new(stand_in.client()).list_load_balancers(&all()).await.unwrap();
    assert_eq!(stand_in.lines().len(), 1);
}

#[tokio::test]
async fn a_failed_page_fails_the_list() {
    let first = answer(
        200,
        &json!({
            "networks": [], "networks_links": [{"rel": "next", "href": "http://net/v2.0/networks?marker=1"}]
        }),
    );
    let stand_in = StandIn::new([Ok(first), Ok(answer(500, &Value::Null))]);
    let error = Neutron::new(stand_in.client()).list_networks(&Default::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ServerFault);
}

#[tokio::test]
async fn a_link_that_leads_in_a_circle_is_an_error() {
    let page = answer(
        200,
        &json!({
            "networks": [], "networks_links": [{"rel": "next", "href": "http://net/v2.0/networks?marker=1"}]
        }),
    );
    let stand_in = StandIn::new([Ok(page.clone()), Ok(page.clone()), Ok(page)]);
    let error = Neutron::new(stand_in.client()).list_networks(&Default::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert_eq!(stand_in.lines().len(), 2);
}

/// An empty id would turn "delete this one" into a call on the whole collection.
#[rstest]
#[case("")]
#[case(".")]
#[case("..")]
#[tokio::test]
async fn an_id_that_changes_the_path_is_never_sent(#[case] id: &str) {
    let stand_in = StandIn::new([]);
    let error = Octavia::new(stand_in.client()).delete_load_balancer(id, true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    assert!(stand_in.requests().is_empty());
}

#[tokio::test]
async fn an_id_with_a_slash_stays_one_segment() {
    let stand_in = StandIn::new([Ok(answer(404, &Value::Null))]);
    let error = Octavia::new(stand_in.client()).get_pool("../loadbalancers/x?y#z").await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(stand_in.lines(), ["GET /v2.0/lbaas/pools/..%2Floadbalancers%2Fx%3Fy%23z"]);
}

#[tokio::test(start_paused = true)]
async fn every_exchange_is_observed_under_the_name_of_the_call() {
    let ledger = Ledger::default();
    let stand_in = StandIn::new([Err(no_connection()), Ok(load_balancers()), Ok(answer(404, &Value::Null))]);
    let octavia = Octavia::new(stand_in.client_with(RetryPolicy::default(), Arc::new(ledger.clone())));
    octavia.list_load_balancers(&all()).await.unwrap();
    octavia.delete_listener("l").await.unwrap_err();
    assert_eq!(
        ledger.entries(),
        [("loadbalancer_list", false), ("loadbalancer_list", true), ("loadbalancer_listener_delete", false),]
    );
}
