//! Plans the release of a deleted Service, and of a load balancer that outlives its Service (`reclaim-policy: retain`).

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::{ProvisioningStatus, UpdateLoadBalancer};

use super::draft::Draft;
use super::types::{Plan, Wait};
use super::{children, floating_ip};
use crate::load_balancer::names::{self, GeneratedName};
use crate::load_balancer::objects::step::{LoadBalancerStep, MemberStep, MonitorStep, Step};
use crate::load_balancer::objects::{
    Children, Observed, ObservedLoadBalancer, Ownership, ReleaseTerms, Tags,
};

/// A load balancer of the Service stays, because it has objects of other clients.
pub(crate) const LOAD_BALANCER_LEFT: &str = "LoadBalancerLeft";

/// Plans the deletion of everything that belongs to the Service.
///
/// The load balancer goes first and the floating IP last: its tags identify it, and an address is not given up before the load
/// balancer is sure to go.
pub(crate) fn release(terms: &ReleaseTerms, observed: &Observed) -> Plan {
    let mut draft = Draft::default();
    let there = observed.load_balancer.as_ref();
    let Some(load_balancer) = there.filter(|there| there.status != ProvisioningStatus::Deleted) else {
        floating_ip::release(&mut draft, terms, &observed.floating_ips, None);
        return draft.finish();
    };
    if load_balancer.status.is_pending() {
        return draft.wait(Wait::load_balancer(load_balancer));
    }
    let Some(below) = &load_balancer.children else {
        let message = format!("the children of load balancer {} were not read", load_balancer.id);
        draft.block(Failure::new(FailureClass::Bug, message));
        return draft.finish();
    };
    match (load_balancer.ownership, children::first_foreign(below)) {
        (Ownership::Sole, None) => delete(draft, terms, observed, load_balancer, below),
        (Ownership::Sole, Some(foreign)) => {
            let message = format!(
                "{load_balancer} has {foreign}, which does not belong to this Service: the load balancer is kept, and only the Service's \
                 own objects are deleted"
            );
            draft.warn(LOAD_BALANCER_LEFT, message);
            leave(draft, terms, load_balancer, below)
        }
        (Ownership::Shared | Ownership::Guest, _) => leave(draft, terms, load_balancer, below),
    }
}

/// Deletes the load balancer, then the floating IP.
fn delete(
    mut draft: Draft,
    terms: &ReleaseTerms,
    observed: &Observed,
    load_balancer: &ObservedLoadBalancer,
    below: &Children,
) -> Plan {
    let vip_port_id = load_balancer.vip_port_id.as_deref();
    if !terms.keep_floating_ip {
        floating_ip::mark(&mut draft, &terms.floating_ip_tags, &observed.floating_ips, vip_port_id);
    }
    // Octavia refuses to delete single children of a load balancer in ERROR.
    let cascade = terms.cascade || load_balancer.status == ProvisioningStatus::Error;
    if !cascade {
        let monitors = below.pools.iter().filter_map(|pool| Some((&pool.id, &pool.monitor.as_ref()?.id)));
        for (pool_id, id) in monitors {
            draft.step(Step::Monitor(MonitorStep::Delete { id: id.clone(), pool_id: pool_id.clone() }));
        }
        children::remove_unwanted(&mut draft, below, |_| false);
    }
    draft.step(Step::LoadBalancer(LoadBalancerStep::Delete { id: load_balancer.id.clone(), cascade }));
    floating_ip::release(&mut draft, terms, &observed.floating_ips, vip_port_id);
    draft.finish()
}

/// Deletes the Service's objects on a load balancer that stays. The tags go last: they say who owns the rest.
fn leave(
    mut draft: Draft,
    terms: &ReleaseTerms,
    load_balancer: &ObservedLoadBalancer,
    below: &Children,
) -> Plan {
    children::remove_unwanted(&mut draft, below, |_| false);
    let mut tags: Tags = &load_balancer.tags - &terms.tags;
    load_balancer.previous_name.iter().for_each(|previous| {
        tags.remove(previous);
    });
    if !serves_own_cluster(&tags, terms) {
        tags = &tags - &terms.common_tags;
    }
    if tags != load_balancer.tags {
        let changes = UpdateLoadBalancer { tags: Some(tags), ..UpdateLoadBalancer::default() };
        draft.step(Step::LoadBalancer(LoadBalancerStep::Update { id: load_balancer.id.clone(), changes }));
    }
    if load_balancer.status == ProvisioningStatus::Error && !draft.plan.steps.is_empty() {
        draft.plan.steps.clear();
        let message = format!(
            "{load_balancer} is in ERROR, so its listeners and pools cannot be deleted: have an administrator fail it over (openstack \
             loadbalancer failover {})",
            load_balancer.id
        );
        draft.block(Failure::new(FailureClass::Unavailable, message));
    }
    draft.finish()
}

/// Returns whether a load balancer that stays serves another Service of this cluster. Services of other clusters do not count.
fn serves_own_cluster(tags: &Tags, terms: &ReleaseTerms) -> bool {
    let cluster_of = |name: &str| GeneratedName::parse(name).map(|parsed| parsed.cluster);
    let own = names::user_names(&terms.tags).find_map(cluster_of);
    // A truncated name does not show its cluster, which may be this one.
    names::user_names(tags).any(|name| cluster_of(name).is_none_or(|cluster| Some(cluster) == own))
}

/// Reason of the notice that the load balancer stays.
const RETAINED: &str = "LoadBalancerRetained";

/// Plans to keep the load balancer with all its objects except members, whatever later Services of the same name do: its
/// description says so until one of them takes it over. The members go because their node ports may be given to another Service,
/// whose source ranges the load balancer does not know.
pub(crate) fn retain(load_balancer: &ObservedLoadBalancer) -> Plan {
    let ObservedLoadBalancer { id, name, status, .. } = load_balancer;
    let mut draft = Draft::default();
    if !load_balancer.is_retained() {
        if status.is_pending() {
            return draft.wait(Wait::load_balancer(load_balancer));
        }
        // Octavia refuses every change of a load balancer in ERROR.
        if *status == ProvisioningStatus::Error {
            let message = format!(
                "{load_balancer} is in ERROR, so it cannot be marked as retained: have an administrator fail it over (openstack \
                 loadbalancer failover {id}), or set loadbalancer.openstack.org/reclaim-policy to \"delete\""
            );
            draft.block(Failure::new(FailureClass::Unavailable, message));
            return draft.finish();
        }
        // Members are deleted by id: the provider ovn refuses an empty batch.
        let pools = load_balancer.children.iter().flat_map(|below| &below.pools).filter(|pool| pool.ours);
        for (pool, member) in pools.flat_map(|pool| pool.members.iter().map(move |member| (pool, member))) {
            draft.step(Step::Member(MemberStep::Delete {
                pool_id: pool.id.clone(),
                id: member.id.clone(),
                name: member.member.name.clone(),
            }));
        }
        let description = Some(names::retained_description(&load_balancer.description));
        let changes = UpdateLoadBalancer { description, ..UpdateLoadBalancer::default() };
        draft.step(Step::LoadBalancer(LoadBalancerStep::Update { id: id.clone(), changes }));
    }
    let address = load_balancer.vip_address.map_or_else(|| "no address".to_owned(), |vip| vip.to_string());
    let message = format!(
        "load balancer {name} ({id}, {address}) is kept with everything except its members, as loadbalancer.openstack.org/reclaim-policy \
         requests"
    );
    draft.plan.notices.push(Notice::normal(RETAINED, message));
    draft.finish()
}
