//! The ClusterRole that doctor needs.

/// The output of `--print-rbac`. All its rules are read-only.
pub const ROLE: &str = r#"# What `openstack-ccm doctor` reads. With `--live` whoever runs it also has to create and delete Namespaces and Pods.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: openstack-ccm-doctor
rules:
  - apiGroups: [""]
    resources: [namespaces, nodes, pods, services]
    verbs: [get, list]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get]
  - apiGroups: [""]
    resources: [events]
    verbs: [list]
  - apiGroups: [apps]
    resources: [deployments, daemonsets, statefulsets]
    verbs: [list]
  - apiGroups: [batch]
    resources: [cronjobs]
    verbs: [list]
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [list]
  - apiGroups: [networking.k8s.io]
    resources: [ingresses, networkpolicies]
    verbs: [list]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get]
  # Policies of network plugins.
  - apiGroups: [cilium.io]
    resources: [ciliumnetworkpolicies, ciliumclusterwidenetworkpolicies]
    verbs: [list]
  - apiGroups: [crd.projectcalico.org]
    resources: [networkpolicies, globalnetworkpolicies]
    verbs: [list]
  - apiGroups: [crd.antrea.io]
    resources: [networkpolicies, clusternetworkpolicies]
    verbs: [list]
  - apiGroups: [policy.networking.k8s.io]
    resources: [adminnetworkpolicies, baselineadminnetworkpolicies]
    verbs: [list]
  - apiGroups: [gateway.networking.k8s.io]
    resources: [gateways, httproutes]
    verbs: [list]
  - apiGroups: [gateway.envoyproxy.io]
    resources: [clienttrafficpolicies]
    verbs: [list]
  - apiGroups: [gateway.nginx.org]
    resources: [nginxproxies]
    verbs: [list]
  - apiGroups: [projectcontour.io]
    resources: [contourconfigurations]
    verbs: [list]
"#;
