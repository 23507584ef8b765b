//! What the control plane sees of kubelets: nodes that register and leave the rest to the cloud, and signs of life.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::api::Kubernetes;
use super::objects::{register_node, set_ready};
use super::server::ServerKind;
use crate::network::NodePlace;

/// The taint that a kubelet sets when `--cloud-provider=external`.
pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The label of nodes that run the control plane.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Time between two signs of life; kubelets take ten seconds.
const PERIOD: Duration = Duration::from_secs(2);
/// Where nodes have their leases.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// Kubelets that live. They fall silent with this value.
pub(crate) struct Kubelets {
    api: Kubernetes,
    alive: Arc<Mutex<Option<Vec<NodePlace>>>>,
    beat: Option<JoinHandle<()>>,
}

impl Kubelets {
    /// Nobody yet.
    pub(crate) fn new(api: &Kubernetes) -> Self {
        let alive = Arc::new(Mutex::new(Some(Vec::<NodePlace>::new())));
        let (seen, server) = (Arc::clone(&alive), api.clone());
        let beat = std::thread::spawn(move || {
            loop {
                let alive = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let Some(alive) = alive else { return };
                for place in alive {
                    // A server that is away for a moment is met again in a moment.
                    beat(&server, place).ok();
                }
                std::thread::sleep(PERIOD);
            }
        });
        Self { api: api.clone(), alive, beat: Some(beat) }
    }

    /// Registers a node with the taint, without provider id and addresses.
    pub(crate) fn register(&self, place: NodePlace, kind: ServerKind, control_plane: bool) -> Result<()> {
        register_node(&self.api, place, kind, UNINITIALIZED)?;
        if control_plane {
            let labels: Value = [(CONTROL_PLANE.to_owned(), json!(""))].into_iter().collect();
            let path = format!("/api/v1/nodes/{}", place.name());
            self.api.patch(&path, &json!({"metadata": {"labels": labels}}))?;
        }
        let name = place.name();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()},
        });
        self.api.ensure(LEASES, &lease)?;
        self.live(place);
        Ok(())
    }

    /// A node is there, and says so from now on.
    pub(crate) fn live(&self, place: NodePlace) {
        if let Some(alive) = self.alive.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            alive.push(place);
        }
    }

    /// No further sign of life from a node.
    pub(crate) fn fall_silent(&self, place: NodePlace) {
        if let Some(alive) = self.alive.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            alive.retain(|one| *one != place);
        }
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(beat) = self.beat.take() {
            // It has nothing to report.
            beat.join().ok();
        }
    }
}

/// A sign of life, and the word that the node is ready where somebody has written otherwise.
fn beat(api: &Kubernetes, place: NodePlace) -> Result<()> {
    api.patch(&format!("{LEASES}/{}", place.name()), &json!({"spec": {"renewTime": now()}}))?;
    let node = api.get(&format!("/api/v1/nodes/{}", place.name()))?;
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    if conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True") {
        return Ok(());
    }
    set_ready(api, place, "True")
}

/// The present time as leases hold it, with exactly six digits of the second.
pub(crate) fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_leases_need_them() {
        let text = now();
        assert_eq!(text.len(), "2026-01-01T00:00:00.000000Z".len(), "{text}");
        assert!(text.ends_with('Z'));
    }
}
