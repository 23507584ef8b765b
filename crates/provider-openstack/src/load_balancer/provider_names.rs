//! The names by which users, operators and dashboards know OpenStack as a provider.

use openstack_ccm_core::advertise::SettingNames;
use openstack_ccm_core::provider::ProviderNames;

use super::annotations::{ALLOW_CLUSTER_SOURCES, HOSTNAME, IP_MODE};

/// Event source and metrics are spelled as the Go implementation spells them.
pub(super) const PROVIDER_NAMES: ProviderNames = ProviderNames {
    event_source: "cloud-provider-openstack",
    metric_prefix: "cloudprovider_openstack",
    delete_command: "openstack loadbalancer delete --cascade",
    settings: SettingNames {
        ip_mode_annotation: IP_MODE.key,
        hostname_annotation: HOSTNAME.key,
        cluster_sources_annotation: Some(ALLOW_CLUSTER_SOURCES.key),
        ip_mode_setting: "ip-mode in cloud.conf",
        hostname_suffix_setting: "ingress-hostname-suffix in cloud.conf",
    },
};
