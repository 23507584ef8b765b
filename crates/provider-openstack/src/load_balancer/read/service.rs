//! Finds the load balancer of a Service, and reads everything that the Service has in the cloud.

use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use openstack_ccm_openstack_api::optional::OptionalPart;

use super::find::{self, Found, Purpose};
use super::floating_ip::FloatingIpQuery;
use super::whole::{self, Depth};
use super::{Observing, evidence};
use crate::load_balancer::annotations::LOAD_BALANCER_ID;
use crate::load_balancer::identity::outputs;
use crate::load_balancer::identity::ownership::SharingRules;
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::observed::Ownership;
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::node_address::family_of;
use crate::load_balancer::settings::{Aspect, Exposure, Fault, Settings};
use crate::load_balancer::state::locks::LoadBalancerLock;

/// After this time the second that an `updated_at` names is over on all machines of the cloud.
const TIMESTAMP_DELAY: Duration = Duration::from_secs(2);

impl Observing<'_> {
    /// Reads everything. Where the annotation names a load balancer that the Service must not or cannot use, the one that was made
    /// for the Service keeps serving, and the observation says what is wrong.
    ///
    /// # Errors
    /// Any failed call; a load balancer that the Service must not use.
    pub(crate) async fn read(
        &self,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let mut faults = Vec::new();
        let found = match self.find_locked(lock, report).await {
            Err(failure)
                if failure.class == FailureClass::UserInput && self.settings.load_balancer_id.is_some() =>
            {
                faults.push(Fault::new([Aspect::LoadBalancer], &failure.message));
                Some(self.find_beside_wrong_id(lock, report).await.ok_or(failure)?)
            }
            found => found?,
        };
        self.read_found(found, faults).await
    }

    /// Reads the load balancer that was made for the Service, because the one in its annotation cannot take it, as `failure` says.
    ///
    /// # Errors
    /// Any failed call; `failure` where there is no other load balancer.
    pub(crate) async fn read_beside(
        &self,
        failure: Failure,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let fault = Fault::new([Aspect::LoadBalancer], &failure.message);
        let own = self.find_beside_wrong_id(lock, report).await.ok_or(failure)?;
        // The Service was noted as a guest of the other load balancer.
        report.ownership(self.service, &own.load_balancer.id, own.ownership);
        self.read_found(Some(own), vec![fault]).await
    }

    async fn read_found(&self, found: Option<Found>, faults: Vec<Fault>) -> Result<Observation, Failure> {
        let listed = found.as_ref().map(|found| &found.load_balancer);
        let project_id = listed.and_then(|listed| listed.project_id.clone());
        // `updated_at` has a resolution of one second: a later change within the same second does not show in it.
        let octavia = &self.observer.lists.openstack().octavia;
        let is_over = |updated_at: &String| octavia.has_passed(updated_at, TIMESTAMP_DELAY);
        let updated_at = listed.and_then(|listed| listed.updated_at.clone()).filter(is_over);
        let question = self.question_beside(found.as_ref());
        let tree = whole::tree(self.reader(), self.claim, found, Depth::Whole, &question).await?;
        // An existing load balancer is served without its floating IPs.
        let unread = tree.unread.clone().filter(|_| tree.observed.load_balancer.is_some());
        let observed = if unread.is_some() { tree.observed } else { tree.complete()? };
        let observation = Observation::whole(observed, project_id, updated_at).with_faults(faults);
        let mut observation = observation.without(unread);
        if self.since < self.began {
            observation.is_from_before();
        }
        Ok(observation)
    }

    fn question_beside(&self, found: Option<&Found>) -> FloatingIpQuery {
        let vips: Vec<IpAddr> =
            found.into_iter().flat_map(|found| vip_addresses(&found.load_balancer)).collect();
        self.floating_ip_query(found.map(|found| found.ownership), &vips)
    }

    /// Returns the load balancer that was made for the Service, whatever its annotation names.
    async fn find_beside_wrong_id(
        &self,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Option<Found> {
        let mut settings = self.settings.clone();
        settings.load_balancer_id = None;
        settings.unreadable.insert(Aspect::LoadBalancer);
        let beside = Observing { settings: &settings, ..*self };
        lock.move_to(self.claim.names.load_balancer()).ok()?;
        let found = beside.find_locked(lock, report).await.ok().flatten();
        found.filter(|own| own.ownership != Ownership::Guest)
    }

    /// Returns the Service's load balancer. One that is found by name is read again under the lock of its id, which other Services
    /// take to change it.
    async fn find_locked(
        &self,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Option<Found>, Failure> {
        let found = self.find(report).await?;
        let id = found.as_ref().map(|found| &found.load_balancer.id);
        match id.filter(|id| self.settings.load_balancer_id.as_deref() != Some(id.as_str())) {
            None => Ok(found),
            Some(id) => {
                lock.move_to(id)?;
                Observing { since: Moment::now(), ..*self }.find(report).await
            }
        }
    }

    /// Returns the load balancer that the annotation names, else one that has the Service's name.
    async fn find(&self, report: &mut Report) -> Result<Option<Found>, Failure> {
        let (reader, claim, purpose) = (self.reader(), self.claim, self.purpose());
        let mut found = None;
        if let Some(id) = &self.settings.load_balancer_id {
            let end = self.observer.watchlist.take_end(id).filter(|end| end.begun > self.since);
            found = match end.and_then(|end| end.load_balancer) {
                Some(seen) => find::seen(claim, purpose, seen)?,
                None => match find::by_id(reader, claim, purpose, id).await {
                    // It is in another project, from which the Service was restored.
                    Err(failure) if failure.class == FailureClass::Auth && self.was_restored() => None,
                    found => found.map_err(|failure| self.explain_denial(id, failure))?,
                },
            };
            if found.is_none() && !outputs::is_written_by_us(self.service) {
                return Err(not_there(id));
            }
        }
        if found.is_none() {
            found = find::by_name(reader, claim, purpose).await?;
            self.judge_absence(found.is_some(), report).await?;
        } else if let Some(found) = found.as_ref().filter(|_| outputs::is_written_by_us(self.service)) {
            self.observer.missing.found(&found.load_balancer.name, &found.load_balancer.tags);
        }
        if let Some(found) = &found {
            if claim.is_tagged(&found.load_balancer) {
                reader.openstack().client.note_shown(OptionalPart::LoadBalancerTags);
            }
            may_use(self.settings, found)?;
            self.belongs_here(found).await?;
        }
        // An id that the user wrote stays, so that the user can correct it.
        let named_wrongly = self.settings.is_unreadable(Aspect::LoadBalancer);
        if let Some(found) = found.as_ref().filter(|_| !named_wrongly) {
            report.load_balancer(self.service, &found.load_balancer.id, found.ownership);
        }
        Ok(found)
    }

    /// Makes sure that a load balancer without our tags does not belong to another cluster of the same name.
    ///
    /// # Errors
    /// The load balancer leads elsewhere, and the operator does not allow this Service to use it; any failed call.
    async fn belongs_here(&self, found: &Found) -> Result<(), Failure> {
        let LoadBalancer { id, name, .. } = &found.load_balancer;
        let named = self.settings.load_balancer_id.as_deref() == Some(id);
        let allowed = self.settings.allowed_load_balancers.as_ref().filter(|_| named);
        let is_allowed = allowed.is_some_and(|allowed| allowed.contains(id));
        if is_allowed || !evidence::leads_elsewhere(self.reader(), self.claim, self.service, found).await? {
            return Ok(());
        }
        Err(Failure::user_input(format!(
            "load balancer {name} ({id}) has the name of this Service's load balancer, but none of its members is a node of this cluster: \
             another cluster might have the same name, so this load balancer is not used. Give the clusters different names with \
             --cluster-name; if the load balancer belongs to this cluster, set {} to {id}, and have the operator add the id to \
             allowed-load-balancers of the namespace in cloud.conf",
            LOAD_BALANCER_ID.key
        )))
    }

    /// Blames the user who named a load balancer of another project, which cannot be seen, and not the operator.
    fn explain_denial(&self, id: &str, failure: Failure) -> Failure {
        if failure.class != FailureClass::Auth || outputs::is_written_by_us(self.service) {
            return failure;
        }
        Failure::user_input(format!(
            "annotation {}: the user of cloud.conf is not allowed to see load balancer {id}, which belongs to another project; specify a \
             load balancer of this project, or remove the annotation",
            LOAD_BALANCER_ID.key
        ))
    }

    pub(in crate::load_balancer) fn purpose(&self) -> Purpose {
        let most_users = self.settings.max_shared_load_balancer;
        Purpose::Serve(SharingRules { tags: self.features.tags, most_users })
    }

    pub(in crate::load_balancer) fn floating_ip_query(
        &self,
        ownership: Option<Ownership>,
        vips: &[IpAddr],
    ) -> FloatingIpQuery {
        let owner = ownership.is_some_and(|ownership| ownership != Ownership::Guest);
        match &self.settings.exposure {
            Exposure::Internal if owner => FloatingIpQuery::OnVip,
            Exposure::Internal => FloatingIpQuery::Nothing,
            Exposure::External(_) if self.needs_no_floating_ip(vips) => FloatingIpQuery::Nothing,
            Exposure::External(wanted) => FloatingIpQuery::ForVip {
                asked: wanted.address,
                published: self.service.published.iter().copied().find(IpAddr::is_ipv4),
            },
        }
    }

    /// Returns whether all VIPs are IPv6 addresses, or will be as far as is known: these need no floating IP.
    fn needs_no_floating_ip(&self, vips: &[IpAddr]) -> bool {
        if vips.is_empty() {
            let asked = self.settings.vip.address.map(family_of).or(self.settings.family);
            let dual = self.settings.families.contains(&IpFamily::V4);
            return asked == Some(IpFamily::V6) && !dual;
        }
        vips.iter().all(IpAddr::is_ipv6)
    }
}

/// Returns all VIP addresses that Octavia shows.
fn vip_addresses(load_balancer: &LoadBalancer) -> impl Iterator<Item = IpAddr> + '_ {
    let additional = load_balancer.additional_vips.iter().filter_map(|vip| vip.ip_address.as_deref());
    let all = load_balancer.vip_address.as_deref().into_iter().chain(additional);
    all.filter_map(|text| text.parse().ok())
}

/// The user wrote the id of a load balancer that does not exist.
fn not_there(id: &str) -> Failure {
    Failure::user_input(format!(
        "load balancer {id} does not exist, or the user of cloud.conf cannot see it: correct or remove {}",
        LOAD_BALANCER_ID.key
    ))
}

/// Checks whether a Service may use a load balancer. One that was made for the Service is always allowed. One that only the
/// annotation claims is adopted, and the allow-list applies as it does to sharing.
///
/// # Errors
/// The namespace's allow-list lacks the load balancer.
fn may_use(settings: &Settings, found: &Found) -> Result<(), Failure> {
    let Some(allowed) = &settings.allowed_load_balancers else { return Ok(()) };
    let id = &found.load_balancer.id;
    if (found.ownership != Ownership::Guest && !found.adopted) || allowed.contains(id) {
        return Ok(());
    }
    Err(Failure::user_input(format!(
        "annotation {}: {id:?} is not allowed in this namespace; ask the operator to add it to allowed-load-balancers in \
         cloud.conf",
        LOAD_BALANCER_ID.key
    )))
}
