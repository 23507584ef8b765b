//! Annotations with our prefix that mean nothing.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;

use crate::config::suggestion;
use crate::load_balancer::annotations::{ALL, is_known, is_ours};

const REASON: &str = "UnknownAnnotation";

/// A warning for each annotation that is ours by its prefix and not known.
pub(super) fn notices(service: &Service) -> impl Iterator<Item = Notice> + '_ {
    let unknown = service.annotations.keys().filter(|key| is_ours(key) && !is_known(key));
    unknown.map(|key| {
        let known = ALL.iter().map(|annotation| annotation.key);
        let advice = suggestion::nearest(key, known)
            .map_or_else(|| "remove it".to_owned(), |meant| format!("did you mean {meant}?"));
        Notice::warning(REASON, format!("annotation {key} is not known and has no effect; {advice}"))
    })
}
