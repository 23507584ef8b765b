//! What lists for all Services show, and the digest on the Service for what they do not show.
//!
//! A start of the program then needs only the lists of all load balancers and floating IPs.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::bulk_lists::Listed;
use super::observation::Source;
use super::read::{self, FloatingIpQuestion, find};
use super::{Observation, Observing, allowed};
use crate::load_balancer::annotations::CONVERGED_DIGEST;
use crate::load_balancer::belief::{Belief, Cached};
use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::model::observed::ObservedLoadBalancer;
use crate::load_balancer::outputs;
use crate::load_balancer::report::Report;

impl Observing<'_> {
    /// What the lists show, where the digest on the Service may stand for the rest. `None` asks for a reading.
    ///
    /// # Errors
    /// Any failed call; an answer that makes no sense.
    pub(super) async fn listed(
        &self,
        believed: Belief,
        report: &mut Report,
    ) -> Result<Option<Observation>, Failure> {
        let digest = self.service.annotations.get(CONVERGED_DIGEST.key);
        let (Some(digest), Some(id)) = (digest, &self.settings.load_balancer_id) else { return Ok(None) };
        // A digest does not tell what stands in for something that cannot be read.
        if !self.settings.unreadable.is_empty() || !self.settings.odd.is_empty() {
            return Ok(None);
        }
        // Nor do lists tell what a Service left on another load balancer.
        if outputs::may_have_moved(self.service) {
            return Ok(None);
        }
        let listed = self.observer.bulk_lists.take(id, &self.observer.reader).await;
        let listed =
            listed.map_err(|error| failure::of_call(&error, "listing the load balancers", Missing::Race))?;
        let Some(Listed { load_balancer, floating_ips }) = listed else { return Ok(None) };
        if load_balancer.provisioning_status != ProvisioningStatus::Active {
            return Ok(None);
        }
        // What the Service must not use is reported by the reading.
        let Ok(Some(found)) = find::seen(self.claim, self.purpose(), load_balancer) else { return Ok(None) };
        if allowed::may_use(self.settings, &found).is_err() {
            return Ok(None);
        }
        if outputs::is_own_output(self.service) {
            let found = &found.load_balancer;
            self.observer.missing.found(&found.name, &found.tags);
        }
        report.load_balancer(self.service, id, found.ownership);
        let (ownership, project_id) = (found.ownership, found.load_balancer.project_id.clone());
        let updated_at = found.load_balancer.updated_at.clone();
        let observed = read::outline(self.claim, found, floating_ips)?;
        let vips: Vec<_> =
            observed.load_balancer.iter().flat_map(ObservedLoadBalancer::vip_addresses).collect();
        let question = self.floating_ip_question(Some(ownership), &vips);
        // Which others could be put there is not listed.
        if let FloatingIpQuestion::ForVip { asked } = question {
            let on_vip = &observed.floating_ips;
            if on_vip.is_empty() || asked.is_some_and(|asked| on_vip.iter().all(|one| one.address != asked)) {
                return Ok(None);
            }
        }
        let source = Source::Listed { digest: digest.clone(), believed };
        Ok(Some(Observation::new(source, Box::new(Cached::new(observed, project_id, updated_at)))))
    }
}
