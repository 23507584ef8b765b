//! The Kubernetes of a world: etcd, kube-apiserver and a kube-proxy in each node's namespace.

pub(crate) mod api;
pub(crate) mod authorization;
pub(crate) mod objects;
pub(crate) mod pki;
pub(crate) mod proxy;
pub(crate) mod server;
