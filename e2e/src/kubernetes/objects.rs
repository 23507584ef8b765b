//! Nodes, Services and endpoints as plain objects: there is no kubelet.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::api::{Kubernetes, NAMESPACE};
use crate::artifacts::Minor;
use crate::network::NodePlace;

/// Adds a node that is ready, with a kubelet of a version.
///
/// # Errors
/// The server refuses it.
pub(crate) fn add_node(api: &Kubernetes, place: NodePlace, kubelet: Minor) -> Result<()> {
    let name = place.name();
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "spec": {
            "podCIDR": place.pod_range(), "podCIDRs": [place.pod_range()],
            "providerID": format!("openstack:///00000000-0000-4000-8000-00000000000{}", place.0),
        },
    });
    api.ensure("/api/v1/nodes", &object)?;
    set_kubelet(api, place, kubelet)?;
    // Admission taints a new node until somebody has seen it ready.
    api.patch(&format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": null}})).map(drop)
}

/// Writes the status that a kubelet of a version would write.
///
/// # Errors
/// The server refuses it.
pub(crate) fn set_kubelet(api: &Kubernetes, place: NodePlace, kubelet: Minor) -> Result<()> {
    let name = place.name();
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": place.address()}, {"type": "Hostname", "address": name}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        "nodeInfo": {
            "kubeletVersion": kubelet.kubelet_version(), "kubeProxyVersion": "", "operatingSystem": "linux",
            "architecture": "amd64", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "",
            "bootID": "", "machineID": "", "systemUUID": "",
        },
    }});
    api.patch(&format!("/api/v1/nodes/{name}/status"), &status).map(drop)
}

/// Registers a node as a kubelet does that leaves the rest to the cloud: with a taint, and without provider id and addresses.
///
/// # Errors
/// The server refuses it.
pub(crate) fn register_node(api: &Kubernetes, place: NodePlace, kubelet: Minor, taint: &str) -> Result<()> {
    let name = place.name();
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "spec": {
            "podCIDR": place.pod_range(), "podCIDRs": [place.pod_range()],
            "taints": [{"key": taint, "value": "true", "effect": "NoSchedule"}],
        },
    });
    api.ensure("/api/v1/nodes", &object)?;
    set_kubelet(api, place, kubelet)?;
    let hostname = json!({"status": {"addresses": [{"type": "Hostname", "address": name}]}});
    api.patch(&format!("/api/v1/nodes/{name}/status"), &hostname).map(drop)
}

/// Writes whether a node is ready: `True`, or `Unknown` when its kubelet has fallen silent.
///
/// # Errors
/// The server refuses it.
pub(crate) fn set_ready(api: &Kubernetes, place: NodePlace, ready: &str) -> Result<()> {
    let path = format!("/api/v1/nodes/{}/status", place.name());
    let condition = json!([{"type": "Ready", "status": ready, "reason": "Test", "message": ""}]);
    api.patch_list(&path, &json!({"status": {"conditions": condition}}))
}

/// What a Service of a scenario looks like.
#[derive(Clone, Debug)]
pub(crate) struct ServiceSketch {
    /// Its name, also the name of its endpoints.
    pub name: String,
    /// `type`.
    pub kind: &'static str,
    /// Annotations.
    pub annotations: Map<String, Value>,
    /// Ports of the load balancer.
    pub ports: Vec<u16>,
    /// Port of the pods: 80 wants the PROXY header, 81 does not.
    pub target: u16,
    /// `externalTrafficPolicy`; empty leaves it out.
    pub policy: &'static str,
    /// `loadBalancerSourceRanges`; empty leaves them out.
    pub source_ranges: Vec<String>,
}

impl ServiceSketch {
    /// A load balancer on port 80 with PROXY protocol `v1` or `v2`.
    pub(crate) fn proxy(name: &str, version: &str, internal: bool) -> Self {
        Self::plain(name, internal).annotate("loadbalancer.openstack.org/proxy-protocol", version)
    }

    /// A load balancer on port 80 that only forwards.
    pub(crate) fn plain(name: &str, internal: bool) -> Self {
        let sketch = Self {
            name: name.to_owned(),
            kind: "LoadBalancer",
            annotations: Map::new(),
            ports: vec![80],
            target: 80,
            policy: "Cluster",
            source_ranges: Vec::new(),
        };
        sketch.annotate("service.beta.kubernetes.io/openstack-internal-load-balancer", &internal.to_string())
    }

    /// The same with one more annotation.
    #[must_use]
    pub(crate) fn annotate(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), Value::from(value));
        self
    }

    fn object(&self) -> Value {
        let ports: Vec<Value> = self
            .ports
            .iter()
            .map(
                |port| json!({"name": format!("p{port}"), "port": port, "targetPort": self.target, "protocol": "TCP"}),
            )
            .collect();
        let mut spec = json!({
            "type": self.kind, "ports": ports, "ipFamilyPolicy": "SingleStack",
        });
        if !self.policy.is_empty() {
            spec["externalTrafficPolicy"] = json!(self.policy);
        }
        if !self.source_ranges.is_empty() {
            spec["loadBalancerSourceRanges"] = json!(self.source_ranges);
        }
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": self.name, "annotations": self.annotations}, "spec": spec,
        })
    }

    /// Creates the Service and its endpoints on nodes.
    ///
    /// # Errors
    /// The server refuses one of them.
    pub(crate) fn create(&self, api: &Kubernetes, places: &[NodePlace]) -> Result<()> {
        api.create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &self.object())?;
        api.create(
            &format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"),
            &self.endpoints(places),
        )
        .map(drop)
    }

    fn endpoints(&self, places: &[NodePlace]) -> Value {
        let ports: Vec<Value> = self
            .ports
            .iter()
            .map(|port| json!({"name": format!("p{port}"), "port": self.target, "protocol": "TCP"}))
            .collect();
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": ports,
            "metadata": {"name": self.name, "labels": {"kubernetes.io/service-name": self.name}},
            "endpoints": places.iter().map(|place| json!({
                "addresses": [place.ingress_address()], "nodeName": place.name(),
                "conditions": {"ready": true, "serving": true, "terminating": false},
            })).collect::<Vec<_>>(),
        })
    }

    /// Writes ports and endpoints anew after a change of the sketch.
    ///
    /// # Errors
    /// The server refuses one of them.
    pub(crate) fn update(&self, api: &Kubernetes, places: &[NodePlace]) -> Result<()> {
        let object = self.object();
        api.patch(
            &Kubernetes::service_path(&self.name),
            &json!({"spec": {"ports": object["spec"]["ports"]}}),
        )?;
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/{}", self.name);
        let endpoints = self.endpoints(places);
        api.patch(&path, &json!({"ports": endpoints["ports"], "endpoints": endpoints["endpoints"]})).map(drop)
    }
}

/// Deletes a Service and its endpoints. The Service goes when the controller lets it.
///
/// # Errors
/// The server refuses.
pub(crate) fn delete_service(api: &Kubernetes, name: &str) -> Result<()> {
    api.delete(&Kubernetes::service_path(name))?;
    api.delete(&format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/{name}"))
}
