//! `[LoadBalancer]`: defaults of all load balancers.

mod keys;

use std::time::Duration;

use openstack_ccm_core::advertise::IpModeChoice;

use super::LoadBalancerClass;

/// The default suffix with `enable-ingress-hostname`.
pub const DEFAULT_INGRESS_HOSTNAME_SUFFIX: &str = "nip.io";

/// Defaults of all load balancers. Annotations and classes override most of them per Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancer {
    /// Whether Services are served at all.
    pub enabled: bool,
    /// Octavia provider; if absent, Octavia chooses.
    pub lb_provider: Option<String>,
    /// Providers that a Service may choose for itself.
    pub lb_providers: Vec<String>,
    /// Algorithm of pools.
    pub lb_method: String,
    /// Networks and subnets, unless the Service or its class sets any.
    pub placement: LoadBalancerClass,
    /// Whether all load balancers are internal.
    pub internal_lb: bool,
    /// Labels of nodes that become members: `key=value` or `key`, separated by commas.
    pub node_selector: Option<String>,
    /// Which pools get a health monitor.
    pub create_monitor: CreateMonitor,
    /// Time between two checks. Octavia uses whole seconds: see [`Self::monitor_delay_seconds`].
    pub monitor_delay: Duration,
    /// Time for one check. Octavia uses whole seconds: see [`Self::monitor_timeout_seconds`].
    pub monitor_timeout: Duration,
    /// Successful checks until a member is up, 1 to 10.
    pub monitor_max_retries: u32,
    /// Failed checks until a member is down, 1 to 10.
    pub monitor_max_retries_down: u32,
    /// Whether security groups open the node ports.
    pub manage_security_groups: bool,
    /// Whether a load balancer is deleted with its children in one call.
    pub cascade_delete: bool,
    /// Octavia flavor.
    pub flavor_id: Option<String>,
    /// Octavia availability zone.
    pub availability_zone: Option<String>,
    /// Whether PROXY load balancers are always published with a hostname.
    pub enable_ingress_hostname: bool,
    /// The suffix as configured; see [`Self::effective_hostname_suffix`].
    pub ingress_hostname_suffix: Option<String>,
    /// TLS container of Services without the annotation.
    pub default_tls_container_ref: Option<String>,
    /// Where TLS containers are; see [`Self::verifies_tls_containers`].
    pub container_store: Option<String>,
    /// Maximum number of Services on one load balancer.
    pub max_shared_lb: u32,
    /// Whether the provider accepts single members only.
    pub provider_requires_serial_api_calls: bool,
    /// Whether a Service with two IP families gets an address of each.
    pub dual_stack: bool,
    /// Time after which an unchanged load balancer is compared with its Service again; zero for never.
    pub drift_check_interval: Duration,
    /// How PROXY load balancers are published, unless a Service overrides it.
    pub ip_mode: IpModeChoice,
    /// Whether a load balancer with another cluster's identity may be taken over.
    pub adopt_foreign_cluster: bool,
    /// What to do about a load balancer in ERROR that has served.
    pub error_recovery: ErrorRecovery,
    /// Whether load balancers that cannot be found are recreated, even if this may be the wrong project.
    pub recreate_missing: bool,
    /// Number of OCCM's load balancers per minute that get the tags that name their owner; 0 for none.
    pub identity_tags_per_minute: u32,
    /// Tags of all created objects, in addition to this controller's.
    pub tags: Vec<String>,
    /// Former names of the cluster: load balancers with these names belong to it.
    pub former_cluster_names: Vec<String>,
    /// Version of Octavia's API, major and minor; absent if Octavia is queried.
    pub octavia_api_version: Option<(u32, u32)>,
}

/// Which pools get a health monitor, unless a Service overrides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreateMonitor {
    /// None.
    #[default]
    No,
    /// Pools of new load balancers for Services with `externalTrafficPolicy: Local`, which lose connections without a monitor.
    Local,
    All,
}

/// What to do about a load balancer in ERROR that has served, and may still serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ErrorRecovery {
    /// It is left unchanged and reported.
    #[default]
    Report,
    /// Octavia is asked once to fail it over; then it is reported.
    Failover,
    /// A load balancer that does not serve, according to its operating status, is deleted and recreated.
    Replace,
}

impl ErrorRecovery {
    /// The values of the key.
    pub const VALUES: [&'static str; 3] = ["report", "failover", "replace"];

    fn parse(text: &str) -> Option<Self> {
        match text {
            "report" => Some(Self::Report),
            "failover" => Some(Self::Failover),
            "replace" => Some(Self::Replace),
            _ => None,
        }
    }
}

impl Default for LoadBalancer {
    fn default() -> Self {
        Self {
            enabled: true,
            lb_provider: Some("amphora".to_owned()),
            lb_providers: Vec::new(),
            lb_method: "ROUND_ROBIN".to_owned(),
            placement: LoadBalancerClass::default(),
            internal_lb: false,
            node_selector: None,
            create_monitor: CreateMonitor::No,
            monitor_delay: Duration::from_secs(5),
            monitor_timeout: Duration::from_secs(3),
            monitor_max_retries: 1,
            monitor_max_retries_down: 3,
            manage_security_groups: false,
            cascade_delete: true,
            flavor_id: None,
            availability_zone: None,
            enable_ingress_hostname: false,
            ingress_hostname_suffix: None,
            default_tls_container_ref: None,
            container_store: Some("barbican".to_owned()),
            max_shared_lb: 2,
            provider_requires_serial_api_calls: false,
            dual_stack: true,
            drift_check_interval: Duration::from_secs(1800),
            ip_mode: IpModeChoice::Auto,
            adopt_foreign_cluster: false,
            error_recovery: ErrorRecovery::default(),
            recreate_missing: false,
            identity_tags_per_minute: 12,
            tags: Vec::new(),
            former_cluster_names: Vec::new(),
            octavia_api_version: None,
        }
    }
}

impl LoadBalancer {
    /// Returns `monitor-delay` in whole seconds, rounded down.
    pub fn monitor_delay_seconds(&self) -> u64 {
        self.monitor_delay.as_secs()
    }

    /// Returns `monitor-timeout` in whole seconds, rounded down.
    pub fn monitor_timeout_seconds(&self) -> u64 {
        self.monitor_timeout.as_secs()
    }

    /// Returns whether the existence of TLS containers is checked: only the store `barbican` can be queried.
    pub fn verifies_tls_containers(&self) -> bool {
        self.container_store.as_deref() == Some("barbican")
    }

    /// Returns the suffix of published hostnames: the configured one; with `enable-ingress-hostname` the default; else none. So a
    /// third-party DNS service is never used unasked.
    pub fn effective_hostname_suffix(&self) -> Option<&str> {
        let default = self.enable_ingress_hostname.then_some(DEFAULT_INGRESS_HOSTNAME_SUFFIX);
        self.ingress_hostname_suffix.as_deref().or(default)
    }
}
