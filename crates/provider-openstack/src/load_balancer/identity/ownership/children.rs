//! Determines who owns the children of a load balancer, its floating IPs and its security groups.

use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::neutron::{FloatingIp, SecurityGroup};
use openstack_ccm_openstack_api::octavia::{Listener, Pool};

use super::{Claim, Scope};
use crate::load_balancer::annotations::{LOAD_BALANCER_ID, SHARE_BY_ADDRESS};
use crate::load_balancer::names::{self, GeneratedName};
use crate::load_balancer::objects::{Ownership, Tags};

/// Describes the Service that has an address, and how to share its load balancer.
pub(crate) fn user(other: &Service) -> String {
    let load_balancer = other.annotations.get(LOAD_BALANCER_ID.key);
    let share = load_balancer.map_or_else(String::new, |id| {
        format!(
            ": to share that Service's load balancer, annotate both Services with {}: \"true\", or annotate this Service with {}: {id} \
             and do not ask for an address",
            SHARE_BY_ADDRESS.key, LOAD_BALANCER_ID.key
        )
    });
    format!("Service {}{share}; or choose another address", other.key)
}

impl Claim<'_> {
    /// Returns whether tags mark an object as this Service's. If the load balancer was made for it (`owner`), tags of an earlier
    /// Service of the same name count too. On a load balancer of another cluster only the Service's uid counts: a Service of that
    /// cluster may have the same generated name.
    fn is_marked(&self, tags: &Tags, owner: bool) -> bool {
        if self.elsewhere {
            return self.has_service_uid(tags);
        }
        if self.foreign_cluster(tags).is_some() && !(owner && self.scope.adopts_foreign) {
            return false;
        }
        let others = names::service_uids(tags).next().is_some() && !owner;
        self.has_service_uid(tags)
            || (!others && names::user_names(tags).any(|name| self.is_own_name(name, tags)))
    }

    /// Returns whether a listener was made for this Service: its tags say so, or it is older than tags and has a generated name.
    pub(crate) fn owns_listener(&self, listener: &Listener, ownership: Ownership) -> bool {
        let tags = &listener.tags;
        let owner = ownership != Ownership::Guest;
        self.is_marked(tags, owner)
            || (owner && tags.is_empty() && self.is_child_name("listener_", &listener.name))
    }

    /// Returns whether a pool was made for this Service: its tags say so; or it is the default pool of one of the Service's
    /// listeners or has a generated name, and no other listener uses it (OCCM does not tag pools).
    ///
    /// On a load balancer of another owner the name counts only if no listener uses the pool any more. OCCM creates pools for a
    /// listener, and this controller tags those that wait for one, so the pool's listener has just been deleted, or got another
    /// pool. In another cluster the pool may belong to a Service of the same name.
    pub(crate) fn owns_pool(&self, pool: &Pool, own_listeners: &[&Listener], ownership: Ownership) -> bool {
        let tags = &pool.tags;
        let owner = ownership != Ownership::Guest;
        if self.is_marked(tags, owner) {
            return true;
        }
        if names::service_uids(tags).next().is_some() || names::cluster_uids(tags).next().is_some() {
            return false;
        }
        let only_ours = pool.listeners.iter().all(|user| own_listeners.iter().any(|own| own.id == user.id));
        let default = own_listeners.iter().any(|own| own.default_pool_id.as_ref() == Some(&pool.id));
        let by_name = owner || (pool.listeners.is_empty() && !self.elsewhere);
        only_ours && (default || (by_name && self.is_child_name("pool_", &pool.name)))
    }

    /// Returns whether a name is `<kind>_<index>_<load balancer name>`.
    fn is_child_name(&self, prefix: &str, name: &str) -> bool {
        let parent = name.strip_prefix(prefix).and_then(|rest| rest.split_once('_'));
        parent.is_some_and(|(index, parent)| {
            index.bytes().all(|byte| byte.is_ascii_digit()) && self.is_generated_name(parent)
        })
    }

    /// Returns whether a floating IP was made for this Service, and no tag names another cluster. Its description is exactly that
    /// of the Service, also under a former name of the cluster, or our tag says so. On a load balancer of another cluster only the
    /// tag counts.
    pub(crate) fn owns_floating_ip(&self, floating_ip: &FloatingIp) -> bool {
        let tags = &floating_ip.tags;
        let description = floating_ip.description.as_str();
        let is_ours = names::cluster_uids(tags).any(|uid| uid == self.scope.cluster.uid);
        // Neutron may know no descriptions.
        let described = names::describes_floating_ip(description) || (description.is_empty() && is_ours);
        let tagged = self.has_service_uid(tags) && described;
        if self.elsewhere || self.is_foreign(tags) {
            return tagged && self.foreign_cluster(tags).is_none();
        }
        let previous = self.previous_name.as_deref().and_then(GeneratedName::parse);
        tagged
            || description == self.names.floating_ip_description()
            || previous.is_some_and(|previous| description == previous.floating_ip_description())
    }

    /// Returns what shows that a floating IP was made for another Service or cluster: a tag; or, on an untagged one that OCCM made,
    /// the description, if it names an existing Service. A former Service of the same name does not count as another one.
    pub(crate) fn claim_of_another(&self, floating_ip: &FloatingIp) -> Option<String> {
        let tags = &floating_ip.tags;
        if self.owns_floating_ip(floating_ip) || self.has_service_uid(tags) {
            return None;
        }
        let foreign = self.is_foreign(tags);
        let tag =
            tags.iter().find(|tag| names::is_service_tag(tag) || (foreign && names::is_cluster_tag(tag)));
        tag.cloned().or_else(|| self.description_of_another(&floating_ip.description))
    }

    /// Describes the other Service that has a floating IP, with its load balancer.
    pub(crate) fn user_of(&self, floating_ip: &FloatingIp) -> Option<String> {
        let Scope { others, cluster, .. } = self.scope;
        others.with_floating_ip(self.key, floating_ip, cluster).as_ref().map(user)
    }

    fn description_of_another(&self, description: &str) -> Option<String> {
        let Scope { others, cluster, .. } = self.scope;
        let is_of_another = names::describes_floating_ip(description)
            && others.have_floating_ip(self.key, description, cluster);
        is_of_another.then(|| description.to_owned())
    }

    /// Returns whether a floating IP was made for the former owner of the load balancer: the last user of a load balancer also
    /// inherits its floating IP.
    pub(crate) fn inherits_floating_ip(&self, floating_ip: &FloatingIp, load_balancer_name: &str) -> bool {
        let tags = &floating_ip.tags;
        let made_for = GeneratedName::parse(load_balancer_name);
        !self.is_foreign(tags)
            && made_for.is_some_and(|made_for| floating_ip.description == made_for.floating_ip_description())
    }

    /// Returns whether a security group was made for this Service. All candidates have its name, which contains its uid; our tags,
    /// or else OCCM's description, must agree.
    pub(crate) fn owns_security_group(&self, group: &SecurityGroup) -> bool {
        let tags = &group.tags;
        let described = group.description.starts_with(&self.names.security_group_description_stem());
        group.name == self.names.security_group()
            && (self.has_service_uid(tags) || (described && self.foreign_cluster(tags).is_none()))
    }
}
