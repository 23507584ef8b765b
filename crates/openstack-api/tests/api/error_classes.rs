//! What the errors of real services mean.

use std::fmt::Write as _;

use openstack_ccm_openstack_api::octavia::Octavia;
use openstack_ccm_openstack_api::{ApiError, ConflictCause, ErrorKind, Fault};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use crate::recorded::{FILES, exchange, file};
use crate::stand_in::{StandIn, answer, answer_with, lost_answer, no_connection};

const IMMUTABLE: ErrorKind = ErrorKind::Conflict(ConflictCause::Immutable);
const STALE: ErrorKind = ErrorKind::Conflict(ConflictCause::Stale);
const OTHER: ErrorKind = ErrorKind::Conflict(ConflictCause::Other);

/// The error that a call ends with when the service answers so. Not a GET, so that nothing is sent again.
async fn error_of(answer: openstack_ccm_openstack_api::transport::Response) -> ApiError {
    let stand_in = StandIn::new([Ok(answer)]);
    Octavia::new(stand_in.client()).delete_pool("p").await.unwrap_err()
}

#[rstest]
#[case::locked_by_a_change(
    "lifecycle",
    "listener: create while the load balancer is PENDING_CREATE",
    IMMUTABLE
)]
#[case::locked_pool("lifecycle", "members: batch while PENDING_UPDATE", IMMUTABLE)]
#[case::locked_itself("lifecycle", "load balancer: update while PENDING_CREATE", IMMUTABLE)]
#[case::locked_delete("lifecycle", "load balancer: cascade delete while PENDING_CREATE", IMMUTABLE)]
#[case::locked_by_error("full", "load balancer in ERROR: update", IMMUTABLE)]
#[case::same_port("lifecycle", "listener: same port and protocol again", OTHER)]
#[case::address_in_use("variants", "load balancer: address in use", OTHER)]
#[case::neutron_quota_through_octavia("quotas", "neutron quota: no port for the VIP", ErrorKind::Quota)]
#[case::octavia_quota("quotas", "quota: load balancer refused", ErrorKind::Quota)]
#[case::octavia_quota_of_a_child("quotas", "quota: single POST refused for its members", ErrorKind::Quota)]
#[case::neutron_quota("quotas", "neutron quota: floating IP refused", ErrorKind::Quota)]
#[case::policy("identity", "octavia create without a load balancer role", ErrorKind::Policy)]
#[case::policy_of_quotas("quotas", "quota: the user may not set it", ErrorKind::Policy)]
#[case::neutron_policy("network", "floating IP: chosen address as a plain user", ErrorKind::Policy)]
#[case::unscoped("identity", "octavia with an unscoped token", ErrorKind::Policy)]
#[case::no_subnet("variants", "load balancer: unknown subnet", ErrorKind::BadRequest)]
#[case::address_outside("variants", "load balancer: address outside the subnet", ErrorKind::BadRequest)]
#[case::no_such_pool("variants", "listener: with an unknown default pool", ErrorKind::NotFound)]
#[case::bad_id("variants", "load balancer: get with a malformed id", ErrorKind::NotFound)]
#[case::bad_path("discovery", "octavia unknown path", ErrorKind::NotFound)]
#[case::wrong_method("discovery", "octavia method not allowed", ErrorKind::BadRequest)]
#[case::children("full", "load balancer in ERROR: delete without cascade", ErrorKind::BadRequest)]
#[case::port_taken("network", "floating IP: second for one port", OTHER)]
#[case::no_router(
    "network",
    "floating IP: port not reachable from the external network",
    ErrorKind::NotFound
)]
#[case::group_in_use("network", "security group: delete while in use", OTHER)]
#[case::rule_exists("network", "security group rule: the same again", OTHER)]
#[case::stale("network", "port: allowed address pairs, none", STALE)]
#[case::gone("network", "floating IP: delete again", ErrorKind::NotFound)]
#[case::no_server("compute", "server: unknown", ErrorKind::NotFound)]
#[case::revoked("identity", "octavia with a revoked token", ErrorKind::Unauthorized)]
#[tokio::test]
async fn errors_are_distinguished(#[case] file_name: &str, #[case] name: &str, #[case] expected: ErrorKind) {
    let error = error_of(exchange(file_name, name).answer()).await;
    assert_eq!(error.kind(), expected, "{error}");
}

/// All recorded errors with what is made of them: a changed classification shows as a changed line.
#[tokio::test]
async fn every_recorded_error_has_a_class_and_a_text() {
    let mut table = String::new();
    for exchange in FILES.iter().flat_map(|name| file(name)).filter(|exchange| exchange.status >= 400) {
        let error = error_of(exchange.answer()).await;
        let fault = error.fault().unwrap();
        assert!(!fault.message.is_empty(), "{}", exchange.name);
        let text: String = fault.message.lines().next().unwrap().chars().take(110).collect();
        writeln!(table, "{} {:12} | {} | {text}", exchange.status, error.kind().as_str(), exchange.name)
            .unwrap();
    }
    insta::assert_snapshot!(table);
}

/// Before Octavia 19 a refusal of Neutron is a failure of the provider. Seen on Octavia 10 and 12, which quote Neutron, and on
/// 14 and 16.
#[rstest]
#[case::address_quoted(
    "IP address 10.0.0.9 already allocated in subnet s\nNeutron server returns request_ids: ['req-1']",
    OTHER
)]
#[case::quota_quoted(
    "Quota exceeded for resources: ['port'].\nNeutron server returns request_ids: ['req-1']",
    ErrorKind::Quota
)]
#[case::no_address_left("No more IP addresses available on network n.", ErrorKind::Quota)]
#[case::outside_quoted(
    "IP address 10.9.9.9 is not a valid IP for the specified subnet.",
    ErrorKind::BadRequest
)]
#[case::conflict("ConflictException: 409", OTHER)]
#[case::bad_request("BadRequestException: 400", ErrorKind::BadRequest)]
#[case::no_subnet("subnet not found (subnet id: s).", ErrorKind::BadRequest)]
#[case::anything_else("HttpException: 503", ErrorKind::ServerFault)]
#[tokio::test]
async fn what_a_provider_reports_is_its_refusal(#[case] report: &str, #[case] expected: ErrorKind) {
    let text = format!("Provider 'amphora' reports error: {report}");
    let body = json!({"faultcode": "Server", "faultstring": text, "debuginfo": null});
    assert_eq!(error_of(answer(500, &body)).await.kind(), expected);
    let of_another = json!({"faultstring": format!("Traceback: {report}")});
    assert_eq!(error_of(answer(500, &of_another)).await.kind(), ErrorKind::ServerFault);
}

#[rstest]
#[case::html(502, json!("<html><body>Bad\n  Gateway</body></html>"), ErrorKind::Unavailable, "<html><body>Bad Gateway</body></html>")]
#[case::empty(504, Value::Null, ErrorKind::LostAnswer, "(no text)")]
#[case::list(500, json!(["odd"]), ErrorKind::ServerFault, "[\"odd\"]")]
#[case::neutron_text(400, json!({"NeutronError": "text only"}), ErrorKind::BadRequest, "text only")]
#[case::provider(501, json!({"faultcode": "Server", "faultstring": "Provider 'ovn' does not support a requested option: x"}),
    ErrorKind::BadRequest, "Provider 'ovn' does not support a requested option: x")]
#[case::nova_quota(403, json!({"forbidden": {"code": 403, "message": "Quota exceeded for cores"}}), ErrorKind::Quota, "Quota exceeded for cores")]
#[case::no_address(409, json!({"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more IP addresses available on network n."}}),
    ErrorKind::Quota, "No more IP addresses available on network n.")]
#[case::no_floating_address(400, json!({"NeutronError": {"type": "ExternalIpAddressExhausted", "message": "Unable to find any IP address on external network n."}}),
    ErrorKind::Quota, "Unable to find any IP address on external network n.")]
#[case::barbican(404, json!({"code": 404, "title": "Not Found", "description": "Secret not found."}), ErrorKind::NotFound, "Secret not found.")]
#[tokio::test]
async fn unusual_bodies_keep_their_words(
    #[case] status: u16,
    #[case] body: Value,
    #[case] kind: ErrorKind,
    #[case] text: &str,
) {
    let mut answer = answer(status, &body);
    if let Value::String(html) = body {
        answer.body = html.into();
    }
    let error = error_of(answer).await;
    assert_eq!(error.kind(), kind);
    assert_eq!(error.fault().unwrap().to_string(), text);
}

#[tokio::test]
async fn a_long_page_of_a_proxy_is_cut_short() {
    let mut answer = answer(503, &Value::Null);
    answer.body = "<p>overloaded</p> ".repeat(1000).into();
    let error = error_of(answer).await;
    assert!(error.to_string().len() < 400, "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_says_where_it_leads() {
    let error = error_of(answer_with(301, &[("location", "https://elsewhere.example/")], &Value::Null)).await;
    assert_eq!(error.kind(), ErrorKind::NoEndpoint);
    assert!(error.to_string().contains("https://elsewhere.example/"), "{error}");
}

#[tokio::test]
async fn the_error_names_call_status_text_and_request() {
    let mut answer = exchange("lifecycle", "listener: same port and protocol again").answer();
    answer.headers.insert("x-openstack-request-id", "req-1".parse().unwrap());
    let error = error_of(answer).await;
    let text = error.to_string();
    assert!(
        text.starts_with("loadbalancer_pool_delete: 409 Another Listener on this Load Balancer"),
        "{text}"
    );
    assert!(text.ends_with("(request req-1)"), "{text}");
}

#[tokio::test]
async fn a_lost_answer_is_not_an_outage() {
    let stand_in = StandIn::new([Err(lost_answer()), Err(no_connection())]);
    let octavia = Octavia::new(stand_in.client());
    assert_eq!(octavia.delete_pool("p").await.unwrap_err().kind(), ErrorKind::LostAnswer);
    assert_eq!(octavia.delete_pool("p").await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn an_answer_that_is_not_what_was_asked_for_is_no_empty_list() {
    for body in [json!({}), json!({"pools": [{"id": 5}]}), json!([]), Value::Null] {
        let stand_in = StandIn::json(200, &body);
        let error = Octavia::new(stand_in.client()).list_pools(&Default::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode, "{body}: {error}");
    }
}

proptest! {
    /// Whatever a proxy, a broken service or a stranger sends: it is read, kept short, and has a class.
    #[test]
    fn any_body_gives_a_short_text(body in prop::collection::vec(any::<u8>(), 0..2000)) {
        let fault = Fault::from_body(&body);
        prop_assert!(fault.to_string().chars().count() <= 301);
    }
}
