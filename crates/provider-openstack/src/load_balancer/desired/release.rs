//! What is left behind when a Service goes.

use std::collections::BTreeSet;

use openstack_ccm_core::service::Service;

use crate::load_balancer::annotations::PORT_ID;
use crate::load_balancer::model::{Reclaim, ReleaseTerms, Tags};
use crate::load_balancer::names::Names;
use crate::load_balancer::settings::ReleaseSettings;

/// The terms of a release. Wrong annotations do not get in its way.
pub(crate) fn release_terms(service: &Service, names: &Names, settings: &ReleaseSettings) -> ReleaseTerms {
    let service_tag = names.service_tag();
    let common_tags: Tags = names.identity_tags().into_iter().filter(|tag| *tag != service_tag).collect();
    ReleaseTerms {
        tags: &names.tags() - &common_tags,
        common_tags,
        floating_ip_tags: names.identity_tags(),
        reclaim: if settings.retain { Reclaim::Retain } else { Reclaim::Delete },
        keep_floating_ip: settings.keep_floating_ip,
        vip_port_id: service.annotations.get(PORT_ID.key).cloned(),
        retained_vip_ports: BTreeSet::new(),
        cascade: settings.cascade_delete,
    }
}
