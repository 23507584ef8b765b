//! A cluster, an owner of its load balancers, and the overlay.

use k8s_openapi::api::core::v1::Service;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use openstack_ccm_kube_sim::{ApiVersion, RequestRecord, Sim, merge_patch};
use openstack_ccm_overlay::controller::{Overlay, OverlayOptions};
use openstack_ccm_overlay::rules::{Rules, clouds};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::base::{self, Running};

/// By which a Service asks its cloud for the PROXY protocol.
pub(crate) const PROXY_PROTOCOL: &str = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";
pub(crate) const MODE: &str = "ip-mode-overlay/mode";

pub(crate) struct World {
    pub(crate) kube: Sim,
    pub(crate) user: Client,
    pub(crate) options: OverlayOptions,
    pub(crate) registry: Registry,
    running: Option<Running>,
}

impl World {
    /// A cluster with two nodes, and no overlay yet.
    pub(crate) fn new(version: ApiVersion) -> Self {
        let kube = Sim::new(version);
        let user = base::client(&kube);
        let rules = Rules { clouds: clouds(&[]).unwrap(), ..Rules::default() };
        let options = OverlayOptions { rules, ..OverlayOptions::default() };
        let world = Self { kube, user, options, registry: Registry::default(), running: None };
        world.create_node("n1", "10.0.0.11", "v1.36.0");
        world.create_node("n2", "10.0.0.12", "v1.36.0");
        world
    }

    /// The same, with the overlay at work.
    pub(crate) async fn started(version: ApiVersion) -> Self {
        let mut world = Self::new(version);
        world.start().await;
        world
    }

    pub(crate) async fn start(&mut self) {
        let mut listed = self.spawn();
        listed.wait_for(|listed| *listed).await.unwrap();
        settle().await;
    }

    /// Starts without waiting, for tests that kill it at once.
    pub(crate) fn spawn(&mut self) -> watch::Receiver<bool> {
        self.registry = Registry::default();
        let overlay = Overlay::new(base::client(&self.kube), self.options.clone(), &mut self.registry);
        let listed = overlay.listed();
        self.running = Some(Running::start(|shutdown| overlay.run(shutdown)));
        listed
    }

    /// Stops the overlay as SIGTERM does.
    pub(crate) async fn stop(&mut self) {
        self.running.take().expect("not running").stop().await;
    }

    /// Ends the overlay as SIGKILL does.
    pub(crate) async fn kill(&mut self) {
        self.running.take().expect("not running").kill().await;
    }

    pub(crate) fn create_node(&self, name: &str, address: &str, kubelet: &str) {
        self.kube.create(&base::node(name, address, kubelet)).unwrap();
    }

    /// Creates a Service that asks for the PROXY protocol.
    pub(crate) fn create(&self, name: &str) {
        self.create_with(name, &json!({"metadata": {"annotations": {PROXY_PROTOCOL: "true"}}}));
    }

    pub(crate) fn create_with(&self, name: &str, change: &Value) {
        let mut service = base::service(name, 443);
        merge_patch(&mut service, change);
        self.kube.create(&service).unwrap();
    }

    /// The owner publishes these entries, as the framework of cloud-controller-managers does.
    pub(crate) async fn owner_publishes(&self, name: &str, ingress: Value) {
        let parameters =
            PatchParams { field_manager: Some("cloud-controller-manager".into()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
        self.services().patch_status(name, &parameters, &patch).await.unwrap();
    }

    /// Creates a Service that is published by address, and waits until the overlay has done what it does.
    pub(crate) async fn serve(&self, name: &str) {
        self.create(name);
        self.owner_publishes(name, json!([{"ip": "203.0.113.10"}])).await;
        settle().await;
    }

    pub(crate) async fn annotate(&self, name: &str, annotations: Value) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        self.services().patch(name, &PatchParams::default(), &patch).await.unwrap();
        settle().await;
    }

    pub(crate) fn services(&self) -> Api<Service> {
        Api::namespaced(self.user.clone(), "default")
    }

    /// The published entries.
    pub(crate) fn ingress(&self, name: &str) -> Value {
        let service = self.kube.get("services", "default", name).unwrap();
        service["status"]["loadBalancer"]["ingress"].clone()
    }

    /// What the overlay wrote into Services, apart from questions.
    pub(crate) fn writes(&self) -> Vec<RequestRecord> {
        self.kube.requests_where(|request| {
            request.is_write()
                && !request.is_dry_run()
                && request.path.contains("/services/")
                && request.parameter("fieldManager") == Some("ip-mode-overlay")
        })
    }

    /// Events about a Service: `Warning IPModeRefused: ...`.
    pub(crate) fn events(&self, name: &str) -> Vec<String> {
        let text = |event: &Value| {
            assert_eq!(event["source"]["component"], "ip-mode-overlay");
            base::event_text(event)
        };
        base::events(&self.kube, name).iter().map(text).collect()
    }

    /// The value of a metric, by the start of its line.
    pub(crate) fn metric(&self, start: &str) -> String {
        base::metric(&self.registry, start)
    }
}

/// Lets everything that is due happen, on the paused clock.
pub(crate) async fn settle() {
    base::pass(10).await;
}
