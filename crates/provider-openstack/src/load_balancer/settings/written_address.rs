//! Detects a user who wrote the output annotation with the address to ask for one.

use std::net::IpAddr;

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;

use super::reader::WITHOUT_EFFECT;
use crate::load_balancer::annotations::{
    FLOATING_IP, INTERNAL, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID, VIP_ADDRESS,
};

/// Returns the warning for a user who wrote the output annotation with the address to ask for one: on a Service that no controller
/// has served, or differing from the published address (`current`).
pub(crate) fn address_as_wish(service: &Service, current: Option<IpAddr>) -> Option<Notice> {
    let written: IpAddr = service.annotations.get(LOAD_BALANCER_ADDRESS.key)?.parse().ok()?;
    let outputs = [OWNED_LOAD_BALANCER_ID, LOAD_BALANCER_ID];
    let is_wish = match current {
        Some(current) => written != current && service.published.contains(&current),
        None => {
            !service.is_published
                && outputs.iter().all(|output| !service.annotations.contains_key(output.key))
        }
    };
    let internal = service.annotations.get(INTERNAL.key).is_some_and(|value| value == "true");
    let key = if internal || written.is_ipv6() { VIP_ADDRESS.key } else { FLOATING_IP.key };
    is_wish.then(|| {
        let message = format!(
            "annotation {}: openstack-ccm writes the load balancer's address to this annotation and does not read it; to ask for \
             {written}, set {key} to this address",
            LOAD_BALANCER_ADDRESS.key
        );
        Notice::warning(WITHOUT_EFFECT, message)
    })
}
