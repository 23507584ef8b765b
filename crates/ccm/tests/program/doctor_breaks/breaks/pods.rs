//! Pods and slices that disagree.

use serde_json::json;

use super::{Break, anywhere};
use crate::doctor_breaks::stage::Stage;

pub(super) const BREAKS: &[Break] = &[
    Break::new("a pod that crashes behind an endpoint that is published all the same", anywhere, |stage| {
        stage.patch("services", "web", &json!({"spec": {"publishNotReadyAddresses": true}}));
        status(stage, &json!({"phase": "Running",
            "conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}],
            "containerStatuses": [{"name": "one", "ready": false, "restartCount": 7,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}));
    })
    .told(&["D808"]),
    Break::new("a pod that was evicted, and a slice that nobody updates", anywhere, |stage| {
        status(stage, &json!({"phase": "Failed", "reason": "Evicted", "conditions": [{"type": "Ready", "status": "False"}]}));
    })
    .told(&["D808"]),
    Break::new("a pod that is gone, and a slice that nobody updates", anywhere, |stage| {
        stage.world.kube.delete("pods", "default", "web-1").unwrap();
    })
    .told(&["D808"]),
    Break::new("a pod with other labels, and a slice that nobody updates", anywhere, |stage| {
        stage.patch("pods", "web-1", &json!({"metadata": {"labels": {"app": "other"}}}));
    }),
    Break::new("a pod without a status of its containers", anywhere, |stage| {
        status(stage, &json!({"containerStatuses": []}));
    }),
];

fn status(stage: &Stage, status: &serde_json::Value) {
    stage.world.kube.patch_status("pods", "default", "web-1", &json!({"status": status})).unwrap();
}
