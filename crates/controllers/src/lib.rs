//! Kubernetes controllers over the provider traits of `openstack-ccm-core`.

pub mod election;
