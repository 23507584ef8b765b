//! Nodes, Services and endpoints as plain objects: there is no kubelet.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::api::{Kubernetes, NAMESPACE};
use super::server::ServerKind;
use crate::network::NodePlace;
use crate::network::datagram;

/// Adds a node that is ready, with a kubelet of a version and with addresses of the families of the cluster.
pub(crate) fn add_node(api: &Kubernetes, place: NodePlace, kind: ServerKind) -> Result<()> {
    let name = place.name();
    let mut pod_ranges = vec![place.pod_range()];
    if kind.dual_stack {
        pod_ranges.push(place.pod_range_v6());
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "spec": {
            "podCIDR": place.pod_range(), "podCIDRs": pod_ranges,
            "providerID": format!("openstack:///{}", place.server()),
        },
    });
    api.ensure("/api/v1/nodes", &object)?;
    set_kubelet(api, place, kind)?;
    // Admission taints a new node until somebody has seen it ready.
    api.patch(&format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": null}})).map(drop)
}

/// Writes the status that a kubelet of a version would write.
pub(crate) fn set_kubelet(api: &Kubernetes, place: NodePlace, kind: ServerKind) -> Result<()> {
    let name = place.name();
    let mut addresses = vec![json!({"type": "InternalIP", "address": place.address()})];
    if kind.dual_stack {
        addresses.push(json!({"type": "InternalIP", "address": place.address_v6()}));
    }
    addresses.push(json!({"type": "Hostname", "address": name}));
    let status = json!({"status": {
        "addresses": addresses,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        "nodeInfo": {
            "kubeletVersion": kind.minor.kubelet_version(), "kubeProxyVersion": "", "operatingSystem": "linux",
            "architecture": "amd64", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "",
            "bootID": "", "machineID": "", "systemUUID": "",
        },
    }});
    api.patch(&format!("/api/v1/nodes/{name}/status"), &status).map(drop)
}

/// Registers a node as a kubelet does that leaves the rest to the cloud: with a taint, and without provider id and addresses.
pub(crate) fn register_node(api: &Kubernetes, place: NodePlace, kind: ServerKind, taint: &str) -> Result<()> {
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
    set_kubelet(api, place, kind)?;
    let hostname = json!({"status": {"addresses": [{"type": "Hostname", "address": name}]}});
    api.patch(&format!("/api/v1/nodes/{name}/status"), &hostname).map(drop)
}

/// Writes whether a node is ready: `True`, or `Unknown` when its kubelet has fallen silent.
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
    pub annotations: Map<String, Value>,
    /// Ports of the load balancer.
    pub ports: Vec<u16>,
    /// Ports for datagrams. Pods take them at [`datagram::PORT`].
    pub datagrams: Vec<u16>,
    /// `ipFamilies`: one or two of `IPv4` and `IPv6`.
    pub families: &'static [&'static str],
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
            datagrams: Vec::new(),
            families: &["IPv4"],
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

    /// Name, port of the Service, port of the pods, protocol.
    fn all_ports(&self) -> impl Iterator<Item = (String, u16, u16, &'static str)> {
        let streams = self.ports.iter().map(|port| (format!("p{port}"), *port, self.target, "TCP"));
        let datagrams = self.datagrams.iter().map(|port| (format!("d{port}"), *port, datagram::PORT, "UDP"));
        streams.chain(datagrams)
    }

    fn object(&self) -> Value {
        let ports: Vec<Value> = self
            .all_ports()
            .map(|(name, port, target, protocol)| {
                json!({"name": name, "port": port, "targetPort": target, "protocol": protocol})
            })
            .collect();
        let policy = if self.families.len() == 2 { "RequireDualStack" } else { "SingleStack" };
        let mut spec = json!({
            "type": self.kind, "ports": ports, "ipFamilyPolicy": policy, "ipFamilies": self.families,
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
    pub(crate) fn create(&self, api: &Kubernetes, places: &[NodePlace]) -> Result<()> {
        api.create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &self.object())?;
        self.create_endpoints(api, places)
    }

    /// Creates the endpoints of a Service that is there.
    pub(crate) fn create_endpoints(&self, api: &Kubernetes, places: &[NodePlace]) -> Result<()> {
        for family in self.families {
            api.create(&slices_path(), &self.endpoints(places, family))?;
        }
        Ok(())
    }

    fn endpoints(&self, places: &[NodePlace], family: &str) -> Value {
        let ports: Vec<Value> = self
            .all_ports()
            .map(|(name, _, target, protocol)| json!({"name": name, "port": target, "protocol": protocol}))
            .collect();
        let address = |place: &NodePlace| {
            if family == "IPv6" { place.ingress_address_v6() } else { place.ingress_address() }
        };
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family, "ports": ports,
            "metadata": {
                "name": slice_name(&self.name, family), "labels": {"kubernetes.io/service-name": self.name},
            },
            "endpoints": places.iter().map(|place| json!({
                "addresses": [address(place)], "nodeName": place.name(),
                "conditions": {"ready": true, "serving": true, "terminating": false},
            })).collect::<Vec<_>>(),
        })
    }

    /// Writes ports and endpoints anew after a change of the sketch.
    pub(crate) fn update(&self, api: &Kubernetes, places: &[NodePlace]) -> Result<()> {
        let object = self.object();
        api.patch(
            &Kubernetes::service_path(&self.name),
            &json!({"spec": {"ports": object["spec"]["ports"]}}),
        )?;
        for family in self.families {
            let path = format!("{}/{}", slices_path(), slice_name(&self.name, family));
            let endpoints = self.endpoints(places, family);
            let change = json!({"ports": endpoints["ports"], "endpoints": endpoints["endpoints"]});
            api.patch(&path, &change)?;
        }
        Ok(())
    }
}

fn slices_path() -> String {
    format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices")
}

fn slice_name(service: &str, family: &str) -> String {
    format!("{service}-{}", family.to_lowercase())
}

/// Deletes a Service and its endpoints. The Service goes when the controller lets it.
pub(crate) fn delete_service(api: &Kubernetes, name: &str) -> Result<()> {
    api.delete(&Kubernetes::service_path(name))?;
    // One for each family that it has.
    for family in ["IPv4", "IPv6"] {
        api.delete(&format!("{}/{}", slices_path(), slice_name(name, family)))?;
    }
    Ok(())
}
