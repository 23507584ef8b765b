//! Each rule turns red on a trace that breaks it, and stays green on the same trace as it should be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use http::{Method, StatusCode};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::rules::{breaches, names};
use super::{Answer, Shown};
use crate::support::line::Asked;
use crate::support::reconciliation::Reconciliation;
use crate::support::{Call, Side};

const LB: &str = "10000000-0000-4000-8000-000000000001";

/// A trace, call by call, all of one Service.
struct Written {
    started: Instant,
    calls: Vec<Call>,
    /// When each reconciliation began, which is its number.
    runs: BTreeMap<usize, usize>,
}

impl Written {
    fn new() -> Self {
        Self { started: Instant::now(), calls: Vec::new(), runs: BTreeMap::new() }.polled()
    }

    /// A call that is answered before the next one. `run` is absent for the poller's.
    fn call(mut self, run: Option<usize>, method: Method, path: &str, body: Option<Value>) -> Self {
        let begun = self.calls.len() * 2 + 1;
        let number = run.map(|run| *self.runs.entry(run).or_insert(begun));
        let octavia = path.starts_with("/v2.0/lbaas/");
        let shows = path.contains("/loadbalancers") && method == Method::GET;
        let shown = shows.then(|| Shown { id: LB.to_owned(), is_pending: false });
        let write = method != Method::GET;
        let name = if octavia { format!("{method} {path}") } else { "PATCH services/NAME/status".to_owned() };
        self.calls.push(Call {
            side: if octavia { Side::OpenStack } else { Side::Kubernetes },
            name,
            write,
            at: self.started,
            request: write.then(|| Asked { method, path: path.to_owned(), body: body.unwrap_or_default() }),
            path: path.to_owned(),
            load_balancer: (octavia && write).then(|| LB.to_owned()),
            names_members: false,
            is_published: false,
            reconciled: run.map(|_| "default/web".to_owned()),
            run: number.map(|number| Reconciliation { service: "default/web".to_owned(), number }),
            program: 0,
            begun,
            answer: Some(Answer {
                at: begun + 1,
                status: Some(StatusCode::OK),
                shown: shown.into_iter().collect(),
            }),
        });
        self
    }

    fn step(self, run: usize, method: Method, path: &str) -> Self {
        self.call(Some(run), method, &format!("/v2.0/lbaas/{path}"), None)
    }

    fn read(self, run: usize, path: &str) -> Self {
        self.step(run, Method::GET, path)
    }

    /// A batch that names members which are there.
    fn batch(self, run: usize) -> Self {
        let mut trace = self.step(run, Method::PUT, "pools/p/members");
        trace.calls.last_mut().unwrap().names_members = true;
        trace
    }

    /// The last call is answered with this instead.
    fn but(mut self, status: StatusCode) -> Self {
        let call = self.calls.last_mut().unwrap();
        let at = call.begun + 1;
        call.answer = Some(Answer { at, status: Some(status), shown: Vec::new() });
        self
    }

    /// A read that the cloud answers with 504.
    fn failed_read(self, run: usize, path: &str) -> Self {
        self.read(run, path).but(StatusCode::GATEWAY_TIMEOUT)
    }

    fn polled(self) -> Self {
        self.call(None, Method::GET, &format!("/v2.0/lbaas/loadbalancers/{LB}"), None)
    }

    fn statuses(self, run: usize) -> Self {
        self.read(run, &format!("loadbalancers/{LB}/status"))
    }

    fn published(self, run: usize) -> Self {
        let body = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        self.call(Some(run), Method::PATCH, "/api/v1/namespaces/default/services/web/status", Some(body))
    }

    /// In place of addresses that another program published.
    fn published_again(self, run: usize) -> Self {
        let mut trace = self.published(run);
        trace.calls.last_mut().unwrap().is_published = true;
        trace
    }
}

fn listed(trace: Written, run: usize) -> Written {
    trace.read(run, "loadbalancers?name=kube_service_c1_default_web")
}

#[rstest]
#[case::a_step(
    "owner_is_shown_before_a_step",
    Written::new().statuses(1).polled().step(2, Method::PUT, "pools/p"),
    Written::new().statuses(1).step(2, Method::PUT, "pools/p")
)]
#[case::a_step_after_a_failed_read(
    "owner_is_shown_before_a_step",
    Written::new().statuses(1).failed_read(1, "pools").step(2, Method::PUT, "pools/p"),
    Written::new().step(1, Method::PUT, "listeners/l").polled().failed_read(1, "pools").step(2, Method::PUT, "pools/p")
)]
#[case::a_step_after_a_turn_of_another_service(
    "owner_is_shown_before_a_step",
    listed(Written::new(), 1).step(2, Method::PUT, "pools/p"),
    listed(Written::new(), 1).read(1, "listeners").step(2, Method::PUT, "pools/p")
)]
#[case::a_step_beside_a_list_that_others_share(
    "owner_is_shown_before_a_step",
    Written::new().statuses(1).polled().read(2, "pools").read(1, "pools").step(2, Method::PUT, "pools/p"),
    Written::new().statuses(1).read(2, "pools").read(1, "pools").step(2, Method::PUT, "pools/p")
)]
#[case::two_steps(
    "one_step_at_a_time",
    Written::new().step(1, Method::PUT, "pools/p").polled().step(2, Method::PUT, "listeners/l"),
    Written::new().step(1, Method::PUT, "pools/p").step(2, Method::PUT, "listeners/l")
)]
#[case::a_look(
    "no_look_while_a_step_holds_the_lock",
    Written::new().step(1, Method::PUT, "pools/p").polled().statuses(2),
    Written::new().step(1, Method::PUT, "pools/p").statuses(2)
)]
#[case::a_creation(
    "creation_after_a_look_for_its_name",
    listed(listed(Written::new(), 1).step(1, Method::POST, "loadbalancers"), 2).step(2, Method::POST, "loadbalancers"),
    listed(Written::new(), 1).step(1, Method::POST, "loadbalancers").polled().step(2, Method::POST, "loadbalancers")
)]
#[case::a_creation_that_is_sent_again(
    "creation_after_a_look_for_its_name",
    listed(Written::new(), 1).step(1, Method::POST, "loadbalancers").but(StatusCode::TOO_MANY_REQUESTS)
        .step(1, Method::POST, "loadbalancers"),
    listed(Written::new(), 1).step(1, Method::POST, "loadbalancers").but(StatusCode::SERVICE_UNAVAILABLE)
        .step(1, Method::POST, "loadbalancers")
)]
#[case::a_removal(
    "removal_after_a_look",
    Written::new().step(1, Method::PUT, "listeners/l").polled().statuses(2).step(2, Method::DELETE, "pools/p"),
    Written::new().statuses(1).step(1, Method::PUT, "listeners/l").polled().step(2, Method::DELETE, "pools/p")
)]
#[case::a_batch(
    "members_are_listed_before_they_are_named",
    Written::new().step(1, Method::PUT, "pools/p/members").polled().read(2, "pools/p/members").batch(2),
    Written::new().read(1, "pools/p/members").polled().batch(2)
)]
#[case::an_address(
    "published_after_a_look",
    Written::new().step(1, Method::PUT, "pools/p").polled().statuses(2).published(2),
    Written::new().statuses(1).step(1, Method::PUT, "pools/p").polled().published(2)
)]
#[case::an_address_that_another_program_published(
    "published_after_a_look",
    Written::new().statuses(1).step(1, Method::PUT, "pools/p").polled().published_again(2),
    Written::new().statuses(1).step(1, Method::PUT, "pools/p").polled().published(2)
)]
fn a_rule_tells_right_from_wrong(#[case] rule: &str, #[case] right: Written, #[case] wrong: Written) {
    assert_eq!(breaches(&right.calls), [""; 0]);
    let breaches = breaches(&wrong.calls);
    assert!(breaches.iter().any(|breach| breach.starts_with(rule)), "{breaches:#?}");
}

/// The page that states the protocol names the rules that are held, and no others.
#[test]
fn the_protocol_names_all_rules() {
    let page = "../provider-openstack/src/load_balancer/reconcile/serve/mod.rs";
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let (_, table) = page.split_once("//! | rule | what holds |\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with("//! |"));
    let named: BTreeSet<&str> = rows.filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(named, names().collect::<BTreeSet<_>>());
}
