//! Settings of the address's publication.

use openstack_ccm_core::advertise::{IpModeChoice, Preference, hostname};
use openstack_ccm_core::service::IpFamily;

use super::reader::SettingsReader;
use crate::config::DEFAULT_INGRESS_HOSTNAME_SUFFIX;
use crate::load_balancer::annotations::{ENABLE_INGRESS_HOSTNAME, Form, HOSTNAME, IP_MODE};

/// Returns the preferences of user and operator.
pub(super) fn preference(reader: &mut SettingsReader<'_>) -> Preference {
    let always_hostname = reader.bool(&ENABLE_INGRESS_HOSTNAME, reader.config.enable_ingress_hostname);
    // A Service that asks for a hostname gets one even without a suffix in cloud.conf.
    let default = always_hostname.then_some(DEFAULT_INGRESS_HOSTNAME_SUFFIX);
    Preference {
        service_mode: service_mode(reader),
        cluster_mode: reader.config.ip_mode,
        hostname: hostname_annotation(reader),
        always_hostname,
        hostname_suffix: reader.config.effective_hostname_suffix().or(default).map(str::to_owned),
        keep_published: false,
    }
}

/// Returns the IP families of the Service's addresses.
pub(super) fn families(reader: &SettingsReader<'_>) -> Vec<IpFamily> {
    let most = if reader.config.dual_stack { usize::MAX } else { 1 };
    reader.service.ip_families.iter().copied().take(most).collect()
}

fn service_mode(reader: &mut SettingsReader<'_>) -> Option<IpModeChoice> {
    let value = reader.annotation(&IP_MODE)?;
    let mode = IpModeChoice::parse(value.text);
    if let (None, Form::Word(words)) = (mode, IP_MODE.form) {
        reader.reject_word(&value, words);
    }
    mode
}

fn hostname_annotation(reader: &mut SettingsReader<'_>) -> Option<String> {
    let value = reader.annotation(&HOSTNAME)?;
    if let Err(error) = hostname::validate(value.text) {
        let fix = "write a DNS name in lower case, such as app.example.org";
        reader.reject(&value, format!("is not a hostname: {error}"), fix);
        return None;
    }
    Some(value.text.to_owned())
}
