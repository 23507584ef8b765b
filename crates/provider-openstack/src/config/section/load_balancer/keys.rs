//! The keys of `[LoadBalancer]`.

use openstack_ccm_core::advertise::{IpModeChoice, hostname};

use super::{ErrorRecovery, LoadBalancer};
use crate::config::error::Fault;
use crate::config::section::key::{Field, Key, Parsed, Since};

impl LoadBalancer {
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
            meaning: "Labels of nodes that become members: `key=value` or `key`, separated by commas. If a key appears several times, the last one counts.",
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
            meaning: "Time for one check; whole seconds. If it is longer than `monitor-delay`, checks overlap, and there is a warning.",
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
            meaning: "Always publishes PROXY load balancers with a hostname, `<address>.<ingress-hostname-suffix>`.",
            since: Since::Occm,
        },
        Key {
            name: "ingress-hostname-suffix",
            field: Field::Form { form: "DNS name", set: ingress_hostname_suffix },
            default: "",
            meaning: "DNS suffix under which names of addresses resolve. With `enable-ingress-hostname` the default is `nip.io`. If it is set here, it is also the fallback on clusters that cannot honour `ipMode: Proxy`.",
            since: Since::Occm,
        },
        Key {
            name: "default-tls-container-ref",
            field: Field::Text(|section| &mut section.default_tls_container_ref),
            default: "",
            meaning: "Barbican container or secret with the TLS certificate for Services without the annotation.",
            since: Since::Occm,
        },
        Key {
            name: "container-store",
            field: Field::Text(|section| &mut section.container_store),
            default: "barbican",
            meaning: "Where TLS containers are. `barbican`: openstack-ccm checks that they exist; `external`: it does not.",
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
            meaning: "For Octavia providers that support neither whole trees nor member batches: one call per object.",
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
            meaning: "How often the load balancer of an unchanged Service is compared with the Service, to correct changes that somebody made in the cloud; up to a fifth is added at random. A repair is reported by the Event `LoadBalancerDriftRepaired` and the metric `openstack_ccm_drift_repairs_total`. At the same interval, load balancers whose Service is gone are looked for and reported by `openstack_ccm_load_balancers_without_service`. `0`: never, as in OCCM.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "ip-mode",
            field: Field::Form { form: "word", set: ip_mode },
            default: "auto",
            meaning: "How load balancers are published: `proxy` and `vip` force `ipMode`; `auto` decides by what the load balancer does and what the cluster supports. The annotation `loadbalancer.openstack.org/ip-mode` of a Service overrides it.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "adopt-foreign-cluster",
            field: Field::Bool(|section| &mut section.adopt_foreign_cluster),
            default: "false",
            meaning: "Allows taking over load balancers, with their floating IPs, that have the names of this cluster but the identity tags of another one. Turn it on only to move load balancers to a new cluster, after the controller of the old one has been stopped.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "identity-tags-per-minute",
            field: Field::Unsigned(|section| &mut section.identity_tags_per_minute),
            default: "12",
            meaning: "How many load balancers that OCCM made get, with their floating IP, the tags that identify cluster and Service each minute: one after another, and never while there is other work on a load balancer. Octavia reloads a load balancer for each change of its tags. `0`: none.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "former-cluster-names",
            field: Field::Form { form: "list of names", set: former_cluster_names },
            default: "",
            meaning: "Names that the cluster had before (`--cluster-name`), separated by commas or on several lines with this key. A load balancer that was made under one of these names, and that the `load-balancer-id` of a Service names, belongs to the Service and is renamed. Without this key, load balancers that OCCM made for a cluster with another name are refused.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "error-recovery",
            field: Field::Form { form: "word", set: error_recovery },
            default: "report",
            meaning: "What to do with a load balancer in ERROR that has served before and may still serve. `report`: only a Warning. `failover`: Octavia is asked once to fail it over, which most clouds allow to administrators only; then it is reported. `replace`: it is deleted and recreated on its addresses, one at a time, only where its operating status is `OFFLINE` or `ERROR`, never with `reclaim-policy: retain`, and not while the last creation of a load balancer failed. One whose creation failed is always recreated.",
            since: Since::Version("0.1.0"),
        },
        Key {
            name: "recreate-missing",
            field: Field::Bool(|section| &mut section.recreate_missing),
            default: "false",
            meaning: "`true` confirms that load balancers which cannot be found are really gone, so that they are recreated. By default none is recreated if most of them are missing, or if nothing shows that this is the right project and region. Turn it off again when they are recreated.",
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
