//! What controllers wrote into the Service, and its meaning. Pure.

use openstack_ccm_core::service::Service;

use crate::load_balancer::annotations::{
    Annotation, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID,
};

/// Returns whether an earlier reconciliation wrote the id in the Service's annotation, for a load balancer that was made for the
/// Service. OCCM writes only the address, which users never write.
pub(crate) fn is_written_by_us(service: &Service) -> bool {
    let value = |annotation: &Annotation| service.annotations.get(annotation.key);
    match value(&OWNED_LOAD_BALANCER_ID) {
        Some(owned) => value(&LOAD_BALANCER_ID) == Some(owned),
        None => value(&LOAD_BALANCER_ADDRESS).is_some(),
    }
}

/// Returns whether the Service has an annotation that only controllers write.
pub(crate) fn was_served(service: &Service) -> bool {
    [OWNED_LOAD_BALANCER_ID, LOAD_BALANCER_ADDRESS]
        .iter()
        .any(|output| service.annotations.contains_key(output.key))
}

/// Returns whether the Service may have used another load balancer than the one in its annotation: it is a guest, or the user
/// changed the annotation.
pub(crate) fn may_have_moved(service: &Service) -> bool {
    let owned = service.annotations.get(OWNED_LOAD_BALANCER_ID.key);
    owned.is_some_and(|owned| service.annotations.get(LOAD_BALANCER_ID.key) != Some(owned))
}
