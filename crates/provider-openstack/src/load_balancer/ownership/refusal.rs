//! What a user reads whose Service must not use a load balancer.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::LoadBalancer;

use super::FoundBy;
use crate::load_balancer::annotations::{LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID};
use crate::load_balancer::names;

/// It carries the identity of another cluster.
pub(super) fn foreign_cluster(found: &LoadBalancer, by: FoundBy) -> Failure {
    let uids: Vec<&str> = names::cluster_uids(&found.tags).collect();
    let remedy = if by == FoundBy::Annotation {
        format!("remove {} from the Service", LOAD_BALANCER_ID.key)
    } else {
        "give the clusters different names with --cluster-name".to_owned()
    };
    Failure::user_input(format!(
        "load balancer {} ({}) belongs to another cluster (kube-system namespace {}): {remedy}; where that cluster is \
         gone for good, the operator can have its load balancers taken over with adopt-foreign-cluster in cloud.conf",
        found.name,
        found.id,
        uids.join(", ")
    ))
}

/// The annotation that names it was written in another cluster.
pub(super) fn copied(found: &LoadBalancer) -> Failure {
    Failure::user_input(format!(
        "load balancer {} ({}) was made for a cluster of another name, and {} was copied from there with the Service: \
         remove {}, {} and {} from the Service, which then gets a load balancer of its own; if it was this cluster that \
         had the other name, the operator adds it to former-cluster-names in cloud.conf",
        found.name,
        found.id,
        LOAD_BALANCER_ID.key,
        LOAD_BALANCER_ID.key,
        LOAD_BALANCER_ADDRESS.key,
        OWNED_LOAD_BALANCER_ID.key
    ))
}

/// It has the name, and nothing else says that it was made for the Service.
pub(super) fn not_described(found: &LoadBalancer) -> Failure {
    Failure::user_input(format!(
        "load balancer {} ({}) has this Service's name but neither its tags nor its description: set {} to {} to adopt \
         it, or rename it",
        found.name, found.id, LOAD_BALANCER_ID.key, found.id
    ))
}
