//! What the worlds of all controllers have in common: a controller at work on a cluster in memory, waiting on the paused clock, and reading
//! what became of it.

use std::time::Duration;

use kube::Client;
use openstack_ccm_kube_sim::Sim;
use openstack_ccm_runtime::parts::ControllerError;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longest virtual time that a condition may take.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A client of the cluster.
pub(crate) fn client(kube: &Sim) -> Client {
    Client::new(kube.service(), "default")
}

/// A controller at work.
pub(crate) struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), ControllerError>>,
}

impl Running {
    /// Starts what works until it is asked to stop.
    pub(crate) fn start<W>(work: impl FnOnce(CancellationToken) -> W) -> Self
    where
        W: Future<Output = Result<(), ControllerError>> + Send + 'static,
    {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(work(shutdown.clone()));
        Self { shutdown, task }
    }

    /// The same beside the watch of nodes that it depends on.
    pub(crate) fn start_beside<W>(
        nodes: impl Future<Output = ControllerError> + Send + 'static,
        work: impl FnOnce(CancellationToken) -> W,
    ) -> Self
    where
        W: Future<Output = Result<(), ControllerError>> + Send + 'static,
    {
        Self::start(|shutdown| {
            let work = work(shutdown);
            async move {
                tokio::select! {
                    result = work => result,
                    error = nodes => Err(error),
                }
            }
        })
    }

    /// Stops it as SIGTERM does.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }

    /// Ends it as SIGKILL does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err());
    }
}

/// A node with one address.
pub(crate) fn node(name: &str, address: &str, kubelet: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {
            "nodeInfo": {
                "kubeletVersion": kubelet, "operatingSystem": "linux", "architecture": "amd64", "bootID": "b",
                "containerRuntimeVersion": "c", "kernelVersion": "k", "kubeProxyVersion": "", "machineID": "m",
                "osImage": "o", "systemUUID": "s",
            },
            "addresses": [{"type": "InternalIP", "address": address}],
        },
    })
}

/// A Service of type LoadBalancer with one TCP port.
pub(crate) fn service(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": port, "protocol": "TCP"}]},
    })
}

/// Events about an object, oldest first.
pub(crate) fn events(kube: &Sim, name: &str) -> Vec<Value> {
    let mut events = kube.list("events", "default").unwrap();
    events.retain(|event| event["involvedObject"]["name"] == name);
    events.sort_by_key(|event| event["metadata"]["name"].to_string());
    events
}

/// An Event in short: `Normal Synced: Node synced successfully`.
pub(crate) fn event_text(event: &Value) -> String {
    let [kind, reason, message] =
        ["type", "reason", "message"].map(|key| event[key].as_str().unwrap_or_default());
    format!("{kind} {reason}: {message}")
}

/// The value of a metric, by the start of its line.
pub(crate) fn metric(registry: &Registry, start: &str) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    let line = text.lines().find(|line| line.starts_with(start));
    line.and_then(|line| line.rsplit(' ').next()).unwrap_or("absent").to_owned()
}

/// Lets so much time pass.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Waits, on the paused clock, until a condition holds.
pub(crate) async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let start = tokio::time::Instant::now();
    while !condition().await {
        assert!(start.elapsed() < PATIENCE, "not reached: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
