//! Reads all that one Service and cloud.conf say.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;

use super::fault::Faults;
use super::reader::{SettingsReader, WITHOUT_EFFECT};
use super::{Settings, allowed, network};
use crate::config::{Config, suggestion};
use crate::load_balancer::annotations::{ALL, is_known, is_ours};

/// What was read of one Service.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What it wants. Where something is wrong, these may only be used for a load balancer that exists, by
    /// `Settings::keeping`.
    pub settings: Settings,
    /// Everything that is wrong.
    pub faults: Faults,
    /// What the user should be told besides.
    pub notices: Vec<Notice>,
}

impl Reading {
    /// Reads everything that a Service and cloud.conf say.
    pub fn of(service: &Service, config: &Config) -> Self {
        let mut reader = SettingsReader::new(service, config);
        reader.class = network::choose_class(&mut reader, config);
        let mut settings = Settings::assemble(&mut reader);
        settings.allowed_load_balancers = allowed::check(&mut reader, config);
        settings.annotated_address = allowed::annotated_address(&reader, config);
        let SettingsReader { faults, mut notices, odd, .. } = reader;
        notices.extend(unknown_annotations(service));
        settings.odd = odd;
        settings.unreadable.clone_from(faults.unreadable());
        if faults.failure().is_some() {
            // What does nothing is no matter beside what is wrong.
            notices.retain(|notice| notice.reason != WITHOUT_EFFECT);
        } else {
            notices.extend(settings.port_notices(&service.ports));
        }
        Self { settings, faults, notices }
    }
}

const REASON: &str = "UnknownAnnotation";

/// A warning for each annotation that is ours by its prefix and not known.
fn unknown_annotations(service: &Service) -> impl Iterator<Item = Notice> + '_ {
    let unknown = service.annotations.keys().filter(|key| is_ours(key) && !is_known(key));
    unknown.map(|key| {
        let known = ALL.iter().map(|annotation| annotation.key);
        let advice = suggestion::nearest(key, known)
            .map_or_else(|| "remove it".to_owned(), |meant| format!("did you mean {meant}?"));
        Notice::warning(REASON, format!("annotation {key} is not known and has no effect; {advice}"))
    })
}
