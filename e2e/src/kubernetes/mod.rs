//! The Kubernetes of a world: etcd, kube-apiserver and a kube-proxy in each node's namespace.

pub mod api;
pub mod authorization;
pub mod objects;
pub mod pki;
pub mod proxy;
pub mod server;
