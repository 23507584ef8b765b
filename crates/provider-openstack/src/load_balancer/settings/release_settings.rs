//! The settings for the release of a Service.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;

use super::allowed;
use super::reader::{is_uuid, parse_bool};
use crate::config::Config;
use crate::load_balancer::annotations::{
    Annotation, KEEP_FLOATING_IP, LOAD_BALANCER_ID, RECLAIM_POLICY, SHARE_BY_ADDRESS,
};
use crate::load_balancer::identity::ids::WrittenId;

/// The settings for the release of a Service. Reading them cannot fail: an invalid annotation must not hold up a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseSettings {
    /// The load balancer in the annotation `load-balancer-id`. An invalid id counts as absent: the load balancer is then found by
    /// name.
    pub load_balancer_id: Option<WrittenId>,
    /// `share-by-address`: the Service may use a load balancer that none of its annotations names.
    pub shares_by_address: bool,
    /// `keep-floatingip`. A value that is neither `true` nor `false` keeps the floating IP, which the user can still delete.
    pub keep_floating_ip: bool,
    /// `reclaim-policy: retain`: a load balancer that only this Service uses stays. An unknown value keeps it too.
    pub retain: bool,
    /// `cascade-delete`: the load balancer is deleted with its children in one call.
    pub cascade_delete: bool,
    pub manage_security_groups: bool,
}

impl ReleaseSettings {
    /// Reads the settings, with warnings about invalid values.
    pub fn read(service: &Service, config: &Config) -> (Self, Vec<Notice>) {
        let mut notices = Vec::new();
        let value = |annotation: &Annotation| {
            service.annotations.get(annotation.key).map(String::as_str).filter(|text| !text.is_empty())
        };
        let load_balancer_id = value(&LOAD_BALANCER_ID).filter(|text| is_uuid(text));
        let keep_floating_ip = value(&KEEP_FLOATING_IP).is_some_and(|text| {
            parse_bool(text).unwrap_or_else(|| {
                let message = format!(
                    "annotation {}: {text:?} is neither true nor false, so the Service's floating IP is kept; delete the floating IP if \
                     it is not needed",
                    KEEP_FLOATING_IP.key
                );
                notices.push(Notice::warning("FloatingIPKept", message));
                true
            })
        });
        let retain = value(&RECLAIM_POLICY).is_some_and(|text| {
            // Case is ignored, since PersistentVolumes spell these words differently.
            let text = text.to_ascii_lowercase();
            if !matches!(text.as_str(), "delete" | "retain") {
                let message = format!(
                    "annotation {}: {text:?} is neither delete nor retain, so the Service's load balancer is kept; delete the load \
                     balancer if it is not needed",
                    RECLAIM_POLICY.key
                );
                notices.push(Notice::warning("LoadBalancerRetained", message));
            }
            text != "delete"
        });
        let is_allowed = allowed::allows_retain(service, config);
        if retain && !is_allowed {
            notices.push(Notice::warning(allowed::RETAIN_NOT_ALLOWED, allowed::retain_not_allowed()));
        }
        let release = Self {
            load_balancer_id: load_balancer_id.map(WrittenId::new),
            shares_by_address: value(&SHARE_BY_ADDRESS) == Some("true"),
            keep_floating_ip,
            retain: retain && is_allowed,
            cascade_delete: config.load_balancer.cascade_delete,
            manage_security_groups: config.load_balancer.manage_security_groups,
        };
        (release, notices)
    }
}
