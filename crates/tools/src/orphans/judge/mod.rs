//! Decides which objects of a project are orphaned, why, and what forbids deleting them. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::neutron::{FloatingIp, Port, SecurityGroup};
use openstack_ccm_openstack_api::octavia::{LoadBalancer, ProvisioningStatus};
use openstack_ccm_provider_openstack::load_balancer::names::{self, GeneratedName};
use serde::Serialize;

use super::inventory::{Inventory, Owners};

/// The longest time between Octavia's creation of a VIP port and the listing of its load balancer.
const MAX_CREATION_TIME: Duration = Duration::from_secs(600);

/// The criteria of a search.
#[derive(Clone, Debug)]
pub struct Question {
    pub cluster: ClusterIdentity,
    /// Whether names that OCCM gives count too. Such a name contains the cluster's name, which is not unique.
    pub occm_names: bool,
    /// The minimum age: younger objects are left out.
    pub older_than: Duration,
    /// The present.
    pub now: Timestamp,
}

/// Kinds of orphans, in the order of deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrphanKind {
    FloatingIp,
    /// A load balancer with all its children.
    LoadBalancer,
    /// A port that Octavia made for a load balancer that does not exist.
    VipPort,
    /// A security group, which is removed from the ports that use it.
    SecurityGroup,
}

impl OrphanKind {
    /// Returns the name for users.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FloatingIp => "floating IP",
            Self::LoadBalancer => "load balancer",
            Self::VipPort => "VIP port",
            Self::SecurityGroup => "security group",
        }
    }
}

/// An object without an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Orphan {
    pub kind: OrphanKind,
    pub id: String,
    /// The name or address of the object.
    pub name: String,
    /// When the object was created, where that is known.
    pub created: Option<Timestamp>,
    /// The Service for which the object was created, where a tag or name shows it.
    pub service: Option<String>,
    /// Why the object counts as orphaned.
    pub why: String,
    /// Why this program must not delete the object, if it must not.
    pub refused: Option<String>,
}

/// Returns the orphans of a project.
pub fn orphans(inventory: &Inventory, owners: &Owners, question: &Question) -> Vec<Orphan> {
    let judge = Judge { inventory, owners, question };
    let mut found: Vec<Orphan> =
        inventory.load_balancers.iter().filter_map(|one| judge.load_balancer(one)).collect();
    let gone: BTreeSet<String> =
        found.iter().filter(|one| one.refused.is_none()).map(|one| one.id.clone()).collect();
    found.extend(inventory.floating_ips.iter().filter_map(|one| judge.floating_ip(one, &gone)));
    found.extend(inventory.vip_ports.iter().filter_map(|one| judge.vip_port(one)));
    found.extend(inventory.security_groups.iter().filter_map(|one| judge.security_group(one)));
    found.retain(|one| judge.is_old_enough(one));
    found.sort_by(|one, other| (one.kind, &one.name, &one.id).cmp(&(other.kind, &other.name, &other.id)));
    found
}

struct Judge<'a> {
    inventory: &'a Inventory,
    owners: &'a Owners,
    question: &'a Question,
}

/// The owner of an object, with the reason to think so.
struct Claim {
    why: String,
    service: Option<ServiceKey>,
}

/// Cluster name and Service, from a name or description that contains them.
type Described = (String, ServiceKey);

impl Judge<'_> {
    /// Returns the owner by the tags; or, without tags and with `by_name`, by the name or description.
    fn claim(&self, tags: &BTreeSet<String>, described: Option<&Described>, by_name: bool) -> Option<Claim> {
        if names::cluster_uids(tags).next().is_some() {
            return self.by_tags(tags, described.map(|(_, service)| service));
        }
        let (cluster, service) = described.filter(|_| by_name)?;
        let counts = self.question.occm_names
            && *cluster == self.question.cluster.name
            && !self.owners.has_named(service);
        counts.then(|| Claim {
            why: format!("it has the name that OCCM gives to objects of {service}, which no longer exists"),
            service: Some(service.clone()),
        })
    }

    /// Returns the owner by the tags; absent where they name another cluster, or an existing Service.
    fn by_tags(&self, tags: &BTreeSet<String>, service: Option<&ServiceKey>) -> Option<Claim> {
        if !names::cluster_uids(tags).any(|uid| uid == self.question.cluster.uid) {
            return None;
        }
        let uids: BTreeSet<&str> = names::service_uids(tags).collect();
        if uids.is_empty() || self.owners.has_one_of(&uids) {
            return None;
        }
        let uids = uids.into_iter().collect::<Vec<_>>().join(", ");
        let why =
            format!("its tags name this cluster and the Service with uid {uids}, which no longer exists");
        Some(Claim { why, service: service.cloned() })
    }

    fn load_balancer(&self, one: &LoadBalancer) -> Option<Orphan> {
        if matches!(one.provisioning_status, ProvisioningStatus::PendingDelete | ProvisioningStatus::Deleted)
        {
            return None;
        }
        let named = GeneratedName::parse(&one.name).map(|name| (name.cluster, name.service));
        let claim = self.claim(&one.tags, named.as_ref(), true)?;
        let tags = &one.tags;
        let others = |uid: &&str| *uid != self.question.cluster.uid;
        let other_cluster = names::cluster_uids(tags).find(others).map(str::to_owned);
        let guests: Vec<&str> = names::user_names(tags).filter(|name| *name != one.name).collect();
        let refused = if !names::is_made_for_service(&one.name, &one.description) {
            Some(
                "it was created by another client, and the Service only used it: only the Service's tags remain, and possibly listeners \
                 and pools"
                    .to_owned(),
            )
        } else if names::is_retained(&one.description) {
            Some("it is kept on purpose (reclaim-policy: retain)".to_owned())
        } else if let Some(uid) = other_cluster {
            Some(format!("it is shared with the cluster {uid}"))
        } else if let Some(guest) = guests.iter().find(|guest| self.is_used(guest)) {
            Some(format!("it is shared: {guest} also uses it"))
        } else if one.provisioning_status.is_pending() {
            Some(format!("Octavia is working on it ({})", one.provisioning_status.as_str()))
        } else if self.leads_elsewhere(one) {
            Some(
                "none of its members is a node of this cluster: it might belong to another cluster of the same name"
                    .to_owned(),
            )
        } else {
            self.namesake(claim.service.as_ref())
        };
        Some(orphan(OrphanKind::LoadBalancer, &one.id, &one.name, one.created_at.as_deref(), claim, refused))
    }

    /// Returns whether a load balancer without tags has members, and none of them is a node of this cluster.
    fn leads_elsewhere(&self, one: &LoadBalancer) -> bool {
        let members = self.inventory.members.get(&one.id).filter(|members| !members.is_empty());
        members.is_some_and(|members| self.owners.have_no_node_among(members))
    }

    /// Returns whether a Service that may exist uses the load balancer.
    fn serves(&self, one: &LoadBalancer) -> bool {
        let uids = names::service_uids(&one.tags).collect();
        self.owners.has_one_of(&uids)
            || names::user_names(&one.tags).any(|tag| tag != one.name && self.is_used(tag))
    }

    /// Returns whether the user in a tag may exist: a name that cannot be parsed, a name of another cluster, or an existing Service.
    fn is_used(&self, tag: &str) -> bool {
        GeneratedName::parse(tag).is_none_or(|parsed| {
            parsed.cluster != self.question.cluster.name || self.owners.has_named(&parsed.service)
        })
    }

    fn namesake(&self, service: Option<&ServiceKey>) -> Option<String> {
        let service = service.filter(|service| self.owners.has_named(service))?;
        Some(format!("Service {service} exists and might take it over"))
    }

    fn floating_ip(&self, one: &FloatingIp, gone: &BTreeSet<String>) -> Option<Orphan> {
        let port = one.port_id.as_deref().filter(|port| !port.is_empty());
        let leads_to = |lb: &&LoadBalancer| port.is_some() && lb.vip_port_id.as_deref() == port;
        let user = self.inventory.load_balancers.iter().find(leads_to);
        if user.is_some_and(|user| self.serves(user)) {
            return None;
        }
        let described = described_floating_ip(&one.description);
        let is_tagged = names::cluster_uids(&one.tags).next().is_some();
        let claim = self.claim(&one.tags, described.as_ref(), port.is_none()).or_else(|| {
            let (_, service) = described.filter(|_| !is_tagged)?;
            let user = user.filter(|user| gone.contains(&user.id))?;
            let why = format!("it is attached to load balancer {}, which is orphaned", user.name);
            Some(Claim { why, service: Some(service) })
        })?;
        let refused = match (port, user) {
            (None, _) => self.namesake(claim.service.as_ref()),
            (Some(_), Some(user)) if gone.contains(&user.id) => self.namesake(claim.service.as_ref()),
            (Some(_), Some(user)) => Some(format!("it is attached to load balancer {}", user.name)),
            (Some(port), None) => Some(format!("it is attached to port {port}")),
        };
        let address = &one.floating_ip_address;
        Some(orphan(OrphanKind::FloatingIp, &one.id, address, one.created_at.as_deref(), claim, refused))
    }

    /// Judges a VIP port, which Octavia leaves behind when it refuses a load balancer. The port names no owner but the project.
    fn vip_port(&self, one: &Port) -> Option<Orphan> {
        let in_use = self.inventory.load_balancers.iter().any(|lb| {
            lb.vip_port_id.as_deref() == Some(one.id.as_str())
                || one.name.ends_with(&lb.id)
                || one.device_id.ends_with(&lb.id)
        });
        if in_use {
            return None;
        }
        let why = "Octavia created it for a load balancer that no longer exists; which cluster the load balancer belonged to is not known";
        let claim = Claim { why: why.to_owned(), service: None };
        let found = orphan(OrphanKind::VipPort, &one.id, &one.name, one.created_at.as_deref(), claim, None);
        let refused = match found.created {
            None => Some("its age is not known, so its load balancer might still be in creation".to_owned()),
            Some(created) if !self.is_older_than(created, MAX_CREATION_TIME) => return None,
            Some(_) => None,
        };
        Some(Orphan { refused, ..found })
    }

    fn security_group(&self, one: &SecurityGroup) -> Option<Orphan> {
        let described = described_security_group(&one.description);
        let by_name = names::is_generated_security_group(&one.name);
        let claim = self.claim(&one.tags, described.as_ref(), by_name)?;
        let refused = self.namesake(claim.service.as_ref());
        Some(orphan(OrphanKind::SecurityGroup, &one.id, &one.name, one.created_at.as_deref(), claim, refused))
    }

    /// Returns whether an orphan has the minimum age; an unknown age counts as old enough.
    fn is_old_enough(&self, one: &Orphan) -> bool {
        let least = self.question.older_than;
        least.is_zero() || one.created.is_none_or(|created| self.is_older_than(created, least))
    }

    fn is_older_than(&self, created: Timestamp, least: Duration) -> bool {
        Duration::try_from(self.question.now.duration_since(created)).is_ok_and(|age| age >= least)
    }
}

fn orphan(
    kind: OrphanKind,
    id: &str,
    name: &str,
    created: Option<&str>,
    claim: Claim,
    refused: Option<String>,
) -> Orphan {
    Orphan {
        kind,
        id: id.to_owned(),
        name: name.to_owned(),
        created: created.and_then(time),
        service: claim.service.map(|service| service.to_string()),
        why: claim.why,
        refused,
    }
}

/// Parses a time as Octavia (UTC without a time zone) or Neutron writes it.
fn time(text: &str) -> Option<Timestamp> {
    text.parse().or_else(|_| format!("{text}Z").parse()).ok()
}

/// Parses the description of a floating IP: `… service NAMESPACE/NAME from cluster CLUSTER`.
fn described_floating_ip(description: &str) -> Option<Described> {
    if !names::describes_floating_ip(description) {
        return None;
    }
    let (before, cluster) = description.split_once(" from cluster ")?;
    let (namespace, name) = before.rsplit(' ').next()?.split_once('/')?;
    Some((cluster.to_owned(), ServiceKey::new(namespace, name)))
}

/// Parses the description of a security group: `Security Group for NAMESPACE/NAME Service LoadBalancer in cluster CLUSTER`.
fn described_security_group(description: &str) -> Option<Described> {
    let rest = description.strip_prefix("Security Group for ")?;
    let (service, cluster) = rest.split_once(" Service LoadBalancer in cluster ")?;
    let (namespace, name) = service.split_once('/')?;
    Some((cluster.to_owned(), ServiceKey::new(namespace, name)))
}

#[cfg(test)]
mod tests;
