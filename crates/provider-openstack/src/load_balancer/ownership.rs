//! Whose a load balancer is, and whose the things on it are. Pure.
//!
//! Names are only for finding and adopting: what is made here carries the uids of cluster and Service as tags, and an
//! object with another cluster's uid is somebody else's, whatever its name.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::service::{Service, ServiceKey};
use openstack_ccm_openstack_api::neutron::{FloatingIp, SecurityGroup};
use openstack_ccm_openstack_api::octavia::{Listener, LoadBalancer, Pool};

use super::model::Tags;
use super::model::observed::Ownership;
use super::model::tree::Reclaim;
use super::names::{self, ClusterIdentity, GeneratedName, Names};
use super::report;

/// What one Service can claim as its own.
#[derive(Clone, Debug)]
pub(super) struct Claim<'a> {
    /// The Service.
    pub(super) key: &'a ServiceKey,
    /// Its uid.
    pub(super) service_uid: &'a str,
    /// Its names.
    pub(super) names: &'a Names,
    /// The cluster.
    pub(super) cluster: &'a ClusterIdentity,
    /// Whether what carries another cluster's identity may be taken over.
    pub(super) allow_foreign_cluster: bool,
    /// Whether an earlier pass wrote the annotation `load-balancer-id`, and not the user.
    pub(super) own_output: bool,
    /// The Service's generated name before the cluster was renamed, where the load balancer still tells it.
    pub(super) former_name: Option<String>,
}

/// How a load balancer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// The Service's annotation `load-balancer-id` names it.
    Annotation,
    /// It has the generated name.
    Name,
    /// It has the name that OCCM cuts off, which several Services may share.
    CutName,
    /// It has the name made of the Service's uid.
    LegacyName,
}

/// To whom a load balancer belongs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The Service may use it.
    Usable(Ownership),
    /// It only has a name in common with this Service's.
    Unrelated,
    /// The Service must not touch it, and cannot have another one before somebody acts.
    Refused(Failure),
}

/// When a Service may join a load balancer that was made for somebody else.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharingRules {
    /// Whether Octavia has tags: without them nobody could tell whose the listeners are.
    pub(super) tags: bool,
    /// `max-shared-lb`
    pub(super) most_users: u32,
}

impl<'a> Claim<'a> {
    /// What a Service can claim.
    pub(super) fn new(
        service: &'a Service,
        names: &'a Names,
        cluster: &'a ClusterIdentity,
        allow_foreign_cluster: bool,
    ) -> Self {
        Self {
            key: &service.key,
            service_uid: &service.uid,
            names,
            cluster,
            allow_foreign_cluster,
            own_output: report::is_own_output(service),
            former_name: None,
        }
    }

    /// The same claim on what hangs on a load balancer that was found.
    pub(super) fn on(&self, former_name: Option<String>) -> Self {
        Self { former_name, ..self.clone() }
    }

    /// The Service's generated name under a former name of this cluster: the load balancer, or a tag on it, has the
    /// name of the same Service in a cluster of another name. That alone says nothing, since another cluster may well
    /// have a Service of that name; but the load balancer was not named by the user, it was found or made by an
    /// earlier pass.
    pub(super) fn former_name_on(&self, found: &LoadBalancer) -> Option<String> {
        let tags: Tags = found.tags.iter().cloned().collect();
        let trusted = self.own_output && self.foreign_cluster(&tags).is_none();
        let is_former = |name: &&str| {
            GeneratedName::parse(name)
                .is_some_and(|parsed| parsed.service == *self.key && parsed.cluster != self.cluster.name)
        };
        let mut names = std::iter::once(found.name.as_str()).chain(names::user_names(&tags));
        names.find(is_former).filter(|_| trusted).map(str::to_owned)
    }

    /// Judges a load balancer that was found for this Service.
    pub(super) fn judge(&self, found: &LoadBalancer, by: FoundBy, sharing: SharingRules) -> Verdict {
        self.on(self.former_name_on(found)).judge_known(found, by, sharing)
    }

    fn judge_known(&self, found: &LoadBalancer, by: FoundBy, sharing: SharingRules) -> Verdict {
        let tags: Tags = found.tags.iter().cloned().collect();
        if let Some(uid) = self.foreign_cluster(&tags).filter(|_| !self.allow_foreign_cluster) {
            return Verdict::Refused(foreign_cluster(found, uid));
        }
        let owned = match by {
            FoundBy::Annotation => self.is_named_for_service(found, &tags),
            FoundBy::LegacyName => true,
            FoundBy::Name | FoundBy::CutName => self.has_service_uid(&tags) || self.is_described(found),
        };
        match by {
            _ if owned => Verdict::Usable(self.sharing(&tags)),
            FoundBy::Annotation => self.judge_guest(found, &tags, sharing),
            FoundBy::CutName => Verdict::Unrelated,
            FoundBy::Name | FoundBy::LegacyName => Verdict::Refused(not_described(found)),
        }
    }

    /// Judges for a Service that goes: nothing is refused, because nothing is taken over. On a load balancer of
    /// somebody else the Service may still have listeners, which their tags tell.
    ///
    /// One that has outlived its Service counts as this one's only where that changes nothing about it: it goes with a
    /// Service that has taken it over, and with no other.
    pub(super) fn judge_for_release(
        &self,
        found: &LoadBalancer,
        by: FoundBy,
        reclaim: Reclaim,
    ) -> Option<Ownership> {
        let unlimited = SharingRules { tags: true, most_users: u32::MAX };
        let retained = names::is_retained(&found.description);
        let as_a_whole = !retained || reclaim == Reclaim::Retain;
        match self.judge(found, by, unlimited) {
            Verdict::Usable(Ownership::Guest) if as_a_whole && self.is_last_user(found) => {
                Some(Ownership::Sole)
            }
            Verdict::Usable(Ownership::Guest) => Some(Ownership::Guest),
            Verdict::Usable(Ownership::Sole) => as_a_whole.then_some(Ownership::Sole),
            Verdict::Usable(Ownership::Shared) => (!retained).then_some(Ownership::Shared),
            Verdict::Refused(_) if by == FoundBy::Annotation || self.is_tagged(found) => {
                Some(Ownership::Guest)
            }
            Verdict::Refused(_) | Verdict::Unrelated => None,
        }
    }

    /// Whether the load balancer was made for another Service of this cluster, which is gone, and this one is its
    /// last user: it goes with it.
    fn is_last_user(&self, found: &LoadBalancer) -> bool {
        let tags: Tags = found.tags.iter().cloned().collect();
        let made_here =
            GeneratedName::parse(&found.name).is_some_and(|made_for| made_for.cluster == self.cluster.name);
        let mut users = names::user_names(&tags).peekable();
        made_here && users.peek().is_some() && users.all(|name| self.is_own_name(name, &tags))
    }

    /// Whether the load balancer carries the tag that only this Service gives.
    pub(super) fn is_tagged(&self, found: &LoadBalancer) -> bool {
        let tags: Tags = found.tags.iter().cloned().collect();
        self.has_service_uid(&tags)
    }

    /// Whether an earlier Service of this name had a load balancer of the generated name: it is of this cluster, in which
    /// no two Services have one name at a time.
    pub(super) fn is_left_by_namesake(&self, found: &LoadBalancer) -> bool {
        let tags: Tags = found.tags.iter().cloned().collect();
        found.name == self.names.load_balancer()
            && names::cluster_uids(&tags).any(|uid| uid == self.cluster.uid)
            && names::service_uids(&tags).next().is_some()
    }

    fn judge_guest(&self, found: &LoadBalancer, tags: &Tags, sharing: SharingRules) -> Verdict {
        let users = names::user_names(tags).count();
        let is_user = names::user_names(tags).any(|name| self.is_own_name(name, tags));
        if !sharing.tags {
            return Verdict::Refused(Failure::user_input(format!(
                "load balancer {} ({}) was not made for this Service, and sharing one needs tags (Octavia API 2.5): \
                 remove loadbalancer.openstack.org/load-balancer-id",
                found.name, found.id
            )));
        }
        let most = usize::try_from(sharing.most_users).unwrap_or(usize::MAX);
        if !is_user && users >= most {
            return Verdict::Refused(Failure::user_input(format!(
                "load balancer {} ({}) serves {users} Services already, which is the limit: raise max-shared-lb in \
                 cloud.conf, or choose another load balancer",
                found.name, found.id
            )));
        }
        Verdict::Usable(Ownership::Guest)
    }

    /// Whether the load balancer was made for this Service. It has the generated name, one of its older forms, or the
    /// one under a former name of this cluster; or our tag, which guests give too, and besides our description.
    fn is_named_for_service(&self, found: &LoadBalancer, tags: &Tags) -> bool {
        let name = found.name.as_str();
        let cut = self.names.former_load_balancer();
        name == self.names.load_balancer()
            || name == self.names.legacy_load_balancer()
            || self.former_name.as_deref() == Some(name)
            || ((cut.as_deref() == Some(name) || self.has_service_uid(tags)) && self.is_described(found))
    }

    /// Whether the description is the one that the Service's load balancer gets, or the one with which it outlived an
    /// earlier Service of this name.
    fn is_described(&self, found: &LoadBalancer) -> bool {
        let own = self.names.description();
        found.description == own || found.description == names::retained_description(&own)
    }

    fn names_this_service(&self, name: &str) -> bool {
        GeneratedName::parse(name).is_some_and(|parsed| parsed.service == *self.key)
    }

    /// Whether other Services use a load balancer that is this Service's.
    fn sharing(&self, tags: &Tags) -> Ownership {
        if names::user_names(tags).all(|name| self.is_own_name(name, tags)) {
            Ownership::Sole
        } else {
            Ownership::Shared
        }
    }

    /// Whether a generated name among the tags stands for this Service.
    fn is_own_name(&self, name: &str, tags: &Tags) -> bool {
        name == self.names.load_balancer()
            || self.names.former_load_balancer().as_deref() == Some(name)
            || self.former_name.as_deref() == Some(name)
            || (self.has_service_uid(tags) && self.names_this_service(name))
    }

    fn has_service_uid(&self, tags: &Tags) -> bool {
        names::service_uids(tags).any(|uid| uid == self.service_uid)
    }

    /// The cluster to which the tags assign an object, if that is another one.
    fn foreign_cluster<'t>(&self, tags: &'t Tags) -> Option<&'t str> {
        let ours = names::cluster_uids(tags).any(|uid| uid == self.cluster.uid);
        names::cluster_uids(tags).next().filter(|_| !ours)
    }

    /// Whether tags mark an object as this Service's. `owner` says whether the load balancer was made for it: then
    /// the tags of an earlier Service of the same name count too.
    fn is_marked(&self, tags: &Tags, owner: bool) -> bool {
        if self.foreign_cluster(tags).is_some() && !(owner && self.allow_foreign_cluster) {
            return false;
        }
        let others = names::service_uids(tags).next().is_some() && !owner;
        self.has_service_uid(tags)
            || (!others && names::user_names(tags).any(|name| self.is_own_name(name, tags)))
    }

    /// Whether a listener was made for this Service: its tags say so, or it comes from the time before tags and has
    /// a generated name.
    pub(super) fn owns_listener(&self, listener: &Listener, ownership: Ownership) -> bool {
        let tags: Tags = listener.tags.iter().cloned().collect();
        let owner = ownership != Ownership::Guest;
        self.is_marked(&tags, owner)
            || (owner && tags.is_empty() && self.is_child_name("listener_", &listener.name))
    }

    /// Whether a pool was made for this Service: its tags say so; or OCCM made it, which tags no pools: it is the
    /// default pool of one of the Service's listeners, or has a generated name, and nobody else uses it.
    pub(super) fn owns_pool(&self, pool: &Pool, own_listeners: &[&Listener], ownership: Ownership) -> bool {
        let tags: Tags = pool.tags.iter().cloned().collect();
        let owner = ownership != Ownership::Guest;
        if self.is_marked(&tags, owner) {
            return true;
        }
        if names::service_uids(&tags).next().is_some() || names::cluster_uids(&tags).next().is_some() {
            return false;
        }
        let only_ours = pool.listeners.iter().all(|user| own_listeners.iter().any(|own| own.id == user.id));
        let default = own_listeners.iter().any(|own| own.default_pool_id.as_ref() == Some(&pool.id));
        only_ours && (default || (owner && self.is_child_name("pool_", &pool.name)))
    }

    /// Whether a name is `<kind>_<index>_<load balancer name>`.
    fn is_child_name(&self, prefix: &str, name: &str) -> bool {
        let parent = name.strip_prefix(prefix).and_then(|rest| rest.split_once('_'));
        parent.is_some_and(|(index, parent)| {
            let cut = self.names.former_load_balancer();
            let parents = [Some(self.names.load_balancer()), cut.as_deref(), self.former_name.as_deref()];
            index.bytes().all(|byte| byte.is_ascii_digit()) && parents.contains(&Some(parent))
        })
    }

    /// Whether a floating IP was made for this Service, and no tag names another cluster. Its description is exactly
    /// the one that it would get, or that it would have got when the cluster had another name; or our tag says so.
    pub(super) fn owns_floating_ip(&self, floating_ip: &FloatingIp) -> bool {
        let tags: Tags = floating_ip.tags.iter().cloned().collect();
        let description = floating_ip.description.as_str();
        let former = self.former_name.as_deref().and_then(GeneratedName::parse);
        let described = description == self.names.floating_ip_description()
            || former.is_some_and(|former| description == former.floating_ip_description())
            || (self.has_service_uid(&tags) && names::describes_floating_ip(description));
        described && self.foreign_cluster(&tags).is_none()
    }

    /// Whether a floating IP was made for the Service that had the load balancer before: who is the last user of the
    /// load balancer takes it with it.
    pub(super) fn inherits_floating_ip(&self, floating_ip: &FloatingIp, load_balancer_name: &str) -> bool {
        let tags: Tags = floating_ip.tags.iter().cloned().collect();
        let made_for = GeneratedName::parse(load_balancer_name);
        self.foreign_cluster(&tags).is_none()
            && made_for.is_some_and(|made_for| floating_ip.description == made_for.floating_ip_description())
    }

    /// Whether a security group was made for this Service. All that are asked about have its name, which holds its
    /// uid; our tags, or else OCCM's description, must agree.
    pub(super) fn owns_security_group(&self, group: &SecurityGroup) -> bool {
        let tags: Tags = group.tags.iter().cloned().collect();
        let described = group.description.starts_with(&self.names.security_group_description_stem());
        group.name == self.names.security_group()
            && (self.has_service_uid(&tags) || (described && self.foreign_cluster(&tags).is_none()))
    }
}

fn foreign_cluster(found: &LoadBalancer, uid: &str) -> Failure {
    Failure::user_input(format!(
        "load balancer {} ({}) belongs to another cluster (kube-system namespace {uid}): give the clusters different \
         names with --cluster-name, or set loadbalancer.openstack.org/allow-foreign-cluster to \"true\" to take it over",
        found.name, found.id
    ))
}

fn not_described(found: &LoadBalancer) -> Failure {
    Failure::user_input(format!(
        "load balancer {} ({}) has this Service's name but neither its tags nor its description: set \
         loadbalancer.openstack.org/load-balancer-id to {} to adopt it, or rename it",
        found.name, found.id, found.id
    ))
}

#[cfg(test)]
mod tests;
