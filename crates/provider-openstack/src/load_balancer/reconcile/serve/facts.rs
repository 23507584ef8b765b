//! Looks up the facts for a Service.

use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;

use super::Serving;
use crate::load_balancer::desired::recreation;
use crate::load_balancer::names;
use crate::load_balancer::objects::facts::Facts;
use crate::load_balancer::objects::observed::{Observed, ObservedFloatingIp, Ownership};
use crate::load_balancer::report::Report;
use crate::load_balancer::resolve::Lookup;
use crate::load_balancer::settings::{Exposure, Fault};
use crate::load_balancer::state::attempts::PreviousVips;

impl Serving<'_> {
    /// Looks up the facts that the desired tree depends on.
    pub(super) async fn resolve(
        &self,
        observed: &Observed,
        knows_floating_ips: bool,
        report: &mut Report,
    ) -> Result<(Facts, Vec<Fault>), Failure> {
        let resolver = &self.reconciler.resolver;
        let existing = observed.load_balancer.as_ref();
        let guest = existing.is_some_and(|existing| existing.ownership == Ownership::Guest);
        let ipv4 = existing.is_none_or(|existing| existing.vip_addresses().any(|vip| vip.is_ipv4()));
        // A load balancer keeps its provider, even if cloud.conf has another one now.
        let provider = existing.and_then(|existing| existing.made_with.provider.as_deref());
        let features = match provider {
            Some(provider) => resolver.features(Some(provider)).await?,
            None => self.features,
        };
        if let Some(existing) = existing.filter(|_| guest && !features.tags) {
            self.claim.shares_without_tags(existing)?;
        }
        let previous_vip_addresses = match existing {
            Some(_) => Vec::new(),
            None => self.previous_vips(&observed.floating_ips),
        };
        let lookup = Lookup {
            intent: self.intent,
            settings: self.settings,
            features,
            existing,
            wants_floating_ip: !guest && ipv4 && knows_floating_ips && observed.floating_ips.is_empty(),
            previous_vip_addresses,
        };
        let late =
            existing.and_then(|existing| recreation::notice(self.service, self.settings, features, existing));
        let mut notices = Vec::from_iter(late);
        let facts = resolver.facts(&lookup, &mut notices).await;
        report.notices(notices);
        facts
    }

    /// Returns the VIPs of the Service's former load balancer. What this process knows comes first; after a restart the annotation
    /// and the status still have them, and the tags of the floating IP record the VIP of a load balancer that broke.
    fn previous_vips(&self, floating_ips: &[ObservedFloatingIp]) -> Vec<IpAddr> {
        match &self.record().attempts.previous_vips {
            PreviousVips::Addresses(addresses) => addresses.clone(),
            PreviousVips::Lost => Vec::new(),
            PreviousVips::Unknown => {
                let internal = self.settings.exposure == Exposure::Internal;
                let annotated = self.settings.annotated_address;
                let published = self.service.published.iter().copied();
                let shown = annotated.into_iter().chain(published).filter(|one| internal || one.is_ipv6());
                let own = floating_ips.iter().filter(|floating_ip| floating_ip.ours);
                own.flat_map(|floating_ip| names::previous_vips(&floating_ip.tags)).chain(shown).collect()
            }
        }
    }
}
