//! The Kubernetes of a world: etcd, kube-apiserver and a kube-proxy in each node's namespace; kube-controller-manager,
//! kubelets and pods where a group needs a whole cluster.

pub(crate) mod api;
pub(crate) mod audit;
pub(crate) mod authorization;
pub(crate) mod canary;
pub(crate) mod cert_manager;
pub(crate) mod history;
pub(crate) mod kubelet;
pub(crate) mod manager;
pub(crate) mod manifests;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod objects;
pub(crate) mod overlay;
pub(crate) mod owner;
pub(crate) mod pki;
pub(crate) mod pod;
pub(crate) mod proxy;
pub(crate) mod pulse;
pub(crate) mod registry;
pub(crate) mod server;
pub(crate) mod short_pod;
pub(crate) mod solvers;
