//! The cloud answers whatever it likes, and the whole decision is made over it: settings, look, plan, changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::node::{AddressKind, Node, NodeAddress};
use openstack_ccm_core::provider::{LoadBalancers as _, Wake};
use openstack_ccm_core::service::{Goal, Intent, Service, ServiceKey};
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_api::transport::{FnTransport, Request, Response};
use openstack_ccm_provider_openstack::config::Config;
use openstack_ccm_provider_openstack::load_balancer::OpenStackLoadBalancers;

use super::entries::service;

/// Reconciliations of the Service that is served, and as many over the one that goes.
const RECONCILIATIONS: usize = 4;
/// More calls than so many in all of them are a loop: a list may have a thousand pages, and refuses to go round in a circle.
const MOST_CALLS: usize = 50_000;

/// Answers of a cloud, a line each: `200 GET loadbalancers {"loadbalancers": []}` is the answer to every call whose method
/// and path begin so; of several lines that do, the longest path counts. Other calls get 404. `ID` in a path stands for
/// any id.
pub fn answers(input: &[u8]) {
    let text = String::from_utf8_lossy(input).into_owned();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(decide(&Arc::new(Cloud::read(&text))));
}

async fn decide(cloud: &Arc<Cloud>) {
    let answering = Arc::clone(cloud);
    let transport = FnTransport::new(move |request| {
        let answer = answering.answer(&request);
        async move { Ok(answer) }
    });
    let openstack = OpenStack::new(Client::over(transport));
    let mut config = Config::default();
    config.load_balancer.manage_security_groups = true;
    let identity = ClusterIdentity { name: "c1".into(), uid: "c1c1c1c1-0000-4000-8000-000000000001".into() };
    let (provider, _poller) =
        OpenStackLoadBalancers::new(openstack, Arc::new(config), identity, Arc::new(Nobody));
    let mut service = service();
    service.annotations.extend(cloud.annotations.iter().cloned());
    for _ in 0..RECONCILIATIONS {
        reconcile(
            &provider,
            Goal::Serve(Intent { service: service.clone(), nodes: nodes(), left_out: Arc::default() }),
            &mut service,
        )
        .await;
    }
    provider.expect_drift(&service.key);
    for _ in 0..RECONCILIATIONS {
        reconcile(&provider, Goal::Release(service.clone()), &mut service).await;
    }
}

/// One reconciliation, and a pause that is longer than any that is asked for.
async fn reconcile(provider: &OpenStackLoadBalancers, goal: Goal, service: &mut Service) {
    let reconciliation = provider.reconcile(&goal).await;
    for (key, value) in reconciliation.annotations {
        match value {
            Some(value) => drop(service.annotations.insert(key, value)),
            None => drop(service.annotations.remove(&key)),
        }
    }
    if let Err(failure) = reconciliation.result {
        assert!(!failure.to_string().is_empty(), "a failure without a word");
    }
    tokio::time::sleep(Duration::from_secs(700)).await;
}

/// What a cloud answers.
struct Cloud {
    /// Status, method and path, body.
    lines: Vec<(StatusCode, String, String)>,
    /// Lines `annotation KEY VALUE`.
    annotations: Vec<(String, String)>,
    calls: AtomicUsize,
}

impl Cloud {
    fn read(text: &str) -> Self {
        let (mut lines, mut annotations) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let mut words = line.splitn(4, ' ');
            let (Some(first), Some(second), Some(third)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if first == "annotation" {
                annotations.push((second.to_owned(), third.to_owned()));
            } else if let Ok(status) = StatusCode::from_bytes(first.as_bytes()) {
                let body = words.next().unwrap_or_default().to_owned();
                lines.push((status, format!("{second} {third}"), body));
            }
        }
        Self { lines, annotations, calls: AtomicUsize::new(0) }
    }

    fn answer(&self, request: &Request) -> Response {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(calls < MOST_CALLS, "no end of calls: {} {}", request.method, request.path_and_query());
        let name = name(request);
        let fitting = self.lines.iter().filter(|(_, begin, _)| name.starts_with(begin.as_str()));
        let found = fitting.max_by_key(|(_, begin, _)| begin.len());
        let (status, body) =
            found.map_or((StatusCode::NOT_FOUND, ""), |(status, _, body)| (*status, body.as_str()));
        Response { status, headers: HeaderMap::new(), body: body.to_owned().into() }
    }
}

/// `GET loadbalancers/ID?name=x`: without the version, with ids as `ID`.
fn name(request: &Request) -> String {
    let target = request.path_and_query();
    let target = target.trim_start_matches("/v2.0/lbaas/").trim_start_matches("/v2.0/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let segments: Vec<&str> =
        path.split('/').map(|segment| if segment.len() == 36 { "ID" } else { segment }).collect();
    format!("{} {}?{query}", request.method, segments.join("/"))
}

fn nodes() -> Arc<[Arc<Node>]> {
    let node = |number: u8| {
        Arc::new(Node {
            name: format!("node-{number}"),
            provider_id: Some(format!("openstack:///{number:08}-0000-4000-8000-000000000000")),
            addresses: vec![NodeAddress {
                kind: AddressKind::InternalIp,
                address: format!("198.18.0.{}", 49 + number),
            }],
            labels: Default::default(),
            backend: true,
        })
    };
    Arc::from([node(1), node(2)])
}

/// Nobody waits.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _key: &ServiceKey) {}
}
