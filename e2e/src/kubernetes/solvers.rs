//! What a cluster does for the objects that cert-manager makes for a challenge: a scheduler and a kubelet run the pod, the
//! controller of endpoints finds it, and an ingress controller writes the route. The pod runs cert-manager's own program with the
//! arguments that cert-manager gave it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::api::{Kubernetes, NAMESPACE};
use crate::backends::ingress::{Route, Routes};
use crate::machine::process::Daemon;
use crate::machine::world::in_namespace;
use crate::network::NodePlace;
use crate::network::ask;

/// The label of all objects for challenges by HTTP-01.
const LABEL: &str = "acme.cert-manager.io/http01-solver=true";
/// The port of a solver.
const PORT: u16 = 8089;
/// Time between two looks at the objects.
const PERIOD: Duration = Duration::from_millis(500);

/// Runs solvers until it goes.
pub(crate) struct Solvers {
    stop: Arc<Mutex<bool>>,
    beat: Option<JoinHandle<()>>,
}

impl Solvers {
    /// Looks at a cluster from now on. Its solvers run in the pod of a node, one after the other.
    pub(crate) fn run(
        api: &Kubernetes,
        program: PathBuf,
        place: NodePlace,
        logs: PathBuf,
        ingress: Routes,
    ) -> Result<Self> {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        api.ensure(&format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), &account)?;
        let mut cluster = Cluster {
            api: api.clone(),
            program,
            place,
            logs,
            ingress,
            pods: BTreeMap::new(),
            slices: BTreeMap::new(),
            routes: Vec::new(),
        };
        let stop: Arc<Mutex<bool>> = Arc::default();
        let ended = Arc::clone(&stop);
        let beat = std::thread::spawn(move || {
            while !*held(&ended) {
                // What does not work now, such as an object that has just gone, is looked at again in a moment.
                cluster.look().ok();
                std::thread::sleep(PERIOD);
            }
            // Other groups find the ingress as it was.
            cluster.ingress.set(&[]).ok();
        });
        Ok(Self { stop, beat: Some(beat) })
    }

    /// Nothing of a challenge is left in the cluster.
    pub(crate) fn nothing_left(api: &Kubernetes) -> Result<()> {
        for kind in [pods(), services(), ingresses()] {
            let left = items(api, &kind)?;
            ensure!(left.is_empty(), "{kind}: {} left", left.len());
        }
        Ok(())
    }
}

impl Drop for Solvers {
    fn drop(&mut self) {
        *held(&self.stop) = true;
        if let Some(beat) = self.beat.take() {
            // It has nothing to report.
            beat.join().ok();
        }
    }
}

struct Cluster {
    api: Kubernetes,
    program: PathBuf,
    place: NodePlace,
    logs: PathBuf,
    ingress: Routes,
    /// Running pods, and whether they are known to be ready.
    pods: BTreeMap<String, (Daemon, bool)>,
    /// The addresses in the EndpointSlice of each Service.
    slices: BTreeMap<String, Vec<String>>,
    /// The routes that the ingress has.
    routes: Vec<Route>,
}

impl Cluster {
    fn look(&mut self) -> Result<()> {
        let pods = items(&self.api, &pods())?;
        self.pods.retain(|name, _| pods.iter().any(|pod| pod["metadata"]["name"] == json!(name)));
        pods.iter().try_for_each(|pod| self.keep(pod))?;
        let services = items(&self.api, &services())?;
        self.endpoints(&services, &pods)?;
        self.route(&services)
    }

    /// What scheduler and kubelet do for a pod.
    fn keep(&mut self, pod: &Value) -> Result<()> {
        let name = text(&pod["metadata"]["name"])?;
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}");
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            self.pods.remove(&name);
            return self.api.delete(&format!("{path}?gracePeriodSeconds=0"));
        }
        let Some((daemon, is_ready)) = self.pods.get_mut(&name) else {
            return self.start(&name, &path, pod);
        };
        if daemon.check().is_err() {
            // It is started again at the next look.
            self.pods.remove(&name);
            return Ok(());
        }
        if *is_ready {
            return Ok(());
        }
        let status = ask::status(&self.place.client(), "127.0.0.1", PORT, "/healthz")?;
        ensure!(status == Some(200), "the solver is not ready: {status:?}");
        let ips = self.place.client_address();
        let status = json!({"status": {
            "phase": "Running", "podIP": ips, "podIPs": [{"ip": ips}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        self.api.patch(&format!("{path}/status"), &status)?;
        *is_ready = true;
        Ok(())
    }

    fn start(&mut self, name: &str, path: &str, pod: &Value) -> Result<()> {
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": self.place.name()});
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target,
        });
        self.api.ensure(&format!("{path}/binding"), &binding)?;
        let arguments: Vec<String> = serde_json::from_value(pod["spec"]["containers"][0]["args"].clone())?;
        let mut command = in_namespace(&self.place.client(), &self.program);
        let daemon = Daemon::start("acmesolver", &self.logs, command.args(arguments))?;
        self.pods.insert(name.to_owned(), (daemon, false));
        Ok(())
    }

    /// What the controller of endpoints does.
    fn endpoints(&mut self, services: &[Value], pods: &[Value]) -> Result<()> {
        let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices");
        let mut wanted = BTreeMap::new();
        for service in services {
            let selected = pods.iter().filter(|pod| selects(&service["spec"]["selector"], pod));
            let ready = selected.filter(|pod| pod["status"]["phase"] == "Running");
            let addresses = ready.filter_map(|pod| Some(pod["status"]["podIP"].as_str()?.to_owned()));
            wanted.insert(text(&service["metadata"]["name"])?, addresses.collect::<Vec<_>>());
        }
        for name in self.slices.keys().filter(|name| !wanted.contains_key(*name)) {
            self.api.delete(&format!("{slices}/{name}"))?;
        }
        for (name, addresses) in &wanted {
            if self.slices.get(name) == Some(addresses) {
                continue;
            }
            let slice = slice(name, self.place, addresses);
            self.api.ensure(&slices, &slice)?;
            self.api.patch(&format!("{slices}/{name}"), &json!({"endpoints": slice["endpoints"]}))?;
        }
        self.slices = wanted;
        Ok(())
    }

    /// What an ingress controller does: backends are reached at the address of their Service.
    fn route(&mut self, services: &[Value]) -> Result<()> {
        let mut routes = Vec::new();
        for ingress in items(&self.api, &ingresses())? {
            for rule in ingress["spec"]["rules"].as_array().into_iter().flatten() {
                for path in rule["http"]["paths"].as_array().into_iter().flatten() {
                    routes.extend(route(&text(&rule["host"])?, path, services)?);
                }
            }
        }
        if routes != self.routes {
            self.ingress.set(&routes)?;
            self.routes = routes;
        }
        Ok(())
    }
}

/// The route for a path of a rule, if its Service is there.
fn route(host: &str, path: &Value, services: &[Value]) -> Result<Option<Route>> {
    let backend = &path["backend"]["service"];
    let Some(service) = services.iter().find(|service| service["metadata"]["name"] == backend["name"]) else {
        return Ok(None);
    };
    let address = text(&service["spec"]["clusterIP"])?;
    Ok(Some(Route {
        host: host.to_owned(),
        path: text(&path["path"])?,
        exact: path["pathType"] == "Exact",
        backend: format!("{address}:{}", backend["port"]["number"]),
    }))
}

fn slice(service: &str, place: NodePlace, addresses: &[String]) -> Value {
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|address| {
            json!({"addresses": [address], "nodeName": place.name(), "conditions": {"ready": true}})
        })
        .collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
        "ports": [{"name": "http", "port": PORT, "protocol": "TCP"}], "endpoints": endpoints,
    })
}

fn selects(selector: &Value, pod: &Value) -> bool {
    let labels = &pod["metadata"]["labels"];
    selector.as_object().is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value))
}

fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={LABEL}")
}

fn services() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/services?labelSelector={LABEL}")
}

fn ingresses() -> String {
    format!("/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses?labelSelector={LABEL}")
}

fn items(api: &Kubernetes, path: &str) -> Result<Vec<Value>> {
    api.get(path)?["items"].as_array().cloned().context("the list has no items")
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().with_context(|| format!("{value} is no text"))?.to_owned())
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
