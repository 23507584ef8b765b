//! A program over a cloud that has nothing of OpenStack: its provider is what is in this file, and one line of the binary.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use openstack_ccm_core::advertise::{ClusterAccess, Needs, Path, Preference, SettingNames};
use openstack_ccm_core::cloud::{
    Cloud, ClusterIdentity, Entry, LoadBalancing, Loading, LoginRequest, Part, Provider,
};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::address::{AddressType, InstanceAddress};
use openstack_ccm_core::instance::{Description, Instance, Instances, NodeIdentity, Presence};
use openstack_ccm_core::permit::Gate;
use openstack_ccm_core::provider::{
    Gauge, LoadBalancers, OrphanCandidate, Outcome, ProviderNames, Ready, Reconciliation, Wake,
};
use openstack_ccm_core::route::plan::Changes;
use openstack_ccm_core::route::{Applied, ListedRoute, RouteTable, Routes, Support};
use openstack_ccm_core::service::{Goal, ServiceKey};
use openstack_ccm_manager::args::RunArgs;
use openstack_ccm_manager::run::run;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::stage::{Stage, until};

/// The one line.
const PROVIDERS: &[Entry] =
    &[Entry { name: "example", call_metric_prefix: "example_api", load: |files| load(files) }];

fn load(files: &[PathBuf]) -> Loading {
    let text = std::fs::read_to_string(&files[0])?;
    let address = text.trim().strip_prefix("address = ").ok_or("example.toml: address is missing")?;
    Ok(Box::new(Example { address: address.parse()? }))
}

/// A cloud with one address for load balancers, machines with the names of nodes, and a table of routes.
struct Example {
    address: IpAddr,
}

#[async_trait]
impl Provider for Example {
    fn left_out(&self, _part: Part) -> Option<String> {
        None
    }

    async fn log_in(&self, login: LoginRequest) -> Result<Arc<dyn Cloud>, Failure> {
        login.observer.observe("log_in", std::time::Duration::ZERO, true);
        Ok(Arc::new(ExampleCloud(Arc::new(Parts { address: self.address, routes: Mutex::default() }))))
    }
}

struct ExampleCloud(Arc<Parts>);

struct Parts {
    address: IpAddr,
    routes: Mutex<Vec<ListedRoute>>,
}

impl Cloud for ExampleCloud {
    fn lacks(&self, _part: Part) -> Option<String> {
        None
    }

    fn remedy(&self) -> String {
        String::new()
    }

    fn load_balancers(&self, _cluster: ClusterIdentity, _gate: Gate, _wake: Arc<dyn Wake>) -> LoadBalancing {
        LoadBalancing {
            load_balancers: Arc::clone(&self.0) as _,
            background: Box::pin(std::future::pending()),
            node_selector_annotation: None,
            node_selector: None,
        }
    }

    fn instances(&self) -> Option<Arc<dyn Instances>> {
        Some(Arc::clone(&self.0) as _)
    }

    fn routes(&self, _gate: Gate) -> Arc<dyn Routes> {
        Arc::clone(&self.0) as _
    }
}

#[async_trait]
impl LoadBalancers for Parts {
    fn names(&self) -> ProviderNames {
        ProviderNames {
            event_source: "cloud-provider-example",
            metric_prefix: "cloudprovider_example",
            delete_command: "examplectl delete",
            settings: SettingNames {
                ip_mode_annotation: "example.org/ip-mode",
                hostname_annotation: "example.org/hostname",
                cluster_sources_annotation: None,
                ip_mode_setting: "ip-mode in example.toml",
                hostname_suffix_setting: "hostname-suffix in example.toml",
            },
        }
    }

    async fn reconcile(&self, goal: &Goal) -> Reconciliation {
        let outcome = match goal {
            Goal::Serve(_) => Outcome::Ready(Ready {
                addresses: vec![self.address],
                path: Path::ThroughLoadBalancer(Needs::ProxyProtocol),
                preference: Preference::default(),
                cluster_access: ClusterAccess::default(),
                changed: false,
                done: Vec::new(),
                unfinished: None,
                requeue_after: None,
            }),
            Goal::Release(_) => Outcome::Released,
        };
        Reconciliation {
            result: Ok(outcome),
            notices: Vec::new(),
            annotations: BTreeMap::new(),
            foreign_addresses: Vec::new(),
        }
    }

    fn expect_drift(&self, _service: &ServiceKey) {}

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge { name: "example_addresses", help: "Addresses", value: 1 }]
    }

    async fn orphan_candidates(&self) -> Result<Vec<OrphanCandidate>, Failure> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Instances for Parts {
    async fn presence(&self, nodes: &[NodeIdentity]) -> Result<Vec<Presence>, Failure> {
        Ok(nodes.iter().map(|_| Presence::Exists).collect())
    }

    async fn describe(&self, nodes: &[NodeIdentity]) -> Result<Vec<Description>, Failure> {
        let machine = |node: &NodeIdentity| Instance {
            provider_id: Some(format!("example:///{}", node.name)),
            instance_type: Some("small".to_owned()),
            addresses: vec![InstanceAddress::new(AddressType::InternalIp, "10.0.0.77")],
            ..Instance::default()
        };
        Ok(nodes.iter().map(|node| Description::Found(Box::new(machine(node)))).collect())
    }
}

#[async_trait]
impl Routes for Parts {
    async fn support(&self) -> Result<Support, Failure> {
        Ok(Support::Full)
    }

    async fn list(&self) -> Result<RouteTable, Failure> {
        Ok(RouteTable { routes: self.routes.lock().unwrap().clone(), revision: None })
    }

    async fn apply(&self, _table: &RouteTable, changes: &Changes) -> Applied {
        let added = changes.add.iter().map(|route| ListedRoute {
            destination: route.destination.to_string(),
            next_hop: route.next_hop.to_string(),
        });
        self.routes.lock().unwrap().extend(added);
        Applied::default()
    }
}

fn arguments(stage: &Stage, provider: &str) -> RunArgs {
    let file = |name: &str| stage.file(name).display().to_string();
    RunArgs::try_parse([
        "openstack-ccm".to_owned(),
        format!("--cloud-provider={provider}"),
        format!("--cloud-config={}", file("example.toml")),
        format!("--kubeconfig={}", file("kubeconfig")),
        "--cluster-cidr=10.244.0.0/16".to_owned(),
        "--secure-port=0".to_owned(),
    ])
    .unwrap()
}

/// A node as a kubelet with `--cloud-provider=external` registers it.
fn new_node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "spec": {
            "podCIDR": "10.244.7.0/24", "podCIDRs": ["10.244.7.0/24"],
            "taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}],
        },
        "status": {"nodeInfo": {"kubeletVersion": "v1.36.0", "operatingSystem": "linux"}},
    })
}

#[tokio::test]
async fn the_whole_program_runs_over_a_cloud_that_is_one_line_in_the_binary() {
    let stage = Stage::without_cloud().await;
    std::fs::write(stage.file("example.toml"), "address = 203.0.113.7\n").unwrap();
    stage.kube.create(&new_node("new")).unwrap();
    stage.create_service("web");
    let _program = AbortOnDropHandle::new(tokio::spawn(run(arguments(&stage, "example"), PROVIDERS)));

    stage.until_published("web").await;
    let service = stage.kube.get("services", "default", "web").unwrap();
    assert_eq!(
        service["status"]["loadBalancer"]["ingress"][0]["ip"],
        Ipv4Addr::new(203, 0, 113, 7).to_string()
    );
    let node = || stage.kube.get("nodes", "", "new").unwrap();
    until("the node is initialised", || node()["spec"]["providerID"] == "example:///new").await;
    until("the node is reachable for pods", || {
        let conditions = node()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "NetworkUnavailable" && one["status"] == "False")
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_the_binary_does_not_have_is_refused_with_the_names_of_those_that_it_has() {
    let stage = Stage::without_cloud().await;
    let error = run(arguments(&stage, "openstack"), PROVIDERS).await.unwrap_err().to_string();
    assert!(
        error.contains(
            "--cloud-provider=openstack: this program supports only example; set --cloud-provider=example"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_provider_says_what_is_wrong_with_its_configuration() {
    let stage = Stage::without_cloud().await;
    std::fs::write(stage.file("example.toml"), "").unwrap();
    let error = run(arguments(&stage, "example"), PROVIDERS).await.unwrap_err().to_string();
    assert_eq!(error, "example.toml: address is missing");
}
