//! The world, and what a test does in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_controllers::WorkQueues;
use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_controllers::service::ServiceControllerOptions;
use openstack_ccm_core::permit::Fence;
use openstack_ccm_kube_sim::{ApiVersion, Fault, FaultId, RequestRecord, Sim as Kubernetes};
use openstack_ccm_manager::health::Health;
use openstack_ccm_manager::kubernetes::{ControllerClients, cluster_uid};
use openstack_ccm_manager::program::{Program, ProgramOptions};
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_sim::{OctaviaRelease, Sim as Cloud};
use openstack_ccm_provider_openstack::cloud::OpenStackCloud;
use openstack_ccm_provider_openstack::config::{self, Config, Environment, Loaded};
use openstack_ccm_runtime::election::{ElectionOptions, Elector};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::comparison::Comparison;
use super::describe;
use super::ledger::Escape;
use super::line::{Call, Journal, Line, Side, Stop};
use super::objects;
use super::reconciliation;

/// Longest virtual time that a condition may take.
const PATIENCE: Duration = Duration::from_secs(7200);
/// So long in real time, and nothing comes of it any more.
const HANGS: Duration = Duration::from_secs(900);
/// After so long without a call everything is done; failures that are repeated sooner than that are not over.
const QUIET: Duration = Duration::from_secs(25);
/// How long Octavia works on each change, unless a test says otherwise.
const WORK: Duration = Duration::from_secs(2);

/// How long work may take to end after a stop, as in the program.
const WORK_GRACE: Duration = Duration::from_secs(16);

/// How the program is configured.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) cluster_name: String,
    /// The uid that the namespace kube-system has when the program starts, in place of the one that is the same in every simulated cluster.
    pub(crate) cluster_uid: Option<String>,
    /// Lines for `[LoadBalancer]` of cloud.conf, and whatever follows it.
    pub(crate) cloud_conf: String,
    pub(crate) service: ServiceControllerOptions,
    /// Whether the service controller runs.
    pub(crate) serves: bool,
    /// The route controller runs only where a test is about it.
    pub(crate) route: Option<RouteControllerOptions>,
    /// The node controller runs only where a test asks for it.
    pub(crate) node: Option<NodeControllerOptions>,
    /// The node lifecycle controller runs only where a test asks for it.
    pub(crate) node_lifecycle: Option<NodeLifecycleOptions>,
    pub(crate) regional_provider_ids: bool,
    /// The user of the cloud as whom the program logs in.
    pub(crate) user: &'static str,
    /// Whether the cloud has Barbican.
    pub(crate) key_manager: bool,
    /// Time that each call to OpenStack takes.
    pub(crate) latency: Duration,
    /// A text that lists of objects have in place of another.
    pub(crate) translation: Option<(&'static str, &'static str)>,
    /// Whether what the program does is planned first.
    pub(crate) plans: bool,
    /// What the program asks whether it still leads.
    pub(crate) fence: Fence,
    /// How the program has to be elected before it works; absent where it need not be. Its Lease is renewed beside the journal.
    pub(crate) election: Option<ElectionOptions>,
    /// Whether writes ask the fence that the election feeds.
    pub(crate) asks_elector: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_name: "c1".to_owned(),
            cluster_uid: None,
            cloud_conf: String::new(),
            service: ServiceControllerOptions::default(),
            serves: true,
            route: None,
            node: None,
            node_lifecycle: None,
            regional_provider_ids: false,
            user: "demo",
            key_manager: true,
            latency: Duration::ZERO,
            translation: None,
            plans: true,
            fence: Fence::always(),
            election: None,
            asks_elector: true,
        }
    }
}

struct Running {
    line: Arc<Line>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Drop for Running {
    /// Or it would work on beside the next world of a test.
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) struct World {
    pub(crate) kube: Kubernetes,
    pub(crate) cloud: Cloud,
    pub(crate) settings: Settings,
    pub(crate) health: Health,
    pub(crate) registry: Arc<Mutex<Registry>>,
    journal: Journal,
    /// How many calls of the journal a test has taken notice of.
    taken: AtomicUsize,
    pub(crate) comparison: Mutex<Comparison>,
    running: Option<Running>,
    kills: usize,
}

fn cloud_with(octavia: OctaviaRelease) -> Cloud {
    let cloud =
        Cloud::builder().octavia(octavia).nodes(2).token_lifetime(Duration::from_secs(1 << 30)).build();
    cloud.set_delays(WORK);
    cloud
}

impl World {
    /// A cluster of this version with two nodes of the same version, and no program yet.
    pub(crate) fn new(version: ApiVersion) -> Self {
        Self::in_cloud(version, cloud_with(OctaviaRelease::default()))
    }

    /// A newest cluster in a cloud with this Octavia.
    pub(crate) fn on(octavia: OctaviaRelease) -> Self {
        Self::in_cloud(ApiVersion::V1_36, cloud_with(octavia))
    }

    /// The same, whose nodes are the servers of this cloud.
    pub(crate) fn in_cloud(version: ApiVersion, cloud: Cloud) -> Self {
        let world = Self {
            kube: Kubernetes::new(version),
            cloud,
            settings: Settings::default(),
            health: Health::default(),
            registry: Arc::default(),
            journal: Journal::default(),
            taken: AtomicUsize::new(0),
            comparison: Mutex::new(Comparison::new()),
            running: None,
            kills: 0,
        };
        for server in world.cloud.nodes() {
            world.kube.create(&objects::node(&server, &format!("v1.{}.0", version.minor()))).unwrap();
        }
        world
    }

    /// A newest cluster with the program at work.
    pub(crate) async fn started() -> Self {
        Self::started_on(OctaviaRelease::default()).await
    }

    /// The same in a cloud with this Octavia.
    pub(crate) async fn started_on(octavia: OctaviaRelease) -> Self {
        let mut world = Self::on(octavia);
        world.start().await;
        world
    }

    /// The same under more lines of `[LoadBalancer]`.
    pub(crate) async fn configured(cloud_conf: &str) -> Self {
        let mut world = Self::on(OctaviaRelease::default());
        world.settings.cloud_conf = cloud_conf.to_owned();
        world.start().await;
        world
    }

    /// The same with a Service that is served already; what that took is forgotten.
    pub(crate) async fn serving(service: &Value) -> Self {
        Self::serving_on(OctaviaRelease::default(), service).await
    }

    /// The same in a cloud with this Octavia.
    pub(crate) async fn serving_on(octavia: OctaviaRelease, service: &Value) -> Self {
        let world = Self::started_on(octavia).await;
        world.serve(service).await;
        world
    }

    // The program.

    pub(crate) async fn start(&mut self) {
        self.start_until(None).await;
    }

    /// Starts the program, which is killed at a call.
    pub(crate) async fn start_until(&mut self, stop: Option<Stop>) {
        let Settings { cluster_name, latency, translation, .. } = &self.settings;
        reconciliation::follow();
        let line = Line::new(&self.journal, stop, *latency, cluster_name, *translation);
        if let Some(uid) = &self.settings.cluster_uid {
            self.kube.set_cluster_uid(uid).unwrap();
        }
        let uid = self.cluster_uid().await;
        self.registry = Arc::default();
        let queues = WorkQueues::registered(&mut self.registry.lock().unwrap());
        let options = self.options();
        let mut openstack = line.openstack(&self.cloud, self.settings.user);
        openstack.barbican = openstack.barbican.filter(|_| self.settings.key_manager);
        let elector = self
            .settings
            .election
            .clone()
            .map(|options| Elector::new(kube::Client::new(self.kube.service(), "default"), options));
        let asked = elector.as_ref().filter(|_| self.settings.asks_elector);
        let (elected, ended) =
            (asked.map_or_else(Fence::always, Elector::fence), self.settings.fence.clone());
        let fence = Fence::new(move |target| elected.holds(target) && ended.holds(target));
        let program = Program::new(
            &ControllerClients::same(line.kubernetes(&self.kube)),
            &self.cloud_of(openstack),
            uid,
            options,
            fence,
            &mut self.registry.lock().unwrap(),
            &queues,
        );
        let (health, stop) = (self.health.clone(), CancellationToken::new());
        let leading = stop.clone();
        let task = tokio::spawn(async move {
            match elector {
                Some(elector) => {
                    let work = async |leading| program.run(&health, leading).await;
                    elector.lead(leading, WORK_GRACE, work).await;
                }
                None => program.run(&health, leading).await,
            }
        });
        self.running = Some(Running { line, stop, task });
    }

    /// Asked until there is an answer, as the program does at its start.
    async fn cluster_uid(&self) -> String {
        loop {
            match cluster_uid(kube::Client::new(self.kube.service(), "default")).await {
                Ok(uid) => return uid,
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// What the program runs.
    pub(crate) fn options(&self) -> ProgramOptions {
        ProgramOptions {
            cluster_name: self.settings.cluster_name.clone(),
            service: self.settings.serves.then(|| self.settings.service.clone()),
            route: self.settings.route.clone(),
            node: self.settings.node.clone(),
            node_lifecycle: self.settings.node_lifecycle.clone(),
        }
    }

    /// The cloud as the controllers see it.
    pub(crate) fn cloud_of(&self, openstack: OpenStack) -> OpenStackCloud {
        let Loaded { config, auth_options, warnings: _ } = self.loaded();
        OpenStackCloud::new(openstack, Arc::new(config), auth_options, self.settings.regional_provider_ids)
    }

    /// The configuration, read as the program reads it.
    pub(crate) fn config(&self) -> Config {
        self.loaded().config
    }

    fn loaded(&self) -> Loaded {
        let text = format!("{}{}", self.cloud.cloud_conf(), self.settings.cloud_conf);
        config::load(&[PathBuf::from("cloud.conf")], &OneFile(text)).unwrap()
    }

    /// Ends the program as SIGTERM does.
    pub(crate) async fn stop(&mut self) {
        let running = self.running.as_mut().expect("not running");
        running.stop.cancel();
        (&mut running.task).await.unwrap();
        self.close(Escape::Overtaken);
        self.assert_permitted();
        self.running = None;
    }

    /// Ends the program as SIGKILL does.
    pub(crate) async fn kill(&mut self) {
        let running = self.running.as_mut().expect("not running");
        running.line.cut();
        running.task.abort();
        assert!((&mut running.task).await.is_err());
        self.close(Escape::Killed);
        self.assert_permitted();
        self.running = None;
        self.kills += 1;
    }

    /// Everything that was written so far was sent with a permit, while the lead was held.
    pub(crate) fn assert_permitted(&self) {
        let breaches = self.line().map(Line::breaches).unwrap_or_default();
        assert!(breaches.is_empty(), "{breaches:#?}");
    }

    /// How often the program was killed.
    pub(crate) fn kills(&self) -> usize {
        self.kills
    }

    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    /// Starts the program, and waits until nothing happens any more.
    pub(crate) async fn start_to_rest(&mut self) {
        self.start().await;
        self.quiet().await;
    }

    /// Restarts it in the same way.
    pub(crate) async fn restart_to_rest(&mut self) {
        self.stop().await;
        self.start_to_rest().await;
    }

    /// Has the running program killed at a call from here on.
    pub(crate) fn stop_at(&self, stop: Stop) {
        self.running.as_ref().expect("not running").line.stop_at(stop);
    }

    /// Waits until everything is done; answers false when the program was killed before.
    pub(crate) async fn survives(&self) -> bool {
        let line = &self.running.as_ref().expect("not running").line;
        tokio::select! {
            biased;
            () = line.until_cut() => false,
            () = self.quiet() => true,
        }
    }

    /// Waits until a condition holds; answers false when the program was killed before.
    pub(crate) async fn reaches(&self, what: &str, condition: impl Fn(&Self) -> bool) -> bool {
        let line = &self.running.as_ref().expect("not running").line;
        tokio::select! {
            biased;
            () = line.until_cut() => false,
            () = self.until(what, condition) => true,
        }
    }

    /// Whether the program is killed, now or within some time.
    pub(crate) async fn is_killed_within(&self, time: Duration) -> bool {
        let line = &self.running.as_ref().expect("not running").line;
        tokio::time::timeout(time, line.until_cut()).await.is_ok()
    }

    // Kubernetes.

    pub(crate) fn create(&self, service: &Value) {
        self.kube.create(service).unwrap();
    }

    /// Creates a Service and waits until everything is done; what that took is forgotten.
    pub(crate) async fn serve(&self, service: &Value) {
        self.create(service);
        self.until_served(service["metadata"]["name"].as_str().unwrap()).await;
        self.take_calls();
    }

    /// The Service; null when there is none.
    pub(crate) fn service(&self, name: &str) -> Value {
        self.kube.get("services", "default", name).unwrap_or_default()
    }

    pub(crate) fn patch(&self, name: &str, patch: &Value) {
        self.kube.patch("services", "default", name, patch).unwrap();
    }

    /// Changes a Service, and waits until nothing is left to do.
    pub(crate) async fn patch_to_rest(&self, name: &str, patch: &Value) {
        self.patch(name, patch);
        self.quiet().await;
    }

    /// Sets an annotation, or removes it.
    pub(crate) fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        self.patch(name, &json!({"metadata": {"annotations": {(objects::key(key)): value}}}));
    }

    /// Sets an annotation, or removes it, and waits until nothing is left to do.
    pub(crate) async fn annotate_to_rest(&self, name: &str, key: &str, value: Option<&str>) {
        self.annotate(name, key, value);
        self.quiet().await;
    }

    pub(crate) fn annotation(&self, name: &str, key: &str) -> Option<String> {
        self.service(name)["metadata"]["annotations"][objects::key(key)].as_str().map(str::to_owned)
    }

    pub(crate) fn delete(&self, name: &str) {
        self.kube.delete("services", "default", name).unwrap();
    }

    /// Adds a server, and its node to the cluster.
    pub(crate) fn add_node(&self, name: &str, kubelet: &str) {
        let server = self.cloud.add_node(name);
        self.kube.create(&objects::node(&server, kubelet)).unwrap();
    }

    /// A third node joins, and nothing is left to do.
    pub(crate) async fn third_node_joins(&self) {
        self.add_node("node-3", "v1.36.0");
        self.quiet().await;
    }

    pub(crate) fn set_kubelets(&self, version: &str) {
        for node in self.kube.list("nodes", "").unwrap() {
            self.set_kubelet(node["metadata"]["name"].as_str().unwrap(), version);
        }
    }

    pub(crate) fn set_kubelet(&self, node: &str, version: &str) {
        let patch = json!({"status": {"nodeInfo": {"kubeletVersion": version}}});
        self.kube.patch_status("nodes", "", node, &patch).unwrap();
    }

    /// The next lists of all Services show these, whatever becomes of them; who asks for one is answered the truth.
    pub(crate) fn answer_lists(&self, services: &[Value], lists: usize) -> FaultId {
        let version = self.kube.resource_version().to_string();
        let list = json!({"kind": "ServiceList", "apiVersion": "v1", "metadata": {"resourceVersion": version},
            "items": services});
        let is_list = |request: &RequestRecord| {
            let watches = request.query.iter().any(|(key, _)| key == "watch");
            request.method == "GET" && request.path == "/api/v1/services" && !watches
        };
        self.kube.inject(Fault::when(is_list).answer(200, list).times(lists))
    }

    /// Publishes a Service at an address, as whoever served it before has done.
    pub(crate) fn publish(&self, name: &str, address: &str) {
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}});
        self.kube.patch_status("services", "default", name, &status).unwrap();
    }

    /// Replaces the API server; as in life, watches end.
    pub(crate) fn replace_api_server(&self, version: ApiVersion) {
        self.kube.set_version(version);
        self.kube.break_watches();
    }

    pub(crate) fn ingress(&self, name: &str) -> Vec<String> {
        describe::ingress(&self.service(name))
    }

    /// Events about a Service, oldest first: `Normal EnsuredLoadBalancer: Ensured load balancer`, without ids.
    pub(crate) fn events(&self, name: &str) -> Vec<String> {
        let mut events = self.kube.list("events", "default").unwrap();
        events.retain(|event| event["involvedObject"]["name"] == name);
        events.sort_by_key(|event| event["metadata"]["name"].to_string());
        let field = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let without_ids = describe::without_ids(&self.kube, &self.cloud);
        events
            .iter()
            .map(|event| {
                let line = format!(
                    "{} {}: {}",
                    field(event, "type"),
                    field(event, "reason"),
                    field(event, "message")
                );
                without_ids(&line)
            })
            .collect()
    }

    /// A text as events and states show it: without ids.
    pub(crate) fn without_ids(&self, text: &str) -> String {
        describe::without_ids(&self.kube, &self.cloud)(text)
    }

    pub(crate) fn warnings(&self, name: &str) -> Vec<String> {
        // What a switch of the PROXY protocol asks of the pods is no sign of trouble.
        let is_trouble = |event: &String| {
            event.starts_with("Warning") && !event.contains("LoadBalancerProxyProtocolSwitched")
        };
        self.events(name).into_iter().filter(is_trouble).collect()
    }

    /// There is one Warning about a Service, with this text.
    pub(crate) fn assert_warned_once(&self, name: &str, text: &str) {
        let warnings = self.warnings(name);
        assert!(warnings.len() == 1 && warnings[0].contains(text), "{text}: {warnings:?}");
    }

    // Both.

    /// Waits, on the paused clock, until a condition holds; what is done until then has to be the beginning of what is planned.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        if condition(self) {
            return;
        }
        self.begin_wait(false).await;
        let (start, began) = (Instant::now(), std::time::Instant::now());
        while !condition(self) {
            let patient = start.elapsed() < PATIENCE && began.elapsed() < HANGS;
            assert!(patient, "not reached: {what}\n{}\n{:#?}", self.state(), self.events("web"));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.end_wait(false);
    }

    /// Lets so much time pass; what is done meanwhile has to be the beginning of what is planned.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.begin_wait(false).await;
        let (until, began) = (Instant::now() + Duration::from_secs(seconds), std::time::Instant::now());
        while Instant::now() < until {
            tokio::time::sleep_until(until.min(Instant::now() + QUIET)).await;
            assert!(began.elapsed() < HANGS, "something happens all the time: {}", self.state());
        }
        self.end_wait(false);
    }

    pub(crate) async fn until_published(&self, name: &str) {
        self.until(&format!("{name} is published"), |world| !world.ingress(name).is_empty()).await;
    }

    pub(crate) async fn until_ingress(&self, name: &str, expected: &str) {
        self.until(&format!("{name} is published as {expected}"), |world| world.ingress(name) == [expected])
            .await;
    }

    /// Waits until a Service is published, and nothing is left to do.
    pub(crate) async fn until_served(&self, name: &str) {
        self.until_published(name).await;
        self.quiet().await;
    }

    /// Waits until a Service is published as this, and nothing is left to do.
    pub(crate) async fn until_served_at(&self, name: &str, expected: &str) {
        self.until_ingress(name, expected).await;
        self.quiet().await;
    }

    /// Deletes a Service, and waits until it is gone.
    pub(crate) async fn release(&self, name: &str) {
        self.delete(name);
        self.until_gone(name).await;
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        self.until(&format!("{name} is gone"), |world| world.service(name).is_null()).await;
    }

    pub(crate) async fn until_warned(&self, name: &str, text: &str) {
        let warned = |world: &Self| world.warnings(name).iter().any(|warning| warning.contains(text));
        self.until(&format!("a warning about {name} with {text:?}"), warned).await;
    }

    /// Waits for a Warning, and until nothing is left to do.
    pub(crate) async fn until_warned_at_rest(&self, name: &str, text: &str) {
        self.until_warned(name, text).await;
        self.quiet().await;
    }

    /// Waits until nothing happens any more, which has to be what a plan of it says.
    pub(crate) async fn quiet(&self) {
        self.begin_wait(true).await;
        self.quiet_unplanned().await;
        self.end_wait(true);
    }

    /// Waits until nothing happens any more.
    pub(crate) async fn quiet_unplanned(&self) {
        let (start, began) = (Instant::now(), std::time::Instant::now());
        loop {
            let before = self.work();
            tokio::time::sleep(QUIET).await;
            if self.work() == before {
                self.assert_permitted();
                return;
            }
            let patient = start.elapsed() < PATIENCE && began.elapsed() < HANGS;
            assert!(patient, "never quiet: {}", self.state());
        }
    }

    /// Calls so far that are not part of watching the cluster.
    fn work(&self) -> usize {
        let watching = |call: &&Call| {
            call.name.starts_with("LIST")
                || call.name.starts_with("WATCH")
                || call.name.ends_with("version")
                || call.name == "GET routers/ID"
        };
        self.journal.lock().unwrap().iter().filter(|call| !watching(call)).count()
    }

    /// Calls since the last time.
    pub(crate) fn take_calls(&self) -> Vec<Call> {
        let journal = self.journal.lock().unwrap();
        let taken = self.taken.swap(journal.len(), Ordering::SeqCst);
        journal[taken..].to_vec()
    }

    /// How many of them a test has taken notice of.
    pub(crate) fn taken_calls(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    /// How many calls there were of all time.
    pub(crate) fn call_count(&self) -> usize {
        self.journal.lock().unwrap().len()
    }

    /// The calls from a place on.
    pub(crate) fn calls_from(&self, place: usize) -> Vec<Call> {
        self.journal.lock().unwrap()[place..].to_vec()
    }

    /// The line of the running program.
    pub(crate) fn line(&self) -> Option<&Line> {
        self.running.as_ref().map(|running| running.line.as_ref())
    }

    /// Answers to the program so far that were no success.
    pub(crate) fn refusals(&self) -> usize {
        self.line().map_or(0, Line::refusals)
    }

    /// All metrics as the program shows them.
    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry.lock().unwrap()).unwrap();
        text
    }

    /// Names of the writes to OpenStack since the last time.
    pub(crate) fn take_cloud_writes(&self) -> Vec<String> {
        let calls = self.take_calls().into_iter();
        calls.filter(|call| call.side == Side::OpenStack && call.write).map(|call| call.name).collect()
    }

    /// The members of all pools.
    pub(crate) fn members(&self) -> Vec<Value> {
        self.cloud.pools().iter().flat_map(|pool| self.cloud.members(describe::text(&pool["id"]))).collect()
    }

    /// All Services of ours and all that they have in the cloud, as text without ids.
    pub(crate) fn state(&self) -> String {
        let mut services = self.kube.list("services", "").unwrap();
        services.retain(|service| service["metadata"]["name"] != "kubernetes");
        let services: String = services.iter().map(describe::service).collect();
        describe::without_ids(&self.kube, &self.cloud)(&format!("{services}{}", self.cloud_state()))
    }

    pub(crate) fn cloud_state(&self) -> String {
        describe::without_ids(&self.kube, &self.cloud)(&describe::cloud(&self.cloud))
    }
}

/// A cloud.conf, and nothing else in the environment.
pub(crate) struct OneFile(pub(crate) String);

impl Environment for OneFile {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == Path::new("cloud.conf") {
            return Ok(self.0.clone().into_bytes());
        }
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn working_directory(&self) -> PathBuf {
        PathBuf::from("/")
    }
}
