//! `[LoadBalancer]`: defaults of all load balancers.

use std::time::Duration;

use openstack_ccm_core::advertise::{IpModeChoice, hostname};

use super::key::{Field, Key, Parsed, Since};
use crate::config::error::Fault;

/// The suffix that applies with `enable-ingress-hostname` alone.
pub const DEFAULT_INGRESS_HOSTNAME_SUFFIX: &str = "nip.io";

/// Defaults of all load balancers. Annotations and classes override most of them per Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancer {
    /// Whether Services are served at all.
    pub enabled: bool,
    /// Octavia provider; none leaves the choice to Octavia.
    pub lb_provider: Option<String>,
    /// Algorithm of pools.
    pub lb_method: String,
    /// Subnet of the VIP.
    pub subnet_id: Option<String>,
    /// Network of the VIP.
    pub network_id: Option<String>,
    /// Subnet of the members.
    pub member_subnet_id: Option<String>,
    /// Network of new floating IPs.
    pub floating_network_id: Option<String>,
    /// Subnet of new floating IPs.
    pub floating_subnet_id: Option<String>,
    /// Pattern for the name of the floating IP's subnet.
    pub floating_subnet: Option<String>,
    /// Tags of the floating IP's subnet.
    pub floating_subnet_tags: Option<String>,
    /// Whether all load balancers are internal.
    pub internal_lb: bool,
    /// Labels of nodes that become members: `key=value` or `key`, separated by commas.
    pub node_selector: Option<String>,
    /// Whether pools get a health monitor.
    pub create_monitor: bool,
    /// Time between two checks. Octavia counts in seconds: see [`Self::monitor_delay_seconds`].
    pub monitor_delay: Duration,
    /// Time for one check. Octavia counts in seconds: see [`Self::monitor_timeout_seconds`].
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
    /// Whether PROXY load balancers are always published by a hostname.
    pub enable_ingress_hostname: bool,
    /// The suffix as configured; see [`Self::effective_hostname_suffix`].
    pub ingress_hostname_suffix: Option<String>,
    /// TLS container of Services that name none.
    pub default_tls_container_ref: Option<String>,
    /// Where TLS containers are; see [`Self::verifies_tls_containers`].
    pub container_store: Option<String>,
    /// Services that one load balancer may serve.
    pub max_shared_lb: u32,
    /// Whether the provider takes members one by one only.
    pub provider_requires_serial_api_calls: bool,
    /// Whether a Service with two IP families gets an address of each.
    pub dual_stack: bool,
    /// Time after which an unchanged load balancer is compared with its Service again; zero for never.
    pub drift_check_interval: Duration,
    /// How PROXY load balancers are published, unless a Service says otherwise.
    pub ip_mode: IpModeChoice,
    /// Whether a load balancer with another cluster's identity may be taken over.
    pub adopt_foreign_cluster: bool,
    /// What is done about a load balancer in ERROR that has served.
    pub error_recovery: ErrorRecovery,
    /// Whether load balancers that cannot be found are recreated, also where this may be the wrong project.
    pub recreate_missing: bool,
    /// How many load balancers of OCCM get the tags that say who owns them, each minute; 0 for none.
    pub identity_tags_per_minute: u32,
    /// What the cluster was called before: load balancers with these names in theirs are its own.
    pub former_cluster_names: Vec<String>,
}

/// What is done about a load balancer in ERROR that has served, and may still serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ErrorRecovery {
    /// It is left as it is and reported.
    #[default]
    Report,
    /// Octavia is asked once to fail it over, then it is reported.
    Failover,
    /// One that serves nobody according to its operating status is deleted and recreated.
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
            lb_method: "ROUND_ROBIN".to_owned(),
            subnet_id: None,
            network_id: None,
            member_subnet_id: None,
            floating_network_id: None,
            floating_subnet_id: None,
            floating_subnet: None,
            floating_subnet_tags: None,
            internal_lb: false,
            node_selector: None,
            create_monitor: false,
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
            former_cluster_names: Vec::new(),
        }
    }
}

impl LoadBalancer {
    /// `monitor-delay` in whole seconds, cut.
    pub fn monitor_delay_seconds(&self) -> u64 {
        self.monitor_delay.as_secs()
    }

    /// `monitor-timeout` in whole seconds, cut.
    pub fn monitor_timeout_seconds(&self) -> u64 {
        self.monitor_timeout.as_secs()
    }

    /// Whether the existence of TLS containers is checked: only the store `barbican` can be asked.
    pub fn verifies_tls_containers(&self) -> bool {
        self.container_store.as_deref() == Some("barbican")
    }

    /// The suffix under which addresses are published as hostnames: the configured one; with
    /// `enable-ingress-hostname` the default; else none. A foreign DNS service is thus never used unasked.
    pub fn effective_hostname_suffix(&self) -> Option<&str> {
        let default = self.enable_ingress_hostname.then_some(DEFAULT_INGRESS_HOSTNAME_SUFFIX);
        self.ingress_hostname_suffix.as_deref().or(default)
    }

    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "enabled",
            field: Field::Bool(|section| &mut section.enabled),
            default: "true",
            meaning: "`false` turns the service controller off.",
            since: Since::Occm,
        },
        Key {
            name: "lb-version",
            field: Field::Form { form: "word", set: lb_version },
            default: "v2",
            meaning: "Version of the load balancer API. There is only `v2`.",
            since: Since::Occm,
        },
        Key {
            name: "lb-provider",
            field: Field::Text(|section| &mut section.lb_provider),
            default: "amphora",
            meaning: "Octavia provider. Known: `amphora`, `octavia`, `ovn`, `f5`, `amphorav2`; others are used with a warning. Empty: Octavia's default.",
            since: Since::Occm,
        },
        Key {
            name: "lb-method",
            field: Field::Word(|section| &mut section.lb_method),
            default: "ROUND_ROBIN",
            meaning: "Algorithm of pools: `ROUND_ROBIN`, `LEAST_CONNECTIONS`, `SOURCE_IP` or `SOURCE_IP_PORT`.",
            since: Since::Occm,
        },
        Key {
            name: "subnet-id",
            field: Field::Text(|section| &mut section.subnet_id),
            default: "",
            meaning: "Subnet of the VIP.",
            since: Since::Occm,
        },
        Key {
            name: "network-id",
            field: Field::Text(|section| &mut section.network_id),
            default: "",
            meaning: "Network of the VIP.",
            since: Since::Occm,
        },
        Key {
            name: "member-subnet-id",
            field: Field::Text(|section| &mut section.member_subnet_id),
            default: "",
            meaning: "Subnet of the members.",
            since: Since::Occm,
        },
        Key {
            name: "floating-network-id",
            field: Field::Text(|section| &mut section.floating_network_id),
            default: "",
            meaning: "Network of new floating IPs. Without it the external network is detected.",
            since: Since::Occm,
        },
        Key {
            name: "floating-subnet-id",
            field: Field::Text(|section| &mut section.floating_subnet_id),
            default: "",
            meaning: "Subnet of new floating IPs.",
            since: Since::Occm,
        },
        Key {
            name: "floating-subnet",
            field: Field::Text(|section| &mut section.floating_subnet),
            default: "",
            meaning: "Pattern for the name of the floating IP's subnet: a name, a glob, or `~` and a regular expression; `!` before it negates. Used without `floating-subnet-id`.",
            since: Since::Occm,
        },
        Key {
            name: "floating-subnet-tags",
            field: Field::Text(|section| &mut section.floating_subnet_tags),
            default: "",
            meaning: "Tags of the floating IP's subnet, separated by commas; `&` before them asks for all, `!` negates. Used without `floating-subnet-id`.",
            since: Since::Occm,
        },
        Key {
            name: "internal-lb",
            field: Field::Bool(|section| &mut section.internal_lb),
            default: "false",
            meaning: "Makes all load balancers internal, whatever Services ask for.",
            since: Since::Occm,
        },
        Key {
            name: "node-selector",
            field: Field::Text(|section| &mut section.node_selector),
            default: "",
            meaning: "Labels of nodes that become members: `key=value` or `key`, separated by commas. Of several pairs with one key the last one counts.",
            since: Since::Occm,
        },
        Key {
            name: "create-monitor",
            field: Field::Bool(|section| &mut section.create_monitor),
            default: "false",
            meaning: "Gives each pool a health monitor.",
            since: Since::Occm,
        },
        Key {
            name: "monitor-delay",
            field: Field::Duration(|section| &mut section.monitor_delay),
            default: "5s",
            meaning: "Time between two checks; whole seconds.",
            since: Since::Occm,
        },
        Key {
            name: "monitor-timeout",
            field: Field::Duration(|section| &mut section.monitor_timeout),
            default: "3s",
            meaning: "Time for one check; whole seconds. One that is longer than `monitor-delay` lets checks overlap, which a warning says.",
            since: Since::Occm,
        },
        Key {
            name: "monitor-max-retries",
            field: Field::Unsigned(|section| &mut section.monitor_max_retries),
            default: "1",
            meaning: "Successful checks until a member is up, 1 to 10.",
            since: Since::Occm,
        },
        Key {
            name: "monitor-max-retries-down",
            field: Field::Unsigned(|section| &mut section.monitor_max_retries_down),
            default: "3",
            meaning: "Failed checks until a member is down, 1 to 10.",
            since: Since::Occm,
        },
        Key {
            name: "manage-security-groups",
            field: Field::Bool(|section| &mut section.manage_security_groups),
            default: "false",
            meaning: "Opens the node ports with a security group per Service.",
            since: Since::Occm,
        },
        Key {
            name: "cascade-delete",
            field: Field::Bool(|section| &mut section.cascade_delete),
            default: "true",
            meaning: "Deletes a load balancer with its children in one call.",
            since: Since::Occm,
        },
        Key {
            name: "flavor-id",
            field: Field::Text(|section| &mut section.flavor_id),
            default: "",
            meaning: "Octavia flavor of new load balancers.",
            since: Since::Occm,
        },
        Key {
            name: "availability-zone",
            field: Field::Text(|section| &mut section.availability_zone),
            default: "",
            meaning: "Octavia availability zone of new load balancers.",
            since: Since::Occm,
        },
        Key {
            name: "enable-ingress-hostname",
            field: Field::Bool(|section| &mut section.enable_ingress_hostname),
            default: "false",
            meaning: "Always publishes PROXY load balancers by a hostname, `<address>.<ingress-hostname-suffix>`.",
            since: Since::Occm,
        },
        Key {
            name: "ingress-hostname-suffix",
            field: Field::Form { form: "DNS name", set: ingress_hostname_suffix },
            default: "",
            meaning: "DNS suffix under which names of addresses resolve. With `enable-ingress-hostname` alone it is `nip.io`; where it is set here, it is also used for clusters that cannot honour `ipMode: Proxy`.",
            since: Since::Occm,
        },
        Key {
            name: "default-tls-container-ref",
            field: Field::Text(|section| &mut section.default_tls_container_ref),
            default: "",
            meaning: "Barbican container or secret with the TLS certificate of Services that name none.",
            since: Since::Occm,
        },
        Key {
            name: "container-store",
            field: Field::Text(|section| &mut section.container_store),
            default: "barbican",
            meaning: "Where TLS containers are. `barbican`: their existence is checked; `external`: it is not.",
            since: Since::Occm,
        },
        Key {
            name: "max-shared-lb",
            field: Field::Count(|section| &mut section.max_shared_lb),
            default: "2",
            meaning: "How many Services one load balancer may serve, at least 1.",
            since: Since::Occm,
        },
        Key {
            name: "provider-requires-serial-api-calls",
            field: Field::Bool(|section| &mut section.provider_requires_serial_api_calls),
            default: "false",
            meaning: "For Octavia providers that take neither whole trees nor member batches: one call per object.",
            since: Since::Occm,
        },
        Key {
            name: "dual-stack",
            field: Field::Bool(|section| &mut section.dual_stack),
            default: "true",
            meaning: "Gives a new load balancer of a Service with two `spec.ipFamilies` a second address, from a subnet of the other family on the network of the first. `false`: only an address of the first family, as OCCM does.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "drift-check-interval",
            field: Field::Duration(|section| &mut section.drift_check_interval),
            default: "30m",
            meaning: "Time after which the load balancer of a Service that does not change is compared again, to put right what was changed in the cloud; up to a fifth is added at random. A repair is reported by the Event `LoadBalancerDriftRepaired` and the metric `openstack_ccm_drift_repairs_total`. As often, load balancers whose Service is gone are looked for and reported by `openstack_ccm_load_balancers_without_service`. `0`: never, as OCCM.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "ip-mode",
            field: Field::Form { form: "word", set: ip_mode },
            default: "auto",
            meaning: "How load balancers are published: `proxy` and `vip` force `ipMode`; `auto` decides by what the load balancer does and what the cluster can. A Service's annotation `loadbalancer.openstack.org/ip-mode` wins.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "adopt-foreign-cluster",
            field: Field::Bool(|section| &mut section.adopt_foreign_cluster),
            default: "false",
            meaning: "Allows taking over load balancers, with their floating IPs, that carry another cluster's identity and otherwise the names of this one. Turn it on only to move load balancers to a new cluster, after the old one has stopped.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "identity-tags-per-minute",
            field: Field::Unsigned(|section| &mut section.identity_tags_per_minute),
            default: "12",
            meaning: "How many load balancers that OCCM made get, with their floating IP, the tags that tell cluster and Service each minute: one after another, and never while anything else is to be done on one. Octavia reloads a load balancer for each change of its tags. `0`: none.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "former-cluster-names",
            field: Field::Form { form: "list of names", set: former_cluster_names },
            default: "",
            meaning: "Names that the cluster had before (`--cluster-name`), separated by commas or one for each line of this key. A load balancer that a Service's `load-balancer-id` names and that was made under one of them is the Service's own, and renamed. Without it a load balancer that OCCM made for a cluster of another name is refused.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "error-recovery",
            field: Field::Form { form: "word", set: error_recovery },
            default: "report",
            meaning: "What is done about a load balancer in ERROR that has served before, since it may still serve. `report`: nothing but a Warning. `failover`: Octavia is asked once to fail it over, which most clouds allow to administrators only; then it is reported. `replace`: it is deleted and recreated on its addresses, one at a time, only where its operating status is `OFFLINE` or `ERROR`, never with `reclaim-policy: retain`, and not while the last creation of a load balancer failed. One whose creation failed is always recreated.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "recreate-missing",
            field: Field::Bool(|section| &mut section.recreate_missing),
            default: "false",
            meaning: "`true` says that load balancers which cannot be found are really gone, so that they are recreated. By default none is where most of them are missing, or nothing shows that this is the right project and region. Turn it on only until they are recreated.",
            since: Since::Version("0.1.0"),
        },
    ];
}

fn lb_version(_: &mut LoadBalancer, text: &str) -> Parsed {
    match text {
        "" | "v2" => Ok(None),
        _ => Err(Fault::new("there is no such version", "remove the key, or use `v2`")),
    }
}

fn error_recovery(section: &mut LoadBalancer, text: &str) -> Parsed {
    section.error_recovery = ErrorRecovery::parse(text).ok_or_else(|| {
        Fault::new("there is no such recovery", format!("use one of {}", ErrorRecovery::VALUES.join(", ")))
    })?;
    Ok(None)
}

fn former_cluster_names(section: &mut LoadBalancer, text: &str) -> Parsed {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    section.former_cluster_names.extend(names.map(str::to_owned));
    Ok(None)
}

fn ip_mode(section: &mut LoadBalancer, text: &str) -> Parsed {
    section.ip_mode = IpModeChoice::parse(text).ok_or_else(|| {
        Fault::new("it is no mode", format!("use one of {}", IpModeChoice::VALUES.join(", ")))
    })?;
    Ok(None)
}

fn ingress_hostname_suffix(section: &mut LoadBalancer, text: &str) -> Parsed {
    let suffix = text.trim_start_matches('.');
    section.ingress_hostname_suffix = None;
    if suffix.is_empty() {
        return Ok(None);
    }
    hostname::validate(suffix).map_err(|error| {
        Fault::new(
            format!("it is not a DNS suffix: {error}"),
            "write a domain in lower case, such as `nip.io`",
        )
    })?;
    section.ingress_hostname_suffix = Some(suffix.to_owned());
    Ok(None)
}
