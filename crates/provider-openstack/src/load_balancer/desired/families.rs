//! Notices about addresses of two families.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{IpFamily, Protocol};

use super::sources::Sources;
use crate::load_balancer::annotations::{
    FLOATING_NETWORK_ID, FLOATING_SUBNET, FLOATING_SUBNET_ID, FLOATING_SUBNET_TAGS,
};
use crate::load_balancer::settings::node_address::family_name;
use crate::load_balancer::settings::{Exposure, names_of};

/// OCCM's reason for the same. Sent only if the Service has settings for a floating IP, since an IPv6 address normally needs none.
const FLOATING_IP_SKIPPED: &str = "LoadBalancerFloatingIPSkipped";
/// Some ports can be reached at addresses of one family only.
const PORTS_SINGLE_STACK: &str = "LoadBalancerPortsSingleStack";

pub(super) fn notices(sources: Sources<'_>) -> impl Iterator<Item = Notice> {
    [floating_ip_skipped(sources), ports_of_one_family(sources)].into_iter().flatten()
}

fn floating_ip_skipped(sources: Sources<'_>) -> Option<Notice> {
    let annotations = &sources.intent.service.annotations;
    let asking = [FLOATING_NETWORK_ID, FLOATING_SUBNET_ID, FLOATING_SUBNET, FLOATING_SUBNET_TAGS];
    let asked = asking.iter().find(|annotation| annotations.contains_key(annotation.key))?;
    let external = matches!(sources.settings.exposure, Exposure::External(_));
    let ipv4 = sources.facts.vip_families().any(|family| family == IpFamily::V4);
    (external && !ipv4).then(|| {
        let message = format!(
            "annotation {} has no effect: the load balancer has an IPv6 address, and floating IPs are IPv4 only; remove the \
             annotation",
            asked.key
        );
        Notice::warning(FLOATING_IP_SKIPPED, message)
    })
}

/// Warns about UDP and SCTP ports: Octavia translates between families for TCP only, and forwards datagrams within their own
/// family.
fn ports_of_one_family(sources: Sources<'_>) -> Option<Notice> {
    let members = sources.settings.family?;
    let other = sources.facts.vip_families().find(|family| *family != members)?;
    let ports = names_of(&sources.intent.service.ports, |port| port.protocol != Protocol::Tcp)?;
    let message = format!(
        "the members have {} addresses, and Octavia translates between IP families for TCP only, so {ports} cannot be reached on the {} \
         address",
        family_name(members),
        family_name(other)
    );
    Some(Notice::warning(PORTS_SINGLE_STACK, message))
}
