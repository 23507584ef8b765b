//! Pods that do one thing and end, as a kubelet runs them: in the namespaces of pods, with what they print as the message of
//! their termination.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::api::Kubernetes;
use crate::machine::process::run;
use crate::machine::world::in_namespace;
use crate::network::{NODES, NodePlace};

/// Time between two looks; the API server waits about half a second for the account of a new namespace.
const PERIOD: Duration = Duration::from_millis(100);

/// Runs whatever pods are made in one namespace, until this value ends.
pub(crate) struct ShortPods {
    ended: Arc<AtomicBool>,
    follows: Option<JoinHandle<()>>,
}

/// What stands in for the kubelets, and for the controllers of accounts and namespaces.
struct Follower {
    api: Kubernetes,
    namespace: String,
    program: PathBuf,
}

impl ShortPods {
    /// `program` stands for the image.
    pub(crate) fn follow(api: &Kubernetes, namespace: &str, program: &Path) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let follower =
            Follower { api: api.clone(), namespace: namespace.to_owned(), program: program.to_owned() };
        let follows = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // What fails is tried again at the next look.
                follower.look().ok();
                std::thread::sleep(PERIOD);
            }
        });
        Self { ended, follows: Some(follows) }
    }
}

impl Drop for ShortPods {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(follows) = self.follows.take() {
            // It has nothing to report.
            follows.join().ok();
        }
    }
}

impl Follower {
    fn path(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}{rest}", self.namespace)
    }

    fn look(&self) -> Result<()> {
        let namespace = self.api.raw(&self.path(""))?;
        if namespace.status == 404 {
            return Ok(());
        }
        let namespace = namespace.success()?;
        if !namespace["metadata"]["deletionTimestamp"].is_null() {
            return self.remove(namespace);
        }
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        self.api.ensure(&self.path("/serviceaccounts"), &account)?;
        let pods = self.api.get(&self.path("/pods"))?;
        let waiting = pods["items"].as_array().into_iter().flatten();
        for pod in waiting.filter(|pod| pod["status"]["phase"] == "Pending") {
            self.run(pod)?;
        }
        Ok(())
    }

    fn run(&self, pod: &Value) -> Result<()> {
        let place = NODES.into_iter().find(|place| pod["spec"]["nodeName"] == place.name());
        let place: NodePlace = place.context("a pod without a node")?;
        let mut command = in_namespace(&place.client(), &self.program);
        let words = pod["spec"]["containers"][0]["args"].as_array().into_iter().flatten().skip(1);
        for word in words.filter_map(Value::as_str) {
            command.arg(word.replace("$(HOST_IPS)", &place.address()));
        }
        let printed = run(&mut command)?;
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "message": printed.trim()}});
        let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
            "name": "dial", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state,
        }]}});
        self.api.patch(&self.path(&format!("/pods/{name}/status")), &status).map(drop)
    }

    fn remove(&self, mut namespace: Value) -> Result<()> {
        let pods = self.api.get(&self.path("/pods"))?;
        for pod in pods["items"].as_array().into_iter().flatten() {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            self.api.delete(&self.path(&format!("/pods/{name}?gracePeriodSeconds=0")))?;
        }
        namespace["spec"]["finalizers"] = json!([]);
        self.api.replace(&self.path("/finalize"), &namespace).map(drop)
    }
}
