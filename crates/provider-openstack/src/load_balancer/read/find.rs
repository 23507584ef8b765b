//! Finds the Service's load balancer: by the id in its annotation, else by the names that it may have.

use futures::future::try_join_all;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::{
    LoadBalancer, LoadBalancerFilter, OperatingStatus, ProvisioningStatus,
};
use tracing::info;

use super::floating_ip::VipOwner;
use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::identity::ownership::{Claim, FoundBy, SharingRules, Verdict};
use crate::load_balancer::objects::observed::Ownership;
use crate::load_balancer::objects::tree::Reclaim;
use crate::load_balancer::read::lists::Reader;

/// A load balancer that the Service may use.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// As Octavia shows it.
    pub(crate) load_balancer: LoadBalancer,
    /// Whether the Service owns the load balancer.
    pub(crate) ownership: Ownership,
    /// See [`previous_name`](crate::load_balancer::objects::observed::ObservedLoadBalancer::previous_name).
    pub(crate) previous_name: Option<String>,
    /// Whether only the annotation says that the load balancer is the Service's.
    pub(crate) adopted: bool,
}

impl Found {
    /// Returns the VIP port and its ownership.
    pub(crate) fn vip_owner(&self) -> Option<VipOwner> {
        let Self { load_balancer, ownership, .. } = self;
        let port_id = load_balancer.vip_port_id.clone()?;
        Some(VipOwner {
            port_id,
            address: load_balancer.vip_address.as_ref().and_then(|address| address.parse().ok()),
            load_balancer_name: load_balancer.name.clone(),
            ownership: *ownership,
        })
    }
}

/// Why a load balancer is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// To serve the Service with it.
    Serve(SharingRules),
    /// To delete what the Service has on it, or all of it.
    Release(Reclaim),
}

/// Returns the load balancer with this id, if there is one that the Service may use.
///
/// # Errors
/// Any failed call; a load balancer that the Service must not use.
pub(crate) async fn by_id(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    purpose: Purpose,
    id: &str,
) -> Result<Option<Found>, Failure> {
    match reader.load_balancer(id).await {
        Ok(found) if found.provisioning_status == ProvisioningStatus::Deleted => Ok(None),
        Ok(found) => judge(claim, purpose, found, FoundBy::Annotation),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(looking(&error)),
    }
}

/// Judges a load balancer that was seen a moment ago. `None` where it was deleted.
///
/// # Errors
/// A load balancer that the Service must not use.
pub(crate) fn seen(
    claim: &Claim<'_>,
    purpose: Purpose,
    seen: LoadBalancer,
) -> Result<Option<Found>, Failure> {
    if seen.provisioning_status == ProvisioningStatus::Deleted {
        return Ok(None);
    }
    judge(claim, purpose, seen, FoundBy::Annotation)
}

/// Returns the load balancer that has one of the Service's names. Former names count only if the present name finds nothing. That
/// is the usual case whenever names are needed at all, so all names are queried at the same time.
///
/// # Errors
/// Any failed call; several load balancers that match; a load balancer that the Service must not use.
pub(crate) async fn by_name(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    purpose: Purpose,
) -> Result<Option<Found>, Failure> {
    let name = claim.names.load_balancer().to_owned();
    let cut = claim.names.cut_load_balancer().map(|name| (name, FoundBy::CutName));
    let legacy = (claim.names.legacy_load_balancer(), FoundBy::LegacyName);
    // The programs that gave legacy names published their load balancers long ago.
    let may_be_legacy = claim.is_known || matches!(purpose, Purpose::Release(_));
    let older = cut.into_iter().chain(may_be_legacy.then_some(legacy));
    let (present, older) = tokio::join!(
        named(reader, claim, purpose, name, FoundBy::Name),
        try_join_all(older.map(|(name, by)| named(reader, claim, purpose, name, by))),
    );
    let present = present?;
    if !present.is_empty() {
        return only_one(claim, present);
    }
    only_one(claim, older?.into_iter().flatten().collect())
}

/// Returns the load balancers without `current` that carry this Service's own tag, or OCCM's tag with its name: the Service used
/// them before the user named another one.
pub(crate) async fn previous(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    current: &str,
) -> Result<Vec<Found>, Failure> {
    let tagged = |tag: String| LoadBalancerFilter { tags: vec![tag], ..LoadBalancerFilter::default() };
    // A search by uid covers all projects: the id in an annotation may have named a load balancer of another project.
    let by_uid = tagged(claim.names.service_tag());
    let by_name = in_project(claim, tagged(claim.names.load_balancer().to_owned()));
    let (mut previous, untagged) = tokio::try_join!(
        others(reader, claim, current, &by_uid, |one| claim.is_tagged(one)),
        others(reader, claim, current, &by_name, |one| claim.is_untagged_user(one)),
    )?;
    previous.extend(untagged);
    Ok(previous)
}

/// Returns the load balancers without `current` that repeated creation requests made, including those that earlier Services of the
/// same name left.
pub(crate) async fn duplicates(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    current: &str,
) -> Result<Vec<Found>, Failure> {
    let named = reader.load_balancers_named(claim.names.load_balancer()).await;
    let named = named.map_err(|error| looking(&error))?;
    judged(claim, current, named, |one| claim.is_left_by_namesake(one) && !serves_in_error(one))
}

async fn others(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    current: &str,
    filter: &LoadBalancerFilter,
    is_wanted: impl Fn(&LoadBalancer) -> bool,
) -> Result<Vec<Found>, Failure> {
    let octavia = &reader.openstack().octavia;
    let listed = octavia.list_load_balancers(filter).await.map_err(|error| looking(&error))?;
    judged(claim, current, listed, is_wanted)
}

fn judged(
    claim: &Claim<'_>,
    current: &str,
    listed: Vec<LoadBalancer>,
    is_wanted: impl Fn(&LoadBalancer) -> bool,
) -> Result<Vec<Found>, Failure> {
    let others = listed.into_iter().filter(|one| one.id != current && is_wanted(one));
    // A load balancer that was kept on purpose before stays untouched.
    let purpose = Purpose::Release(Reclaim::Delete);
    let others = others.filter(|one| counts(one, purpose));
    let judged = others.map(|one| judge(claim, purpose, one, FoundBy::Annotation));
    Ok(judged.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Returns the usable load balancers of this name.
async fn named(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    purpose: Purpose,
    name: String,
    by: FoundBy,
) -> Result<Vec<Found>, Failure> {
    let hits = reader.load_balancers_named(&name).await.map_err(|error| looking(&error))?;
    let mut found = Vec::new();
    let mut refusal = None;
    for hit in hits.into_iter().filter(|hit| counts(hit, purpose)) {
        match judge(claim, purpose, hit, by) {
            Ok(usable) => found.extend(usable),
            Err(refused) => refusal = Some(refused),
        }
    }
    match refusal {
        // A foreign load balancer of the same name does not hide one that is ours.
        Some(refusal) if found.is_empty() => Err(refusal),
        Some(_) | None => Ok(found),
    }
}

/// Limits a search by name to the project of the credentials: an administrator would see the load balancers of all projects.
fn in_project(claim: &Claim<'_>, filter: LoadBalancerFilter) -> LoadBalancerFilter {
    LoadBalancerFilter { project_id: claim.scope.project_id.map(str::to_owned), ..filter }
}

/// Returns whether a load balancer counts for the purpose. A Service to serve gets a new load balancer while the old one is
/// PENDING_DELETE; a Service to release waits until it is gone.
fn counts(hit: &LoadBalancer, purpose: Purpose) -> bool {
    match (&hit.provisioning_status, purpose) {
        (ProvisioningStatus::Deleted, _) | (ProvisioningStatus::PendingDelete, Purpose::Serve(_)) => false,
        (_, Purpose::Serve(_) | Purpose::Release(_)) => true,
    }
}

fn judge(
    claim: &Claim<'_>,
    purpose: Purpose,
    found: LoadBalancer,
    by: FoundBy,
) -> Result<Option<Found>, Failure> {
    let ownership: Option<Ownership> = match purpose {
        Purpose::Release(reclaim) => claim.judge_for_release(&found, by, reclaim),
        Purpose::Serve(sharing) => match claim.judge(&found, by, sharing) {
            Verdict::Usable(ownership) => Some(ownership),
            Verdict::Unrelated => None,
            Verdict::Refused(failure) => {
                // The Event does not name what belongs to another namespace.
                info!(service = %claim.key, load_balancer = found.name, id = found.id, "must not be used by the Service");
                return Err(failure);
            }
        },
    };
    Ok(ownership.map(|ownership| {
        let previous_name = claim.previous_name_on(&found);
        let adopted = by == FoundBy::Annotation && claim.is_adoption(&found);
        Found { load_balancer: found, ownership, previous_name, adopted }
    }))
}

/// Picks one load balancer of several with the same name. Only our tags say which one is meant; a release takes them one after the
/// other. Several with our tags come from one Service that was created more than once: a request can outlive the process that sent
/// it, and its load balancer appears after the next process has looked, or even after the Service was replaced by one of the same
/// name. The one picked serves; the others are given up as soon as it does.
fn only_one(claim: &Claim<'_>, mut found: Vec<Found>) -> Result<Option<Found>, Failure> {
    if found.len() <= 1 {
        return Ok(found.pop());
    }
    let ids: Vec<String> = found.iter().map(|found| found.load_balancer.id.clone()).collect();
    found.retain(|found| {
        claim.is_tagged(&found.load_balancer) || claim.is_left_by_namesake(&found.load_balancer)
    });
    if let Some(best) = found.into_iter().min_by(|a, b| rank(claim, a).cmp(&rank(claim, b))) {
        return Ok(Some(best));
    }
    Err(Failure::user_input(format!(
        "several load balancers are named {}: {}; delete those that are not needed, or set loadbalancer.openstack.org/load-balancer-id to \
         the id of the one to use",
        claim.names.load_balancer(),
        ids.join(", ")
    )))
}

/// Orders load balancers of one Service, the one to keep first: shared with others, made for this very Service, serving, about to
/// serve, older. The id decides between equals, so that each reconciliation picks the same one.
fn rank<'a>(claim: &Claim<'_>, found: &'a Found) -> (bool, bool, u8, Option<&'a str>, &'a str) {
    let Found { load_balancer, ownership, .. } = found;
    let status = &load_balancer.provisioning_status;
    let nearness = match status {
        ProvisioningStatus::Active => 0,
        ProvisioningStatus::Error if serves_in_error(load_balancer) => 0,
        ProvisioningStatus::PendingUpdate => 1,
        ProvisioningStatus::PendingCreate => 2,
        ProvisioningStatus::Error
        | ProvisioningStatus::PendingDelete
        | ProvisioningStatus::Deleted
        | ProvisioningStatus::Other(_) => 3,
    };
    let (used_alone, of_namesake) = (*ownership != Ownership::Shared, !claim.is_tagged(load_balancer));
    (used_alone, of_namesake, nearness, load_balancer.created_at.as_deref(), &load_balancer.id)
}

/// Returns whether the load balancer may serve although Octavia's last work on it failed: then it is not given up for a newer one.
fn serves_in_error(found: &LoadBalancer) -> bool {
    let failed = found.provisioning_status == ProvisioningStatus::Error;
    failed && found.operating_status != OperatingStatus::Offline
}

pub(in crate::load_balancer) fn looking(error: &ApiError) -> Failure {
    failure::of_call(error, "looking for the load balancer", Missing::Race)
}
