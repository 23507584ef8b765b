//! The names by which users know this program.

use openstack_ccm_core::advertise::SettingNames;

/// Name of the program, its field manager, its Lease and the source of its Events.
pub const PROGRAM: &str = "ip-mode-overlay";

/// Annotation of a Service: `proxy` asks for `ipMode: Proxy`, `vip` forbids it, `auto` has the effect of no annotation.
pub const MODE_ANNOTATION: &str = "ip-mode-overlay/mode";

/// Namespace of the canary, whose pods say what nodes honour.
pub const CANARY_NAMESPACE: &str = "ip-mode-overlay-canary";

/// `loadBalancerClass` of the canary's Services, which no controller serves.
pub const CANARY_CLASS: &str = "ip-mode-overlay/canary";

pub const METRIC_PREFIX: &str = "ip_mode_overlay";

/// The annotations and settings that messages name to users and operators.
pub const SETTINGS: SettingNames = SettingNames {
    ip_mode_annotation: MODE_ANNOTATION,
    // The owner of the load balancer publishes the hostname too, so it does not remove it again.
    hostname_annotation: "by which your cloud's controller publishes a hostname",
    cluster_sources_annotation: None,
    ip_mode_setting: "the rule that chose it",
    hostname_suffix_setting: "set --hostname-suffix",
};
