//! Determines who owns a load balancer and its children. Pure.
//!
//! Names serve only to find and adopt objects: what this controller creates has tags with the uids of cluster and Service, and an
//! object with another cluster's uid has another owner, whatever its name. The annotations of a Service prove nothing: any user who
//! may write a Service may write them, and a copied Service brings them from another cluster. Only the operator can change owners,
//! in cloud.conf (`former-cluster-names`, `adopt-foreign-cluster`).

mod children;
mod judge;

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use openstack_ccm_core::cloud::{ClusterIdentity, DEFAULT_CLUSTER_NAME};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::{Service, ServiceKey};
use openstack_ccm_openstack_api::neutron::FloatingIp;
use openstack_ccm_openstack_api::octavia::LoadBalancer;

use crate::load_balancer::identity::outputs;
use crate::load_balancer::names::{self, GeneratedName, Names};
use crate::load_balancer::objects::{Ownership, Tags};

pub(crate) use children::user;

/// What the claims of all Services of a cluster have in common.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) cluster: &'a ClusterIdentity,
    /// `former-cluster-names`: former names of the cluster.
    pub(crate) former_cluster_names: &'a [String],
    /// `adopt-foreign-cluster`: objects with another cluster's identity may be taken over.
    pub(crate) adopts_foreign: bool,
    /// The project of the credentials, if known.
    pub(crate) project_id: Option<&'a str>,
    pub(crate) others: Others<'a>,
}

/// The other Services of the cluster, if known.
#[derive(Clone, Copy)]
pub(crate) struct Others<'a>(pub(crate) Option<&'a dyn Neighbours>);

impl Others<'_> {
    /// Returns the addresses of all nodes of the cluster, if known.
    pub(crate) fn node_addresses(self) -> Option<BTreeSet<IpAddr>> {
        self.0.map(Neighbours::node_addresses)
    }

    /// Returns whether a floating IP with this description was made for a Service other than `own`.
    fn have_floating_ip(self, own: &ServiceKey, description: &str, cluster: &ClusterIdentity) -> bool {
        let served = self.0.map(Neighbours::served).unwrap_or_default();
        let others = served.iter().filter(|other| other.key != *own);
        others.into_iter().any(|other| Names::new(cluster, other).floating_ip_description() == description)
    }

    /// Returns the Service other than `own` that has a floating IP.
    fn with_floating_ip(
        self,
        own: &ServiceKey,
        floating_ip: &FloatingIp,
        cluster: &ClusterIdentity,
    ) -> Option<Service> {
        let served = self.0.map(Neighbours::served).unwrap_or_default();
        served.into_iter().filter(|other| other.key != *own).find(|other| {
            let mut uids = names::service_uids(&floating_ip.tags).peekable();
            let address = floating_ip.floating_ip_address.parse();
            match uids.peek() {
                Some(_) => uids.any(|uid| uid == other.uid),
                None => {
                    address.is_ok_and(|address| other.published.contains(&address))
                        || Names::new(cluster, other).floating_ip_description() == floating_ip.description
                }
            }
        })
    }
}

impl fmt::Debug for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Others").field(&self.0.is_some()).finish()
    }
}

/// Decides what one Service may claim as its own.
#[derive(Clone, Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) key: &'a ServiceKey,
    pub(crate) service_uid: &'a str,
    pub(crate) names: &'a Names,
    /// The part that is common to all Services, including the operator's settings.
    pub(crate) scope: Scope<'a>,
    /// The annotation `allow-foreign-cluster`: the Service may be a guest on a load balancer of another cluster.
    pub(crate) shares_foreign: bool,
    /// Whether the Service has annotations that only controllers write: it was served before, here or in the cluster that it was
    /// copied from.
    pub(crate) was_served: bool,
    /// Whether the Service was ever published, or a controller ever wrote to it.
    pub(crate) is_known: bool,
    /// The Service's generated name from before the cluster was renamed, if the load balancer still shows it.
    pub(crate) previous_name: Option<String>,
    /// Whether the load balancer belongs to another cluster.
    pub(crate) elsewhere: bool,
}

/// How a load balancer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundBy {
    /// The Service's annotation `load-balancer-id` names it.
    Annotation,
    /// It has the generated name.
    Name,
    /// It has OCCM's truncated name, which several Services may share.
    CutName,
    /// It has the name made from the Service's uid.
    LegacyName,
}

/// Whether a Service may use a load balancer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The Service may use the load balancer.
    Usable(Ownership),
    /// The load balancer only shares a name with this Service's.
    Unrelated,
    /// The Service must not touch the load balancer, and gets no other one until a user or operator intervenes.
    Refused(Failure),
}

/// Conditions for joining a load balancer that was made for another owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharingRules {
    /// Whether Octavia has tags, without which the owner of a listener is unknown.
    pub(crate) tags: bool,
    pub(crate) most_users: u32,
}

impl<'a> Claim<'a> {
    /// Creates the claim of a Service.
    pub(crate) fn new(
        service: &'a Service,
        names: &'a Names,
        scope: Scope<'a>,
        shares_foreign: bool,
    ) -> Self {
        Self {
            key: &service.key,
            service_uid: &service.uid,
            names,
            scope,
            shares_foreign,
            was_served: outputs::was_served(service),
            is_known: service.is_published || outputs::was_served(service),
            previous_name: None,
            elsewhere: false,
        }
    }

    /// Returns the claim for the children of a load balancer with these tags.
    pub(crate) fn on(&self, previous_name: Option<String>, tags: &Tags) -> Self {
        Self { previous_name, elsewhere: self.is_foreign(tags), ..self.clone() }
    }

    /// Returns the Service's generated name under a former name of this cluster, if the load balancer or a tag has it. The operator
    /// configures former names; or the tags show one, if they say that the load balancer was made for this very Service and contain
    /// no other name of it: a guest adds its own name to the owner's.
    pub(crate) fn previous_name_on(&self, found: &LoadBalancer) -> Option<String> {
        let tags = &found.tags;
        if self.is_foreign(tags) {
            return None;
        }
        let present = self.names.load_balancer();
        let mut shown: BTreeSet<&str> = names::user_names(tags).collect();
        shown.insert(&found.name);
        let former =
            self.scope.former_cluster_names.iter().map(|cluster| self.names.load_balancer_under(cluster));
        let former = former.filter(|name| name != present).find(|name| shown.contains(name.as_str()));
        former.or_else(|| {
            let ours = self.has_service_uid(tags) && self.foreign_cluster(tags).is_none();
            let mut of_this_service = shown.iter().filter(|name| self.names_this_service(name));
            match (of_this_service.next(), of_this_service.next()) {
                (Some(only), None) if ours && *only != present => Some((*only).to_owned()),
                _ => None,
            }
        })
    }

    /// Returns the cluster's name in the previous name of a load balancer, if the **default** name of a cluster would replace it
    /// and the operator has not configured a renaming: then a forgotten flag is more likely.
    pub(crate) fn doubtful_rename(&self, previous: &str) -> Option<String> {
        let Scope { cluster, former_cluster_names, .. } = &self.scope;
        let previous = GeneratedName::parse(previous)?.cluster;
        let doubtful = cluster.name == DEFAULT_CLUSTER_NAME
            && previous != cluster.name
            && !former_cluster_names.contains(&previous);
        doubtful.then_some(previous)
    }

    /// Returns whether only the Service's annotation claims a load balancer with its name: the user wants to adopt it.
    pub(crate) fn is_adoption(&self, found: &LoadBalancer) -> bool {
        let tags = &found.tags;
        let of_name = found.name == self.names.load_balancer();
        let is_tagged = names::user_names(tags).any(|name| name == self.names.load_balancer());
        of_name && !is_tagged && !self.has_service_uid(tags) && !self.is_described(found)
    }

    /// Returns whether only names and descriptions show that this cluster made the load balancer: another cluster may use the same
    /// ones. A name made from the Service's uid is unique.
    pub(crate) fn needs_evidence(&self, found: &LoadBalancer) -> bool {
        let ours = names::cluster_uids(&found.tags).any(|uid| uid == self.scope.cluster.uid);
        !ours
            && !self.scope.adopts_foreign
            && !self.has_service_uid(&found.tags)
            && found.name != self.names.legacy_load_balancer()
    }

    /// Returns whether the load balancer has this Service's own tag.
    pub(crate) fn is_tagged(&self, found: &LoadBalancer) -> bool {
        self.has_service_uid(&found.tags)
    }

    /// Returns whether the load balancer has only OCCM's tag of the Service, and no tag of another cluster.
    pub(crate) fn is_untagged_user(&self, found: &LoadBalancer) -> bool {
        let tags = &found.tags;
        tags.contains(self.names.load_balancer())
            && !self.has_service_uid(tags)
            && self.foreign_cluster(tags).is_none()
    }

    /// Returns whether an earlier Service of this name had a load balancer with the generated name, in this cluster, which has only
    /// one Service of a name at a time.
    pub(crate) fn is_left_by_namesake(&self, found: &LoadBalancer) -> bool {
        let tags = &found.tags;
        found.name == self.names.load_balancer()
            && names::cluster_uids(tags).any(|uid| uid == self.scope.cluster.uid)
            && names::service_uids(tags).next().is_some()
    }

    /// Returns whether the load balancer was made for this Service. It has the generated name, an older form of it, or the one
    /// under a former name of this cluster; or our description and our tag, which guests set too.
    fn is_named_for_service(&self, found: &LoadBalancer) -> bool {
        let name = found.name.as_str();
        let cut = self.names.cut_load_balancer();
        name == self.names.load_balancer()
            || name == self.names.legacy_load_balancer()
            || self.previous_name.as_deref() == Some(name)
            || ((cut.as_deref() == Some(name) || self.is_tagged(found)) && self.is_described(found))
    }

    /// Returns whether the description is that of the Service's load balancer, also as retained from an earlier Service of this
    /// name.
    fn is_described(&self, found: &LoadBalancer) -> bool {
        let own = self.names.description();
        found.description == own || found.description == names::retained_description(&own)
    }

    /// Returns the name of another cluster under which a load balancer is named for this very Service.
    fn cluster_named_on(&self, found: &LoadBalancer) -> Option<String> {
        let names = names::user_names(&found.tags).chain([found.name.as_str()]);
        let mut parsed = names.filter_map(GeneratedName::parse);
        let of_this =
            parsed.find(|name| name.service == *self.key && name.cluster != self.scope.cluster.name);
        of_this.map(|name| name.cluster)
    }

    fn names_this_service(&self, name: &str) -> bool {
        GeneratedName::parse(name).is_some_and(|parsed| parsed.service == *self.key)
    }

    /// Returns whether other Services use a load balancer that is this Service's.
    fn sharing(&self, tags: &Tags) -> Ownership {
        if names::user_names(tags).all(|name| self.is_own_name(name, tags)) {
            Ownership::Sole
        } else {
            Ownership::Shared
        }
    }

    /// Returns whether a generated name among the tags means this Service.
    fn is_own_name(&self, name: &str, tags: &Tags) -> bool {
        self.is_generated_name(name) || (self.has_service_uid(tags) && self.names_this_service(name))
    }

    /// Returns whether this is the present, previous or truncated name of the Service's load balancer.
    fn is_generated_name(&self, name: &str) -> bool {
        name == self.names.load_balancer()
            || self.names.cut_load_balancer().as_deref() == Some(name)
            || self.previous_name.as_deref() == Some(name)
    }

    fn has_service_uid(&self, tags: &Tags) -> bool {
        names::service_uids(tags).any(|uid| uid == self.service_uid)
    }

    /// Returns the other cluster to which the tags assign an object, if any.
    fn foreign_cluster<'t>(&self, tags: &'t Tags) -> Option<&'t str> {
        let ours = names::cluster_uids(tags).any(|uid| uid == self.scope.cluster.uid);
        names::cluster_uids(tags).next().filter(|_| !ours)
    }

    /// Returns whether the object belongs to another cluster, and the operator does not allow taking it over.
    fn is_foreign(&self, tags: &Tags) -> bool {
        !self.scope.adopts_foreign && self.foreign_cluster(tags).is_some()
    }
}

#[cfg(test)]
mod tests;
