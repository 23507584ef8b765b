//! The names by which users know this program.

use openstack_ccm_core::advertise::SettingNames;

/// The program, its field manager, its Lease and the source of its Events.
pub const PROGRAM: &str = "ip-mode-overlay";

/// Annotation of a Service: `proxy` asks for `ipMode: Proxy`, `vip` keeps everybody's hands off, `auto` is as without.
pub const MODE_ANNOTATION: &str = "ip-mode-overlay/mode";

/// Namespace of the canary, whose pods say what nodes honour.
pub const CANARY_NAMESPACE: &str = "ip-mode-overlay-canary";

/// `loadBalancerClass` of the canary's Services, which no controller serves.
pub const CANARY_CLASS: &str = "ip-mode-overlay/canary";

pub const METRIC_PREFIX: &str = "ip_mode_overlay";

/// What user and operator write to choose otherwise.
pub const SETTINGS: SettingNames = SettingNames {
    ip_mode_annotation: MODE_ANNOTATION,
    // The controller that owns the load balancer writes the name as well, so that nobody takes it away again.
    hostname_annotation: "by which your cloud's controller publishes a hostname",
    cluster_sources_annotation: None,
    ip_mode_setting: "the rule that chose it",
    hostname_suffix_setting: "set --hostname-suffix",
};
