//! Reads all that one Service and cloud.conf say.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;

use super::fault::Faults;
use super::reader::{SettingsReader, WITHOUT_EFFECT};
use super::{Settings, allowed, network, unknown};
use crate::config::Config;

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
        let SettingsReader { faults, mut notices, odd, .. } = reader;
        notices.extend(unknown::notices(service));
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
