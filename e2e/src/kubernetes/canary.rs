//! The canary in a cluster without kubelets: its objects are those of the manifests, its pods are processes in the namespaces
//! of pods, and their readiness is asked for and reported as a kubelet does it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::api::Kubernetes;
use super::manifests;
use crate::machine::process::Daemon;
use crate::machine::world::in_namespace;
use crate::network::NodePlace;

pub(crate) const NAMESPACE: &str = "openstack-ccm-canary";
/// Whose canary it is: both programs have one, with the same pods under other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of openstack-ccm.
    Controller,
    Overlay,
}

impl Whose {
    fn namespace(self) -> &'static str {
        match self {
            Self::Controller => NAMESPACE,
            Self::Overlay => "ip-mode-overlay-canary",
        }
    }

    fn objects(self) -> Result<Vec<Value>> {
        match self {
            Self::Controller => manifests::canary(),
            Self::Overlay => manifests::canary_of_overlay(),
        }
    }

    fn pod(self, place: NodePlace) -> String {
        format!("{}-{}", self.namespace(), place.name())
    }

    fn path(self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace())
    }
}

pub(crate) const SERVICES: [&str; 2] = ["control", "subject"];
/// Port of the token, and of readiness.
const PORTS: (u16, u16) = (8080, 8081);
/// Time between two questions for readiness; kubelets take five seconds.
const PERIOD: Duration = Duration::from_millis(500);
/// What makes the canary quicker than in a cluster, where nobody waits for it.
const HURRY: [&str; 4] = ["--period=2s", "--fit-again-after=4s", "--lapse-after=20s", "--dial-timeout=500ms"];

/// The pods, which end with this value.
pub(crate) struct CanaryPods {
    api: Kubernetes,
    whose: Whose,
    program: PathBuf,
    logs: PathBuf,
    arguments: Vec<String>,
    /// The uid of the DaemonSet.
    owner: Value,
    pods: Arc<Mutex<BTreeMap<u8, Pod>>>,
    stop: Arc<Mutex<bool>>,
    beat: Option<JoinHandle<()>>,
}

struct Pod {
    /// Where its status is written.
    status: String,
    place: NodePlace,
    daemon: Daemon,
    said: Option<(bool, bool)>,
}

/// The flags of the controller that reads it, as the component of the kustomization adds them.
pub(crate) fn flags() -> Result<Vec<String>> {
    let text = manifests::text("canary/kustomization.yaml")?;
    let values = text.lines().filter_map(|line| line.trim().strip_prefix("value: "));
    Ok(values.map(str::to_owned).collect())
}

impl CanaryPods {
    /// Makes the objects. Nobody follows the DaemonSet here, so its pods are made by [`CanaryPods::start`].
    pub(crate) fn prepare(api: &Kubernetes, whose: Whose, program: &Path, logs: &Path) -> Result<Self> {
        let objects = whose.objects()?;
        for object in &objects {
            manifests::apply(api, object)?;
        }
        let path = format!("/apis/apps/v1/namespaces/{0}/daemonsets/{0}", whose.namespace());
        let owner = api.get(&path)?["metadata"]["uid"].clone();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        api.ensure(&whose.path("serviceaccounts"), &account)?;
        let set =
            objects.iter().find(|object| object["kind"] == "DaemonSet").context("there is no DaemonSet")?;
        let mut arguments = arguments(&set["spec"]["template"])?;
        let ips = cluster_ips(api, whose)?;
        for argument in &mut arguments {
            // There is no DNS of the cluster.
            *argument = argument.replace("--control=control", &format!("--control={}", ips.join(",")));
        }
        arguments.extend(HURRY.map(str::to_owned));
        let pods: Arc<Mutex<BTreeMap<u8, Pod>>> = Arc::default();
        let stop: Arc<Mutex<bool>> = Arc::default();
        let (seen, ended, server) = (Arc::clone(&pods), Arc::clone(&stop), api.clone());
        let beat = std::thread::spawn(move || {
            while !*held(&ended) {
                for pod in held(&seen).values_mut() {
                    // A server or a pod that is away for a moment is met again in a moment.
                    pod.report(&server).ok();
                }
                std::thread::sleep(PERIOD);
            }
        });
        let (program, logs) = (program.to_owned(), logs.to_owned());
        Ok(Self { api: api.clone(), whose, program, logs, arguments, owner, pods, stop, beat: Some(beat) })
    }

    /// Starts the pod of a node.
    pub(crate) fn start(&self, place: NodePlace, dual_stack: bool) -> Result<()> {
        let ips = pod_ips(place, dual_stack);
        let mut command = in_namespace(&place.client(), &self.program);
        for argument in self.arguments.iter().skip(1) {
            command.arg(argument.replace("$(TOKEN)", "e2e").replace("$(POD_IPS)", &ips.join(",")));
        }
        let daemon = Daemon::start(&format!("canary-{}", place.name()), &self.logs, &mut command)?;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": self.whose.pod(place), "labels": {"app.kubernetes.io/name": self.whose.namespace()},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "DaemonSet", "name": self.whose.namespace(), "controller": true,
                    "uid": self.owner,
                }],
            },
            "spec": self.spec(place)?,
        });
        self.api.ensure(&self.whose.path("pods"), &pod)?;
        let status = self.whose.path(&format!("pods/{}/status", self.whose.pod(place)));
        held(&self.pods).insert(place.0, Pod { status, place, daemon, said: None });
        self.endpoints(dual_stack)
    }

    /// The pod as the DaemonSet would make it.
    fn spec(&self, place: NodePlace) -> Result<Value> {
        let objects = self.whose.objects()?;
        let set =
            objects.iter().find(|object| object["kind"] == "DaemonSet").context("there is no DaemonSet")?;
        let mut spec = set["spec"]["template"]["spec"].clone();
        spec["nodeName"] = json!(place.name());
        Ok(spec)
    }

    /// The endpoints of both Services: all pods, ready or not, as `publishNotReadyAddresses` wants it.
    fn endpoints(&self, dual_stack: bool) -> Result<()> {
        let families: &[&str] = if dual_stack { &["IPv4", "IPv6"] } else { &["IPv4"] };
        let places: Vec<NodePlace> = held(&self.pods).values().map(|pod| pod.place).collect();
        for (service, (index, family)) in SERVICES
            .iter()
            .flat_map(|service| families.iter().enumerate().map(move |family| (service, family)))
        {
            let namespace = self.whose.namespace();
            let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
            let slice = format!("{service}-{}", family.to_lowercase());
            let endpoints: Vec<Value> = places
                .iter()
                .map(|place| {
                    json!({
                        "addresses": [pod_ips(*place, dual_stack)[index]], "nodeName": place.name(),
                        "conditions": {"ready": true, "serving": true, "terminating": false},
                    })
                })
                .collect();
            let object = json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
                "ports": [{"name": "token", "port": PORTS.0, "protocol": "TCP"}],
                "metadata": {"name": slice, "labels": {"kubernetes.io/service-name": service}},
                "endpoints": endpoints,
            });
            self.api.ensure(&path, &object)?;
            self.api.patch(&format!("{path}/{slice}"), &json!({"endpoints": endpoints}))?;
        }
        Ok(())
    }

    /// What the pod of a node says by its readiness: of `conclusive`, and of `fit`.
    pub(crate) fn said(&self, place: NodePlace) -> Option<(bool, bool)> {
        held(&self.pods).get(&place.0).and_then(|pod| pod.said)
    }
}

impl Drop for CanaryPods {
    fn drop(&mut self) {
        *held(&self.stop) = true;
        if let Some(beat) = self.beat.take() {
            // It has nothing to report.
            beat.join().ok();
        }
    }
}

impl Pod {
    fn report(&mut self, api: &Kubernetes) -> Result<()> {
        self.daemon.check()?;
        let address = format!("10.244.{}.2", self.place.0);
        let ready = |container: &str| {
            let path = format!("/{container}");
            crate::network::ask::status(&self.place.name(), &address, PORTS.1, &path)
                .map(|status| status == Some(200))
        };
        let now = (ready("conclusive")?, ready("fit")?);
        if self.said == Some(now) {
            return Ok(());
        }
        let container = |name: &str, ready: bool| {
            json!({
                "name": name, "ready": ready, "restartCount": 0, "image": "e2e", "imageID": "e2e",
                "state": {"running": {}},
            })
        };
        let statuses = [container("conclusive", now.0), container("fit", now.1)];
        let status = json!({"status": {"phase": "Running", "containerStatuses": statuses}});
        api.patch(&self.status, &status)?;
        self.said = Some(now);
        Ok(())
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pod_ips(place: NodePlace, dual_stack: bool) -> Vec<String> {
    let mut ips = vec![place.client_address()];
    if dual_stack {
        ips.push(format!("fd00:244:{}::2", place.0));
    }
    ips
}

/// The arguments of the container that looks.
fn arguments(template: &Value) -> Result<Vec<String>> {
    let containers = template["spec"]["containers"].as_array().context("the pod has no containers")?;
    let looks = containers.iter().find(|one| one["name"] == "conclusive").context("no container looks")?;
    let words = looks["args"].as_array().context("the container has no arguments")?;
    Ok(words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
}

/// The ClusterIPs of the control Service.
fn cluster_ips(api: &Kubernetes, whose: Whose) -> Result<Vec<String>> {
    let service = api.get(&whose.path(&format!("services/{}", SERVICES[0])))?;
    let ips = service["spec"]["clusterIPs"].as_array().cloned().unwrap_or_default();
    ensure!(!ips.is_empty(), "the Service has no ClusterIP: {service}");
    Ok(ips.iter().filter_map(|ip| ip.as_str().map(str::to_owned)).collect())
}
