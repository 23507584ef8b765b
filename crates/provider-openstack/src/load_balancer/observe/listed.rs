//! Knowing without reading the tree that nothing has changed since everything agreed.
//!
//! Octavia sets `updated_at` of a load balancer with every change of anything on it, when the change begins and when it
//! ends, failed ones included. So what agreed at one `updated_at` agrees as long as that stands. The Service carries a
//! fingerprint of both, what was wanted and when it was so; a restart then needs only the lists of all load balancers
//! and floating IPs.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Outcome;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use crate::load_balancer::annotations::CONVERGED_DIGEST;
use crate::load_balancer::desired::{self, Sources};
use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::observe::allowed;
use crate::load_balancer::observe::bulk_lists::Listed;
use crate::load_balancer::observe::read::FloatingIpQuestion;
use crate::load_balancer::observe::read::{self, find};
use crate::load_balancer::outputs;
use crate::load_balancer::plan;
use crate::load_balancer::reconcile::identity_tags::Permission;
use crate::load_balancer::reconcile::report::Report;
use crate::load_balancer::reconcile::serve::Serving;
use crate::load_balancer::reconcile::serve::security_group::Lists;

/// What was wanted, and when it was so. Other versions of this program may compare more, so they do not trust it.
pub(crate) fn fingerprint(load_balancer_id: &str, updated_at: &str, desired: &Desired) -> String {
    // Of the load balancer itself only the tags are compared; floating IPs are listed, and compared with the list.
    let Desired { load_balancer, listeners, floating_ip: _, serial: _, recovery: _, notices: _ } = desired;
    let mut hasher = DefaultHasher::new();
    let version = env!("CARGO_PKG_VERSION");
    (version, load_balancer_id, updated_at, &load_balancer.tags, listeners).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Serving<'_> {
    /// The outcome, where everything is as it was when it agreed. `None` asks for a look.
    ///
    /// # Errors
    /// Any failed call.
    pub(crate) async fn still_settled(&self, report: &mut Report) -> Result<Option<Outcome>, Failure> {
        let (Some(before), Some(id)) =
            (self.service.annotations.get(CONVERGED_DIGEST.key), &self.settings.load_balancer_id)
        else {
            return Ok(None);
        };
        // Nor do they tell what stands in for something that cannot be read.
        if !self.settings.unreadable.is_empty() || !self.settings.odd.is_empty() {
            return Ok(None);
        }
        // Lists do not tell what a Service left on another load balancer.
        if outputs::may_have_moved(self.service) || !self.provider.memory.lists_may_do(&self.service.key) {
            return Ok(None);
        }
        let listed = self.provider.bulk_lists.take(id).await;
        let listed =
            listed.map_err(|error| failure::of_call(&error, "listing the load balancers", Missing::Race))?;
        let Some(Listed { load_balancer, floating_ips }) = listed else { return Ok(None) };
        let updated_at = load_balancer.updated_at.clone().unwrap_or_default();
        if load_balancer.provisioning_status != ProvisioningStatus::Active {
            return Ok(None);
        }
        // What the Service must not use is reported by the look.
        let Ok(Some(found)) = find::seen(&self.claim, self.purpose(), load_balancer) else { return Ok(None) };
        if allowed::may_use(self.settings, &found).is_err() {
            return Ok(None);
        }
        if outputs::is_own_output(self.service) {
            self.provider.missing.found();
        }
        let observed = read::outline(&self.claim, found, floating_ips)?;
        let Some(existing) = &observed.load_balancer else { return Ok(None) };
        let vips: Vec<_> = existing.vip_addresses().collect();
        let question = self.floating_ip_question(Some(existing.ownership), &vips);
        if matches!(question, FloatingIpQuestion::ForVip { .. }) && observed.floating_ips.is_empty() {
            return Ok(None);
        }
        let (facts, faults) = self.resolve(&observed, false, report).await?;
        let (intent, settings) = (self.intent, self.settings);
        let sources = Sources { intent, settings, names: self.claim.names, facts: &facts };
        if !faults.is_empty() || !desired::faults(sources, true).is_empty() {
            return Ok(None);
        }
        let desired = desired::of_existing(sources, existing)?;
        if fingerprint(id, &updated_at, &desired) != *before {
            return Ok(None);
        }
        let Some(address) = plan::converged_address(&desired, &observed) else { return Ok(None) };
        let unmarked = plan::is_unmarked(&desired, existing);
        let marked_in = match unmarked.then(|| self.provider.identity_tags.ask(&self.service.key)) {
            Some(Permission::Now) => return Ok(None),
            Some(Permission::In(time)) => Some(time),
            Some(Permission::Never) | None => None,
        };
        report.load_balancer(self.service, id, existing.ownership);
        report.notices(desired.notices.iter().cloned());
        self.provider.memory.confirmed(&self.service.key);
        let mut outcome =
            self.ready(false, Some(address), observed.load_balancer.as_ref(), &facts, report)?;
        if let Outcome::Ready(ready) = &mut outcome {
            ready.again_after = marked_in;
            self.converge_group(&facts, Lists::MayDo, ready, report).await;
        }
        Ok(Some(outcome))
    }
}
