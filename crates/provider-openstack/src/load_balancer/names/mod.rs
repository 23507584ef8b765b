//! Generates and parses names, descriptions and tags of a Service's objects.
//!
//! Names and descriptions are OCCM's, so that each program finds what the other made. The two tags of this controller add what a
//! name cannot tell: which of several clusters with the same name, and which of successive Services with the same name.
//!
//! | tag | on | value |
//! | --- | --- | --- |
//! | `kube_service_<cluster>_<namespace>_<service>` | load balancer and its children | OCCM's: the generated name. Those on a load balancer count as its users. |
//! | `openstack-ccm-cluster=<uid>` | everything | uid of the cluster's namespace `kube-system` |
//! | `openstack-ccm-service=<uid>` | everything | uid of the Service |
//! | `kube_cluster_id_<uid>` | load balancer, floating IP | proposed for OCCM: uid of the namespace `kube-system`. Read, never written. |
//! | `openstack-ccm-former-vip=<address>` | floating IP | its former VIP, while its load balancer is recreated |
//! | `openstack-ccm-refused=<hash of the replacement>` | listener, floating IP | the cloud refused this replacement, which is not tried again until another one is asked for |
//!
//! Tags of the user are added to these and never look like them (`user_tag`).
//!
//! With a uid of 36 characters, our tags have at most 58 characters; Neutron allows 60, Octavia 255.
//!
//! Where the cloud has no tags of floating IPs, the description is OCCM's followed by ` (UID-OF-CLUSTER UID-OF-SERVICE)`, see
//! [`described_owner`].
//!
//! The description of a load balancer that outlives its Service begins with `Retained: `, see [`is_retained`].

mod generated;
mod owner;
mod tags;

use std::net::IpAddr;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::service::{Service, ServiceKey};

use crate::user_tag::MAX_OCTAVIA_LENGTH;
use generated::{DESCRIPTION, SECURITY_GROUP_PREFIX, cut, fit, floating_ip_description, generated_name};
pub use generated::{
    GeneratedName, describes_floating_ip, is_generated, is_generated_elsewhere, is_generated_security_group,
    is_made_for_service, is_retained, renamed_child, retained_description,
};
pub use owner::{described_owner, read_owner};
use tags::{CLUSTER_TAG, SERVICE_TAG};
pub use tags::{
    Tags, cluster_uids, is_cluster_tag, is_own_tag, is_service_tag, previous_vip_tag, previous_vips,
    refused_tag, says_owner, service_uids, user_names,
};

/// Returns the tag of everything that is made for a cluster.
pub fn cluster_tag(cluster: &ClusterIdentity) -> String {
    format!("{CLUSTER_TAG}{}", cluster.uid)
}

/// The names, descriptions and tags of one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    cluster: ClusterIdentity,
    service: ServiceKey,
    service_uid: String,
    /// The generated name of the load balancer before truncation.
    whole: String,
    load_balancer: String,
}

impl Names {
    pub fn new(cluster: &ClusterIdentity, service: &Service) -> Self {
        let whole = generated_name(&cluster.name, &service.key);
        Self {
            cluster: cluster.clone(),
            service: service.key.clone(),
            service_uid: service.uid.clone(),
            load_balancer: fit(&whole),
            whole,
        }
    }

    /// Returns the same names and tags under another name of the cluster.
    pub fn under(&self, cluster: &str) -> Self {
        let whole = generated_name(cluster, &self.service);
        let cluster = ClusterIdentity { name: cluster.to_owned(), ..self.cluster.clone() };
        Self { cluster, load_balancer: fit(&whole), whole, ..self.clone() }
    }

    /// Returns the name of the load balancer, which is also OCCM's tag of the Service's load balancers and listeners.
    pub fn load_balancer(&self) -> &str {
        &self.load_balancer
    }

    /// Returns the name of the load balancer under another name of the cluster.
    pub fn load_balancer_under(&self, cluster: &str) -> String {
        fit(&generated_name(cluster, &self.service))
    }

    /// Returns OCCM's name, if it differs: OCCM truncates long names, so that two Services may get the same one. A load balancer
    /// with this name is ours only if its description says so.
    pub fn cut_load_balancer(&self) -> Option<String> {
        (self.whole.len() > MAX_OCTAVIA_LENGTH).then(|| cut(&self.whole, MAX_OCTAVIA_LENGTH).to_owned())
    }

    /// Returns the name from before OCCM had its own names: `a` and the Service's uid without dashes, 32 characters in all.
    pub fn legacy_load_balancer(&self) -> String {
        let digits = self.service_uid.chars().filter(|letter| *letter != '-');
        std::iter::once('a').chain(digits).take(32).collect()
    }

    /// Returns the name of the listener of the port with this index in `spec.ports`.
    pub fn listener(&self, index: usize) -> String {
        self.child("listener", index)
    }

    /// Returns the name of the listener for the load balancer's metrics.
    pub fn metrics_listener(&self) -> String {
        fit(&format!("listener_metrics_{}", self.load_balancer))
    }

    /// Returns the name of the pool of the port with this index.
    pub fn pool(&self, index: usize) -> String {
        self.child("pool", index)
    }

    /// Returns the name of the health monitor of the port with this index.
    pub fn monitor(&self, index: usize) -> String {
        self.child("monitor", index)
    }

    fn child(&self, kind: &str, index: usize) -> String {
        fit(&format!("{kind}_{index}_{}", self.load_balancer))
    }

    /// Returns the description of the load balancer. It says "external" even for internal ones.
    pub fn description(&self) -> String {
        fit(&format!("{DESCRIPTION}{} from cluster {}", self.service, self.cluster.name))
    }

    pub fn floating_ip_description(&self) -> String {
        floating_ip_description(&self.service, &self.cluster.name)
    }

    /// Returns the name of the security group. The Service's uid makes it unique, whatever the cluster's name.
    pub fn security_group(&self) -> String {
        let ServiceKey { namespace, name } = &self.service;
        cut(&format!("{SECURITY_GROUP_PREFIX}{}-{namespace}-{name}", self.service_uid), MAX_OCTAVIA_LENGTH)
            .to_owned()
    }

    pub fn security_group_description(&self) -> String {
        fit(&format!("{}{}", self.security_group_description_stem(), self.cluster.name))
    }

    /// Returns the prefix of the description of the Service's security group, which does not depend on the cluster's name.
    pub fn security_group_description_stem(&self) -> String {
        format!("Security Group for {} Service LoadBalancer in cluster ", self.service)
    }

    /// Returns the tags of the load balancer and its children.
    pub fn tags(&self) -> Tags {
        let mut tags = self.identity_tags();
        tags.insert(self.load_balancer.clone());
        tags
    }

    /// Returns the tags of Neutron objects, for which the generated name would be too long.
    pub fn identity_tags(&self) -> Tags {
        Tags::from([cluster_tag(&self.cluster), self.service_tag()])
    }

    /// Returns the tag that only this Service's objects have.
    pub fn service_tag(&self) -> String {
        format!("{SERVICE_TAG}{}", self.service_uid)
    }
}

/// Returns the name of a member in serial mode. In batches, members have the name of the node.
pub fn serial_member(node: &str, address: IpAddr, port: u16) -> String {
    fit(&format!("member_{node}_{address}_{port}"))
}

#[cfg(test)]
mod tests;
