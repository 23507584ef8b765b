//! Says that the published address changes: users and DNS records go by it.

use std::net::IpAddr;

use openstack_ccm_core::notice::{Notice, Severity};
use openstack_ccm_core::provider::Ready;

use super::Serving;
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::{ObservedFloatingIp, Ownership};
use crate::load_balancer::read::floating_ip::{self, FloatingIpQuery};
use crate::load_balancer::report::Report;

/// Another address is published from now on.
const ADDRESS_CHANGED: &str = "LoadBalancerAddressChanged";

impl Serving<'_> {
    /// Names the former and the new address, who attached the new one, and which floating IP of the Service lies idle. It is a
    /// Warning where another client attached an address that the Service does not ask for.
    pub(super) async fn report_address(&self, ready: &Ready, known: &Observation, report: &mut Report) {
        let published = &self.service.published;
        let (Some(former), Some(new)) = (published.first(), ready.addresses.first()) else { return };
        if published.contains(new) || ready.preference.keep_published {
            return;
        }
        let seen = known.seen();
        let attached = seen.floating_ips.iter().find(|one| one.address == *new);
        // Of a guest the owner decides, and a Service that was published by the VIP has become external.
        let is_known = seen.load_balancer.as_ref().is_some_and(|there| {
            there.ownership == Ownership::Guest || there.vip_addresses().any(|vip| vip == *former)
        });
        let is_asked = is_known || self.settings.asked_addresses().any(|asked| asked == *new);
        let foreign = attached.filter(|one| !one.ours && !is_asked);
        let of_service = match foreign {
            Some(_) => self.own_floating_ips(*former).await,
            None => seen.floating_ips.clone(),
        };
        let idle = of_service.iter().find(|one| one.ours && !one.in_use && one.port_id.is_none());
        let message = format!(
            "the published address changes from {former} to {new}{}{}",
            attached.map(|one| shown(one, foreign.is_some())).unwrap_or_default(),
            idle.map(lies_idle).unwrap_or_default()
        );
        let severity = if foreign.is_some() { Severity::Warning } else { Severity::Normal };
        report.notice(Notice { severity, reason: ADDRESS_CHANGED, message });
    }

    /// Returns the floating IPs of the Service; none where they cannot be read: only a message depends on them.
    async fn own_floating_ips(&self, published: IpAddr) -> Vec<ObservedFloatingIp> {
        let reader = self.reconciler.observer.reader(self.beginning.since);
        let question = FloatingIpQuery::ToRelease { published: Some(published) };
        floating_ip::read(reader, &self.claim, &question, None).await.unwrap_or_default()
    }
}

fn shown(attached: &ObservedFloatingIp, foreign: bool) -> String {
    let ObservedFloatingIp { id, description, .. } = attached;
    match foreign {
        true => format!(
            ": another client attached floating IP {id} (description {description:?}) to the load balancer"
        ),
        false => format!(" (floating IP {id})"),
    }
}

/// The plan of a floating IP that was exchanged is done by now, so it stays.
fn lies_idle(idle: &ObservedFloatingIp) -> String {
    let ObservedFloatingIp { id, address, .. } = idle;
    format!(
        ". The Service's floating IP {address} ({id}) is attached to nothing: attach it again in place of the other one, or delete it"
    )
}
