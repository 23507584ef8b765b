//! The keys of `[LoadBalancer]`.

use openstack_ccm_core::advertise::{IpModeChoice, hostname};

use super::{CreateMonitor, ErrorRecovery, LoadBalancer};
use crate::config::error::ValueFault;
use crate::config::section::key::{
    Field, Key, Parsed, added_key, defaulting_key, key, key_since_0_2, key_since_0_3, text,
};
use crate::config::value::parse_bool;
use crate::user_tag::{self, MAX_NEUTRON_LENGTH};

impl LoadBalancer {
    /// The keys of the section.
    pub const KEYS: &'static [Key<Self>] = &[
        defaulting_key(
            "enabled",
            Field::Bool(|section| &mut section.enabled),
            "true",
            "`false` turns the service controller off.",
        ),
        defaulting_key(
            "lb-version",
            Field::Form { form: "word", set: lb_version },
            "v2",
            "Version of the load balancer API. There is only `v2`.",
        ),
        defaulting_key(
            "lb-provider",
            Field::Text(|section| &mut section.lb_provider),
            "amphora",
            "Octavia provider. Known: `amphora`, `octavia`, `ovn`, `f5`, `amphorav2`; others are used with a warning. Empty: Octavia's default.",
        ),
        key_since_0_3(
            "lb-providers",
            Field::Form { form: "list of names", set: lb_providers },
            "",
            "Octavia providers that a Service may choose for its load balancer by the annotation `loadbalancer.openstack.org/lb-provider`, separated by commas. Empty: none but `lb-provider`.",
        ),
        defaulting_key(
            "lb-method",
            Field::NonEmptyText(|section| &mut section.lb_method),
            "ROUND_ROBIN",
            "Algorithm of pools: `ROUND_ROBIN`, `LEAST_CONNECTIONS`, `SOURCE_IP` or `SOURCE_IP_PORT`.",
        ),
        text("subnet-id", |section| &mut section.placement.subnet_id, "Subnet of the VIP."),
        text("network-id", |section| &mut section.placement.network_id, "Network of the VIP."),
        text("member-subnet-id", |section| &mut section.placement.member_subnet_id, "Subnet of the members."),
        text(
            "floating-network-id",
            |section| &mut section.placement.floating_network_id,
            "Network of new floating IPs. Without it the external network is detected.",
        ),
        text(
            "floating-subnet-id",
            |section| &mut section.placement.floating_subnet_id,
            "Subnet of new floating IPs.",
        ),
        text(
            "floating-subnet",
            |section| &mut section.placement.floating_subnet,
            "Pattern for the name of the floating IP's subnet: a name, a glob, or `~` and a regular expression; `!` before it negates. Used without `floating-subnet-id`.",
        ),
        text(
            "floating-subnet-tags",
            |section| &mut section.placement.floating_subnet_tags,
            "Tags of the floating IP's subnet, separated by commas; `&` before them asks for all, `!` negates. Used without `floating-subnet-id`.",
        ),
        defaulting_key(
            "internal-lb",
            Field::Bool(|section| &mut section.internal_lb),
            "false",
            "Makes all load balancers internal, whatever Services ask for.",
        ),
        text(
            "node-selector",
            |section| &mut section.node_selector,
            "Labels of nodes that become members: `key=value` or `key`, separated by commas. If a key appears several times, the last one counts.",
        ),
        defaulting_key(
            "create-monitor",
            Field::BoolOr { form: "bool, or `local`", set: create_monitor },
            "false",
            "Gives each pool a health monitor. `local` (since 0.3.0) does so only on new load balancers of Services with `externalTrafficPolicy: Local`: without a health monitor, such Services lose the connections that reach a node without a pod. Existing load balancers are not changed, and a Warning Event reports those without a health monitor. The annotation `enable-health-monitor` overrides it.",
        ),
        defaulting_key(
            "monitor-delay",
            Field::Duration(|section| &mut section.monitor_delay),
            "5s",
            "Time between two checks; whole seconds.",
        ),
        defaulting_key(
            "monitor-timeout",
            Field::Duration(|section| &mut section.monitor_timeout),
            "3s",
            "Time for one check; whole seconds. If it is longer than `monitor-delay`, checks overlap, and there is a warning.",
        ),
        defaulting_key(
            "monitor-max-retries",
            Field::Unsigned(|section| &mut section.monitor_max_retries),
            "1",
            "Successful checks until a member is up, 1 to 10.",
        ),
        defaulting_key(
            "monitor-max-retries-down",
            Field::Unsigned(|section| &mut section.monitor_max_retries_down),
            "3",
            "Failed checks until a member is down, 1 to 10.",
        ),
        defaulting_key(
            "manage-security-groups",
            Field::Bool(|section| &mut section.manage_security_groups),
            "false",
            "Opens the node ports with a security group per Service.",
        ),
        defaulting_key(
            "cascade-delete",
            Field::Bool(|section| &mut section.cascade_delete),
            "true",
            "Deletes a load balancer with its children in one call.",
        ),
        text("flavor-id", |section| &mut section.flavor_id, "Octavia flavor of new load balancers."),
        text(
            "availability-zone",
            |section| &mut section.availability_zone,
            "Octavia availability zone of new load balancers.",
        ),
        defaulting_key(
            "enable-ingress-hostname",
            Field::Bool(|section| &mut section.enable_ingress_hostname),
            "false",
            "Always publishes load balancers with PROXY protocol under a hostname, `<address>.<ingress-hostname-suffix>`.",
        ),
        key(
            "ingress-hostname-suffix",
            Field::Form { form: "DNS name", set: ingress_hostname_suffix },
            "DNS suffix under which names of addresses resolve. With `enable-ingress-hostname` the default is `nip.io`. A suffix that is set here is also used on clusters that do not support `ipMode: Proxy`.",
        ),
        text(
            "default-tls-container-ref",
            |section| &mut section.default_tls_container_ref,
            "Barbican container or secret with the TLS certificate for Services without the annotation.",
        ),
        defaulting_key(
            "container-store",
            Field::Text(|section| &mut section.container_store),
            "barbican",
            "Where TLS containers are. `barbican`: openstack-ccm checks that they exist; `external`: it does not.",
        ),
        defaulting_key(
            "max-shared-lb",
            Field::Count(|section| &mut section.max_shared_lb),
            "2",
            "How many Services one load balancer may serve. With 0 or 1 none is shared.",
        ),
        defaulting_key(
            "provider-requires-serial-api-calls",
            Field::Bool(|section| &mut section.provider_requires_serial_api_calls),
            "false",
            "Creates and changes each object with a call of its own, for Octavia providers that support neither fully populated load \
             balancers nor batch updates of members.",
        ),
        added_key(
            "dual-stack",
            Field::Bool(|section| &mut section.dual_stack),
            "true",
            "Gives a new load balancer of a Service with two `spec.ipFamilies` a second address, from a subnet of the other family on the network of the first. `false`: only an address of the first family, as OCCM does.",
        ),
        added_key(
            "drift-check-interval",
            Field::Duration(|section| &mut section.drift_check_interval),
            "30m",
            "How often the load balancer of an unchanged Service is compared with the Service, to correct changes that somebody made in the cloud; up to a fifth is added at random, and the lists that are compared are up to a fifth old. A repair is reported by the Event `LoadBalancerDriftRepaired` and the metric `openstack_ccm_drift_repairs_total`. At the same interval, load balancers whose Service is gone are looked for and reported by `openstack_ccm_load_balancers_without_service`. `0`: never, as in OCCM.",
        ),
        added_key(
            "ip-mode",
            Field::Form { form: "word", set: ip_mode },
            "auto",
            "How load balancers are published: `proxy` and `vip` force `ipMode`; `auto` decides by what the load balancer does and what the cluster supports. The annotation `loadbalancer.openstack.org/ip-mode` of a Service overrides it.",
        ),
        added_key(
            "adopt-foreign-cluster",
            Field::Bool(|section| &mut section.adopt_foreign_cluster),
            "false",
            "Allows taking over load balancers, with their floating IPs, that have the names of this cluster but the identity tags of another one. Turn it on only to move load balancers to a new cluster, after the controller of the old one has been stopped.",
        ),
        key_since_0_2(
            "identity-tags-per-minute",
            Field::Unsigned(|section| &mut section.identity_tags_per_minute),
            "12",
            "Maximum number of load balancers created by OCCM that are tagged each minute. Each gets, together with its floating IP, the tags that identify cluster and Service, and missing tags of the user. Load balancers are tagged one after another, and never while there is other work on a load balancer. Octavia reloads a load balancer for each change of its tags. `0`: none.",
        ),
        key_since_0_3(
            "tags",
            Field::Form { form: "list of tags", set: tags },
            "",
            "Tags for everything that is created for Services (load balancers with their children, floating IPs, security groups), separated by commas or on several lines with this key, such as `cost-centre=42`. The annotation `loadbalancer.openstack.org/tags` adds to them. Existing objects get the tags when openstack-ccm starts; a load balancer created by OCCM gets them together with its identity tags (see `identity-tags-per-minute`). A tag that is removed from this key stays on existing objects.",
        ),
        key_since_0_3(
            "octavia-api-version",
            Field::Form { form: "version", set: octavia_api_version },
            "",
            "Version of Octavia's API, such as `2.26`, for a cloud that does not report it ([calls](openstack-calls.md)). No feature of a newer version is used. Empty: the version is read from Octavia; if Octavia does not report it, the oldest supported version is assumed.",
        ),
        key_since_0_2(
            "former-cluster-names",
            Field::Form { form: "list of names", set: former_cluster_names },
            "",
            "Names that the cluster had before (`--cluster-name`), separated by commas or on several lines with this key. A load balancer that was made under one of these names, and that the `load-balancer-id` of a Service names, belongs to the Service and is renamed. Without this key, load balancers that OCCM made for a cluster with another name are refused.",
        ),
        key_since_0_2(
            "error-recovery",
            Field::Form { form: "word", set: error_recovery },
            "report",
            "What to do with a load balancer in ERROR that has served before and may still serve. `report`: only a Warning. `failover`: Octavia is asked once to fail it over, which most clouds allow to administrators only; then it is reported. `replace`: it is deleted and recreated on its addresses, one at a time, only where its operating status is `OFFLINE` or `ERROR`, never with `reclaim-policy: retain`, and not while the last creation of a load balancer failed. A load balancer whose creation failed is always recreated.",
        ),
        key_since_0_2(
            "recreate-missing",
            Field::Bool(|section| &mut section.recreate_missing),
            "false",
            "`true` confirms that load balancers which cannot be found are really gone, so that they are recreated. By default none is recreated if most of them are missing, or if nothing shows that this is the right project and region. Set it to `false` again after the load balancers have been recreated.",
        ),
    ];
}

fn lb_version(_: &mut LoadBalancer, text: &str) -> Parsed {
    match text {
        "" | "v2" => Ok(None),
        _ => Err(ValueFault::new("this version is not supported", "remove the key, or use `v2`")),
    }
}

fn error_recovery(section: &mut LoadBalancer, text: &str) -> Parsed {
    section.error_recovery = ErrorRecovery::parse(text).ok_or_else(|| {
        let fix = format!("use one of {}", ErrorRecovery::VALUES.join(", "));
        ValueFault::new("the value is not a kind of recovery", fix)
    })?;
    Ok(None)
}

fn octavia_api_version(section: &mut LoadBalancer, text: &str) -> Parsed {
    let parse = |text: &str| {
        let (major, minor) = text.strip_prefix('v').unwrap_or(text).split_once('.')?;
        Some((major.parse().ok().filter(|major| *major == 2)?, minor.parse().ok()?))
    };
    section.octavia_api_version = match text {
        "" => None,
        text => Some(parse(text).ok_or_else(|| {
            ValueFault::new(
                "the value is not a version of Octavia's API",
                "write a version such as `2.26`, or remove the key so that the version is read from Octavia",
            )
        })?),
    };
    Ok(None)
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn lb_providers(section: &mut LoadBalancer, text: &str) -> Parsed {
    section.lb_providers = items(text).map(str::to_owned).collect();
    Ok(None)
}

fn former_cluster_names(section: &mut LoadBalancer, text: &str) -> Parsed {
    section.former_cluster_names.extend(items(text).map(str::to_owned));
    Ok(None)
}

fn create_monitor(section: &mut LoadBalancer, text: &str) -> Parsed {
    section.create_monitor = match (text.eq_ignore_ascii_case("local"), parse_bool(text)) {
        (true, _) => CreateMonitor::Local,
        (false, Some(true)) => CreateMonitor::All,
        (false, Some(false)) => CreateMonitor::No,
        (false, None) => {
            return Err(ValueFault::new(
                "the value is neither a bool nor `local`",
                "use `true`, `false` or `local`",
            ));
        }
    };
    Ok(None)
}

fn tags(section: &mut LoadBalancer, text: &str) -> Parsed {
    for tag in items(text) {
        if let Some((problem, fix)) = user_tag::problem(tag, MAX_NEUTRON_LENGTH) {
            return Err(ValueFault::new(format!("`{tag}` {problem}"), fix));
        }
        section.tags.push(tag.to_owned());
    }
    Ok(None)
}

fn ip_mode(section: &mut LoadBalancer, text: &str) -> Parsed {
    section.ip_mode = IpModeChoice::parse(text).ok_or_else(|| {
        ValueFault::new("the value is not a mode", format!("use one of {}", IpModeChoice::VALUES.join(", ")))
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
        let fix = "write a domain in lower case, such as `nip.io`";
        ValueFault::new(format!("the value is not a DNS suffix: {error}"), fix)
    })?;
    section.ingress_hostname_suffix = Some(suffix.to_owned());
    Ok(None)
}
