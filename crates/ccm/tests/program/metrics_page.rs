//! The page of metrics: all that a program shows after it has done everything once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_core::cloud::CallObserver as _;
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_manager::args::feature_gates::FeatureGates;
use openstack_ccm_manager::cloud_metrics::CallMetrics;
use openstack_ccm_manager::kubernetes::RequestMetrics;
use openstack_ccm_manager::process_metrics;
use openstack_ccm_provider_openstack::cloud::ENTRY;
use openstack_ccm_runtime::election::{ElectionMetrics, ElectionOptions, Elector, LeaseAnnotations};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::occm;
use crate::page::{GENERATED, cell};
use crate::released::since;
use crate::support::{World, service};

const INTRODUCTION: &str = "# Metrics

The metrics are served at `https://<pod>:10258/metrics` in the format of OpenMetrics, which Prometheus reads. Readers need the right to `get` the
non-resource URL `/metrics`, which the API server checks. `--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics`
opens the page to everybody who can reach the port.

Names are those of the framework (`service_controller_*`, `workqueue_*`, `rest_client_*`, `leader_election_*`,
`running_managed_controllers`, `kubernetes_*`), of the Go implementation (`openstack_api_*`,
`cloudprovider_openstack_*`), of every Prometheus client library (`process_*`), and our own (`openstack_ccm_*`). Every
label has a small set of values: no label names a Service or a cloud object, only `openstack_ccm_node_ip_mode` names nodes, and only
`openstack_ccm_retained_load_balancers` names namespaces. The column *OCCM* says which of them the Go implementation has.
";

/// What is known of one metric.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// The page, from a text in the OpenMetrics format.
fn markdown(text: &str) -> String {
    let mut page = format!(
        "{GENERATED}\n\n{INTRODUCTION}\n| Name | Type | Labels | OCCM | Meaning |\n| --- | --- | --- | --- | --- |\n"
    );
    for (name, family) in families(text) {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let suffix = if family.kind == "counter" { "_total" } else { "" };
        // Help texts of the format end in a full stop, added by the encoder.
        let help = cell(family.help.trim_end_matches('.'));
        let (name, kind, labels) = (format!("{name}{suffix}"), &family.kind, labels.join(", "));
        let occm = occm::column("metrics", &name).unwrap_or_default();
        page.push_str(&format!("| `{name}` | {kind} | {labels} | {occm} | {}{help} |\n", since(&name)));
    }
    page
}

fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::<String, Family>::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name.to_owned()).or_default().help = help.to_owned();
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((name, rest)) = line.split_once('{') {
            let known = ["", "_total", "_bucket", "_sum", "_count"].iter().find_map(|suffix| {
                name.strip_suffix(suffix).filter(|name| families.contains_key(*name)).map(str::to_owned)
            });
            if let Some(family) = known.and_then(|name| families.get_mut(&name)) {
                family.labels.extend(labels(rest).filter(|label| label != "le"));
            }
        }
    }
    families
}

/// Names in `a="x",b="y"} 1`; values of ours hold neither quotes nor `=`.
fn labels(text: &str) -> impl Iterator<Item = String> {
    let inside = text.rsplit_once('}').map_or(text, |(inside, _)| inside);
    inside.split("\",").filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned())
}

/// A program with all controllers that has served a Service, failed, left a load balancer behind, and met a change of nodes.
async fn busy() -> World {
    let mut world = World::new(ApiVersion::V1_36);
    let router = world.cloud.seed().router_id.clone();
    world.settings.cloud_conf = format!("drift-check-interval=5m\n[Route]\nrouter-id={router}\n");
    let ranges = ClusterRanges::new(vec!["10.244.0.0/16".parse().unwrap()]);
    world.settings.route = Some(RouteControllerOptions::new(ranges));
    world.settings.node = Some(NodeControllerOptions::default());
    world.settings.node_lifecycle = Some(NodeLifecycleOptions::default());
    world.start().await;
    world.create(&service("web", json!({})));
    world.until_published("web").await;
    let retained =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/reclaim-policy": "retain"}}});
    world.create(&service("retained", retained));
    world.until_published("retained").await;
    world.release("retained").await;
    world.add_node("node-9", "v1.36.0");
    // Long enough for a round of each controller.
    tokio::time::sleep(Duration::from_secs(600)).await;
    world
}

/// What the process shows beside its controllers.
fn add_the_process(world: &World) -> ElectionMetrics {
    let mut registry = world.registry.lock().unwrap();
    process_metrics::register(&mut registry, &world.health, &FeatureGates::default());
    let calls = CallMetrics::register(&mut registry, ENTRY.call_metric_prefix);
    calls.observe("router_get", Duration::ZERO, false);
    let requests = RequestMetrics::register(&mut registry);
    requests.waited(&http::Method::GET, "host", Duration::ZERO);
    requests.ended(&http::Method::GET, "host", Some(200), Duration::ZERO);
    ElectionMetrics::register(&mut registry)
}

async fn lead_once(world: &World, elections: ElectionMetrics) {
    let options = ElectionOptions {
        namespace: "kube-system".to_owned(),
        name: "cloud-controller-manager".to_owned(),
        identity: "me".to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        annotations: LeaseAnnotations::default(),
        component: "cloud-controller-manager",
        retry_period: Duration::from_secs(2),
    };
    let client = kube::Client::new(world.kube.service(), "default");
    let elector = Elector::new(client, options).counted_in(elections);
    elector.lead(CancellationToken::new(), Duration::ZERO, |_| async {}).await;
}

/// Defect: 67, better: every call is measured where it is sent, and the page of metrics is written from what the program shows.
#[tokio::test(start_paused = true)]
async fn the_page_of_metrics_is_up_to_date() {
    let world = busy().await;
    lead_once(&world, add_the_process(&world)).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &world.registry.lock().unwrap()).unwrap();
    let page = markdown(&text);
    for name in ["openstack_api_request_errors_total", "workqueue_depth", "leader_election_master_status"] {
        assert!(page.contains(name), "{name} in {page}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/reference/metrics.md is out of date; regenerate it with `make docs`:\n{page}"
    );
}

#[test]
fn types_labels_and_meaning_are_read() {
    let text = "# HELP new_calls Calls.\n# TYPE new_calls counter\nnew_calls_total{request=\"a\",code=\"b\"} 1\n\
                # HELP workqueue_depth Length.\n# TYPE workqueue_depth histogram\nworkqueue_depth_bucket{le=\"1\",name=\"a\"} 1\n# EOF\n";
    let page = markdown(text);
    assert!(page.contains("| `new_calls_total` | counter | `code`, `request` |  | Since "), "{page}");
    assert!(page.contains("| `workqueue_depth` | histogram | `name` | yes | Length |"), "{page}");
}
