//! A cluster, a cloud, and the controller between them, on a paused clock.

use std::sync::Arc;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use openstack_ccm_controllers::nodes::NodeInformer;
use openstack_ccm_controllers::service::{ServiceController, ServiceControllerOptions, ServiceQueue};
use openstack_ccm_controllers::{ClusterClient, KnownCluster, WorkQueues};
use openstack_ccm_core::permit::{Fence, Gate};
use openstack_ccm_core::provider::Wake;
use openstack_ccm_kube_sim::{ApiVersion, Sim, merge_patch};
use prometheus_client::registry::Registry;
use serde_json::{Value, from_value, json};

use crate::base::{self, Running, until};
use crate::cloud::Cloud;
use crate::wire::Wire;

pub(crate) struct World {
    pub(crate) kube: Sim,
    /// Requests of a user, past the wire.
    pub(crate) user: Client,
    pub(crate) wire: Arc<Wire>,
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) options: ServiceControllerOptions,
    pub(crate) registry: Registry,
    running: Option<(Running, Arc<dyn Wake>)>,
}

impl World {
    /// A cluster of this version with two nodes, and no controller yet.
    pub(crate) fn new(version: ApiVersion) -> Self {
        let kube = Sim::new(version);
        let user = base::client(&kube);
        let wire = Wire::new();
        let cloud = Cloud::new(Arc::clone(&wire));
        // The check for drift has its own test.
        let options = ServiceControllerOptions { resync: None, ..ServiceControllerOptions::default() };
        let world = Self { kube, user, wire, cloud, options, registry: Registry::default(), running: None };
        world.create_node("n1", "v1.36.0");
        world.create_node("n2", "v1.36.0");
        world
    }

    /// The same, with the controller at work.
    pub(crate) async fn started(version: ApiVersion) -> Self {
        let mut world = Self::new(version);
        world.start().await;
        world
    }

    /// Starts the controller and waits until it knows the cluster.
    pub(crate) async fn start(&mut self) {
        let queue = ServiceQueue::new();
        let waker = queue.waker();
        self.registry = Registry::default();
        let queues = WorkQueues::registered(&mut self.registry);
        let client = || self.wire.client(base::client(&self.kube));
        let identity = self.kube.get("namespaces", "", "kube-system").unwrap();
        let uid = identity["metadata"]["uid"].as_str().unwrap().to_owned();
        let cluster = Arc::new(KnownCluster::new(client(), uid));
        let gate = Gate::new(Arc::clone(&cluster) as _, Fence::always());
        let of_cluster =
            || ClusterClient { client: client(), cluster: Arc::clone(&cluster), gate: gate.clone() };
        let mut nodes = NodeInformer::new(of_cluster());
        let controller = ServiceController::new(
            of_cluster(),
            Arc::clone(&self.cloud) as _,
            queue,
            self.options.clone(),
            &mut nodes,
            &mut self.registry,
            &queues,
        );
        let mut listed = Box::pin(controller.listed());
        assert!((&mut listed).now_or_never().is_none());
        let running = Running::start_beside(nodes.run(), |shutdown| controller.run(shutdown));
        self.running = Some((running, waker));
        listed.await;
    }

    /// Stops the controller as SIGTERM does.
    pub(crate) async fn stop(&mut self) {
        let (running, _) = self.running.take().expect("not running");
        running.stop().await;
    }

    /// Ends the controller as SIGKILL does.
    pub(crate) async fn kill(&mut self) {
        let (running, _) = self.running.take().expect("not running");
        running.kill().await;
    }

    pub(crate) fn wake(&self, name: &str) {
        let key = openstack_ccm_core::service::ServiceKey::new("default", name);
        self.running.as_ref().expect("not running").1.wake(&key);
    }

    pub(crate) fn services(&self) -> Api<Service> {
        Api::namespaced(self.user.clone(), "default")
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.user.clone())
    }

    /// Creates a Service of type LoadBalancer with one TCP port.
    pub(crate) async fn create(&self, name: &str) -> Service {
        self.create_with(name, json!({})).await
    }

    pub(crate) async fn create_with(&self, name: &str, change: Value) -> Service {
        let mut service = base::service(name, 80);
        merge_patch(&mut service, &change);
        self.services().create(&PostParams::default(), &from_value(service).unwrap()).await.unwrap()
    }

    /// Creates a Service and waits until it is published; what it took is forgotten.
    pub(crate) async fn serve(&self, name: &str) {
        self.create_published(name).await;
        settle().await;
        self.wire.journal();
    }

    /// Creates a Service and waits until it is published.
    pub(crate) async fn create_published(&self, name: &str) {
        self.create(name).await;
        self.until_published(name).await;
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Service> {
        self.services().get_opt(name).await.unwrap()
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.services().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch_status(&self, name: &str, patch: Value) {
        let parameters =
            PatchParams { field_manager: Some("another-controller".to_owned()), ..PatchParams::default() };
        self.services().patch_status(name, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.services().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn until_published(&self, name: &str) {
        until("the service is published", async || !self.ingress(name).await.is_empty()).await;
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        until("the service is gone", async || self.get(name).await.is_none()).await;
    }

    /// The published entries in short: `203.0.113.10(VIP)`.
    pub(crate) async fn ingress(&self, name: &str) -> Vec<String> {
        let service = self.get(name).await;
        let status = service.and_then(|service| service.status).and_then(|status| status.load_balancer);
        status
            .and_then(|status| status.ingress)
            .into_iter()
            .flatten()
            .map(|entry| match (entry.ip, entry.ip_mode) {
                (Some(ip), Some(mode)) => format!("{ip}({mode})"),
                (Some(ip), None) => ip,
                (None, _) => entry.hostname.unwrap_or_default(),
            })
            .collect()
    }

    pub(crate) async fn until_ingress(&self, name: &str, expected: &str) {
        let what = format!("{name} is published as {expected}");
        until(&what, async || self.ingress(name).await == [expected]).await;
    }

    pub(crate) fn create_node(&self, name: &str, kubelet: &str) {
        let mut node = base::node(name, "10.0.0.11", kubelet);
        node["spec"]["providerID"] = json!(format!("example:///{name}"));
        self.kube.create(&node).unwrap();
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) {
        self.nodes().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch_node_status(&self, name: &str, patch: Value) {
        self.nodes().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Events about a Service: `component type reason: message (count)`, oldest first.
    pub(crate) fn events(&self, name: &str) -> Vec<String> {
        let text = |event: Value| {
            let component = event["source"]["component"].as_str().unwrap_or_default();
            format!(
                "{component} {} ({})",
                base::event_text(&event),
                event["count"].as_i64().unwrap_or_default()
            )
        };
        base::events(&self.kube, name).into_iter().map(text).collect()
    }

    /// The value of a metric, by the start of its line.
    pub(crate) fn metric(&self, start: &str) -> String {
        base::metric(&self.registry, start)
    }
}

/// Lets everything that is due happen, on the paused clock.
pub(crate) async fn settle() {
    base::pass(5).await;
}

pub(crate) fn finalizers(service: &Service) -> Vec<String> {
    service.metadata.finalizers.clone().unwrap_or_default()
}

pub(crate) fn annotation(service: &Service, key: &str) -> Option<String> {
    service.metadata.annotations.as_ref()?.get(key).cloned()
}
