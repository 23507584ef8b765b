//! The objects of a canary, as JSON, for `openstack-ccm canary --once`. A test compares the chart's objects with them.

use serde_json::{Value, json};

use crate::addresses::{Addresses, Pair};
use crate::{CLASS, CONCLUSIVE, CONTROL, DAEMON_SETS, FIT, LABEL, PORT, READINESS_PORT, SUBJECT};

/// The settings in which canaries differ.
#[derive(Clone, Debug)]
pub struct Canary {
    pub namespace: String,
    /// The image of openstack-ccm.
    pub image: String,
    /// Addresses of the Services.
    pub addresses: Addresses,
}

/// The user of the pods; the number means the same without `/etc/passwd`.
pub const USER_ID: u32 = 1001;

impl Canary {
    /// Returns the namespace, which enforces the strictest level of pod security.
    pub fn namespace(&self) -> Value {
        let mut labels = selector();
        for mode in ["enforce", "audit", "warn"] {
            labels[format!("pod-security.kubernetes.io/{mode}")] = json!("restricted");
        }
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels},
        })
    }

    /// Returns both Services, without their status.
    pub fn services(&self) -> [Value; 2] {
        [CONTROL, SUBJECT].map(|name| {
            let spec = json!({
                "type": "LoadBalancer",
                "loadBalancerClass": CLASS,
                "allocateLoadBalancerNodePorts": false,
                "ipFamilyPolicy": "PreferDualStack",
                // Readiness carries the verdict: it must not remove the endpoints of the next look.
                "publishNotReadyAddresses": true,
                "selector": selector(),
                "ports": [{"name": "token", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
            });
            self.object("v1", "Service", name, &spec)
        })
    }

    /// Returns the policy that allows only the canary's traffic.
    pub fn network_policy(&self) -> Value {
        let port = |port: u16, protocol: &str| json!({"port": port, "protocol": protocol});
        let spec = json!({
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [port(PORT, "TCP"), port(READINESS_PORT, "TCP")]}],
            "egress": [{"ports": [port(PORT, "TCP"), port(53, "UDP"), port(53, "TCP")]}],
        });
        self.object("networking.k8s.io/v1", "NetworkPolicy", LABEL.1, &spec)
    }

    /// Returns a pod bound to one node, without the scheduler. All pods of this canary share `token`.
    pub fn pod(&self, node: &str, token: &str) -> Value {
        let mut spec = self.pod_spec(&json!({"name": "TOKEN", "value": token}));
        spec["nodeName"] = json!(node);
        let name = format!("{}-", LABEL.1);
        let mut object = self.object("v1", "Pod", "", &spec);
        object["metadata"] = json!({"generateName": name, "namespace": self.namespace, "labels": selector()});
        object
    }

    /// Returns the DaemonSet of a permanent canary.
    pub fn daemon_set(&self) -> Value {
        let spec = json!({"selector": {"matchLabels": selector()}, "template": self.template()});
        self.object("apps/v1", "DaemonSet", DAEMON_SETS[0], &spec)
    }

    /// Returns the pod that the DaemonSet of this uid creates on a node.
    pub fn daemon_pod(&self, node: &str, token: &str, daemon_set: &str) -> Value {
        let mut object = self.pod(node, token);
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": DAEMON_SETS[0],
            "uid": daemon_set, "controller": true, "blockOwnerDeletion": true}]);
        object
    }

    /// Returns the pod template of a DaemonSet: its pods share the hash of the rollout as token.
    pub fn template(&self) -> Value {
        let hash = json!({"fieldRef": {"fieldPath": "metadata.labels['controller-revision-hash']"}});
        json!({"metadata": {"labels": selector()}, "spec": self.pod_spec(&json!({"name": "TOKEN", "valueFrom": hash}))})
    }

    fn pod_spec(&self, token: &Value) -> Value {
        let look = json!([
            "/bin/openstack-ccm",
            "canary",
            "look",
            "--token=$(TOKEN)",
            "--pod-ips=$(POD_IPS)",
            format!("--control={CONTROL}"),
            format!("--addresses={}", self.addresses),
        ]);
        let mut conclusive = self.container(CONCLUSIVE, &look);
        let pod_ips = json!({"name": "POD_IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}});
        conclusive["env"] = json!([token, pod_ips]);
        conclusive["ports"] = json!([{"name": "token", "containerPort": PORT, "protocol": "TCP"}]);
        json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": USER_ID, "runAsGroup": USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "nodeSelector": {"kubernetes.io/os": "linux"},
            // No process runs on these nodes.
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["virtual-kubelet", "kwok"]}]},
            ]}}},
            "tolerations": [{"operator": "Exists"}],
            "containers": [conclusive, self.container(FIT, &json!(["/bin/openstack-ccm", "canary", "idle"]))],
        })
    }

    fn container(&self, name: &str, arguments: &Value) -> Value {
        json!({
            "name": name,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "args": arguments,
            "readinessProbe": {
                "httpGet": {"path": format!("/{name}"), "port": READINESS_PORT},
                "periodSeconds": 5, "timeoutSeconds": 2, "failureThreshold": 2,
            },
            "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
        })
    }

    fn object(&self, version: &str, kind: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": version, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": self.namespace, "labels": selector()},
        })
    }
}

/// The labels that select the pods.
fn selector() -> Value {
    json!({LABEL.0: LABEL.1})
}

/// Returns `status.loadBalancer.ingress` of a canary Service: an address for each family of its ClusterIPs.
pub fn ingress(
    service: &str,
    cluster_ips: &[String],
    addresses: &Addresses,
) -> Vec<(std::net::IpAddr, &'static str)> {
    let pairs = cluster_ips.iter().filter_map(|ip| addresses.of_family(ip.parse().ok()?));
    let entry = |pair: Pair| {
        if service == SUBJECT { (pair.subject, "Proxy") } else { (pair.control, "VIP") }
    };
    pairs.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Namespace, Pod, PodTemplateSpec, Service};
    use k8s_openapi::api::networking::v1::NetworkPolicy;
    use serde_json::from_value;

    use super::*;

    fn canary() -> Canary {
        Canary {
            namespace: "n".into(),
            image: "registry.example.org/openstack-ccm:1".into(),
            addresses: Addresses::permanent(),
        }
    }

    /// Fields that the types do not know would be lost on the way through them.
    #[test]
    fn the_objects_are_what_kubernetes_knows() {
        let canary = canary();
        let namespace: Namespace = from_value(canary.namespace()).unwrap();
        assert_eq!(serde_json::to_value(namespace).unwrap(), canary.namespace());
        for service in canary.services() {
            let typed: Service = from_value(service.clone()).unwrap();
            assert_eq!(serde_json::to_value(typed).unwrap(), service);
        }
        let policy: NetworkPolicy = from_value(canary.network_policy()).unwrap();
        assert_eq!(serde_json::to_value(policy).unwrap(), canary.network_policy());
        let pod: Pod = from_value(canary.pod("node1", "t")).unwrap();
        assert_eq!(serde_json::to_value(pod).unwrap(), canary.pod("node1", "t"));
        let pod: Pod = from_value(canary.daemon_pod("node1", "t", "u")).unwrap();
        assert_eq!(serde_json::to_value(pod).unwrap(), canary.daemon_pod("node1", "t", "u"));
        let template: PodTemplateSpec = from_value(canary.template()).unwrap();
        assert_eq!(serde_json::to_value(template).unwrap(), canary.template());
    }

    #[test]
    fn each_family_of_a_service_gets_its_address() {
        let addresses = Addresses::permanent();
        let ips = ["10.96.0.7".to_owned(), "fd00::7".to_owned()];
        let shown = |service| -> Vec<String> {
            let entries = ingress(service, &ips, &addresses);
            entries.iter().map(|(ip, mode)| format!("{ip} {mode}")).collect()
        };
        assert_eq!(shown(CONTROL), ["192.0.2.1 VIP", "2001:db8::1 VIP"]);
        assert_eq!(shown(SUBJECT), ["192.0.2.2 Proxy", "2001:db8::2 Proxy"]);
        assert!(ingress(CONTROL, &["None".to_owned()], &addresses).is_empty());
    }
}
