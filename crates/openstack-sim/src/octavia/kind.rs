//! The kinds of objects, how they are called, and which attributes each takes.

use super::schema::{Attribute, Initial, ValueCheck, attribute};

/// A kind of object in Octavia's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    LoadBalancer,
    Listener,
    Pool,
    Member,
    HealthMonitor,
}

impl ObjectKind {
    /// The name in messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::LoadBalancer => "Load Balancer",
            Self::Listener => "Listener",
            Self::Pool => "Pool",
            Self::Member => "Member",
            Self::HealthMonitor => "Health Monitor",
        }
    }

    /// The key of one object in a body.
    pub(crate) fn root(self) -> &'static str {
        match self {
            Self::LoadBalancer => "loadbalancer",
            Self::Listener => "listener",
            Self::Pool => "pool",
            Self::Member => "member",
            Self::HealthMonitor => "healthmonitor",
        }
    }

    /// The key of a list, and the path segment.
    pub(crate) fn collection(self) -> &'static str {
        match self {
            Self::LoadBalancer => "loadbalancers",
            Self::Listener => "listeners",
            Self::Pool => "pools",
            Self::Member => "members",
            Self::HealthMonitor => "healthmonitors",
        }
    }

    /// The name of the controller's argument, which messages about unknown attributes show.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::LoadBalancer => "load_balancer",
            Self::Listener => "listener_",
            Self::Pool => "pool_",
            Self::Member => "member_",
            Self::HealthMonitor => "health_monitor_",
        }
    }

    /// The name of the quota.
    pub(crate) fn quota(self) -> &'static str {
        match self {
            Self::LoadBalancer => "load_balancer",
            Self::Listener => "listener",
            Self::Pool => "pool",
            Self::Member => "member",
            Self::HealthMonitor => "health_monitor",
        }
    }

    /// The attributes that a body may have.
    pub(crate) fn attributes(self) -> &'static [Attribute] {
        match self {
            Self::LoadBalancer => LOAD_BALANCER,
            Self::Listener => LISTENER,
            Self::Pool => POOL,
            Self::Member => MEMBER,
            Self::HealthMonitor => HEALTH_MONITOR,
        }
    }
}

/// In milliseconds. Eleven days (999999999) is taken by the real service; the bound here is what its database column holds.
const TIMEOUT: ValueCheck = ValueCheck::Integer { min: 0, max: 2_147_483_647 };
const PORT: ValueCheck = ValueCheck::Integer { min: 1, max: 65_535 };
const NAME: ValueCheck = ValueCheck::Text { max: 255 };

const LOAD_BALANCER: &[Attribute] = &[
    attribute("name", NAME, Initial::EmptyText),
    attribute("description", NAME, Initial::EmptyText),
    attribute("admin_state_up", ValueCheck::Flag, Initial::Flag(true)),
    attribute("vip_sg_ids", ValueCheck::Uuids, Initial::EmptyList).since(29),
    attribute("provider", ValueCheck::Text { max: 64 }, Initial::Text("amphora")).fixed(),
    attribute("flavor_id", ValueCheck::Uuid, Initial::Null).fixed().since(6),
    attribute("vip_qos_policy_id", ValueCheck::Uuid, Initial::Null),
    attribute("tags", ValueCheck::Tags, Initial::EmptyList).since(5),
    attribute("availability_zone", NAME, Initial::Null).fixed().since(14),
    attribute("vip_vnic_type", ValueCheck::ReadOnly, Initial::Text("normal")).since(28),
    attribute("vip_address", ValueCheck::Address, Initial::Null).link(),
    attribute("vip_port_id", ValueCheck::Uuid, Initial::Null).link(),
    attribute("vip_subnet_id", ValueCheck::Uuid, Initial::Null).link(),
    attribute("vip_network_id", ValueCheck::Uuid, Initial::Null).link(),
    attribute("additional_vips", ValueCheck::AdditionalVips, Initial::EmptyList).link().since(26),
    attribute("project_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
    attribute("tenant_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
    attribute("listeners", ValueCheck::Nested(ObjectKind::Listener), Initial::EmptyList).link(),
    attribute("pools", ValueCheck::Nested(ObjectKind::Pool), Initial::EmptyList).link(),
];

const LISTENER_PROTOCOLS: &[(&str, u8)] = &[
    ("TERMINATED_HTTPS", 0),
    ("HTTPS", 0),
    ("HTTP", 0),
    ("PROMETHEUS", 25),
    ("SCTP", 23),
    ("UDP", 0),
    ("TCP", 0),
];

const LISTENER: &[Attribute] = &[
    attribute("name", NAME, Initial::EmptyText),
    attribute("description", NAME, Initial::EmptyText),
    attribute("admin_state_up", ValueCheck::Flag, Initial::Flag(true)),
    attribute("protocol", ValueCheck::OneOf(LISTENER_PROTOCOLS), Initial::Null).fixed().required(),
    attribute("protocol_port", PORT, Initial::Null).fixed().required(),
    attribute("connection_limit", ValueCheck::Integer { min: -1, max: 2_147_483_647 }, Initial::Integer(-1)),
    attribute("default_tls_container_ref", NAME, Initial::Null),
    attribute("sni_container_refs", ValueCheck::Texts, Initial::EmptyList),
    attribute("insert_headers", ValueCheck::Headers, Initial::EmptyObject),
    attribute("timeout_client_data", TIMEOUT, Initial::Integer(50_000)).since(1),
    attribute("timeout_member_connect", TIMEOUT, Initial::Integer(5_000)).since(1),
    attribute("timeout_member_data", TIMEOUT, Initial::Integer(50_000)).since(1),
    attribute("timeout_tcp_inspect", TIMEOUT, Initial::Integer(0)).since(1),
    attribute("tags", ValueCheck::Tags, Initial::EmptyList).since(5),
    attribute("client_ca_tls_container_ref", NAME, Initial::Null).since(8),
    attribute(
        "client_authentication",
        ValueCheck::OneOf(&[("NONE", 0), ("OPTIONAL", 0), ("MANDATORY", 0)]),
        Initial::Text("NONE"),
    )
    .since(8),
    attribute("client_crl_container_ref", NAME, Initial::Null).since(8),
    attribute("allowed_cidrs", ValueCheck::Cidrs, Initial::Null).since(12),
    attribute("tls_ciphers", ValueCheck::Text { max: 2048 }, Initial::Null).since(15),
    attribute("tls_versions", ValueCheck::Texts, Initial::Null).since(17),
    attribute("alpn_protocols", ValueCheck::Texts, Initial::Null).since(20),
    attribute("hsts_max_age", ValueCheck::Integer { min: 0, max: 2_147_483_647 }, Initial::Null).since(27),
    attribute("hsts_include_subdomains", ValueCheck::Flag, Initial::Flag(false)).since(27),
    attribute("hsts_preload", ValueCheck::Flag, Initial::Flag(false)).since(27),
    attribute("loadbalancer_id", ValueCheck::Uuid, Initial::Null).link(),
    attribute("default_pool_id", ValueCheck::Uuid, Initial::Null).link().changeable(),
    attribute("default_pool", ValueCheck::NestedOne(ObjectKind::Pool), Initial::Null).link(),
    attribute("project_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
    attribute("tenant_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
];

const POOL_PROTOCOLS: &[(&str, u8)] =
    &[("HTTPS", 0), ("HTTP", 0), ("PROXYV2", 22), ("SCTP", 23), ("PROXY", 0), ("UDP", 0), ("TCP", 0)];
const ALGORITHMS: &[(&str, u8)] =
    &[("LEAST_CONNECTIONS", 0), ("SOURCE_IP_PORT", 13), ("ROUND_ROBIN", 0), ("SOURCE_IP", 0)];

const POOL: &[Attribute] = &[
    attribute("name", NAME, Initial::EmptyText),
    attribute("description", NAME, Initial::EmptyText),
    attribute("admin_state_up", ValueCheck::Flag, Initial::Flag(true)),
    attribute("protocol", ValueCheck::OneOf(POOL_PROTOCOLS), Initial::Null).fixed().required(),
    attribute("lb_algorithm", ValueCheck::OneOf(ALGORITHMS), Initial::Null).required(),
    attribute("session_persistence", ValueCheck::SessionPersistence, Initial::Null),
    attribute("tags", ValueCheck::Tags, Initial::EmptyList).since(5),
    attribute("tls_container_ref", NAME, Initial::Null).since(8),
    attribute("ca_tls_container_ref", NAME, Initial::Null).since(8),
    attribute("crl_container_ref", NAME, Initial::Null).since(8),
    attribute("tls_enabled", ValueCheck::Flag, Initial::Flag(false)).since(8),
    attribute("tls_ciphers", ValueCheck::Text { max: 2048 }, Initial::Null).since(15),
    attribute("tls_versions", ValueCheck::Texts, Initial::Null).since(18),
    attribute("alpn_protocols", ValueCheck::Texts, Initial::Null).since(24),
    attribute("loadbalancer_id", ValueCheck::Uuid, Initial::Null).link(),
    attribute("listener_id", ValueCheck::Uuid, Initial::Null).link(),
    attribute("members", ValueCheck::Nested(ObjectKind::Member), Initial::EmptyList).link(),
    attribute("healthmonitor", ValueCheck::NestedOne(ObjectKind::HealthMonitor), Initial::Null).link(),
    attribute("project_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
    attribute("tenant_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
];

const MEMBER: &[Attribute] = &[
    attribute("name", NAME, Initial::EmptyText),
    attribute("admin_state_up", ValueCheck::Flag, Initial::Flag(true)).reset_by_batch(),
    attribute("address", ValueCheck::Address, Initial::Null).fixed().required(),
    attribute("protocol_port", PORT, Initial::Null).fixed().required(),
    attribute("weight", ValueCheck::Integer { min: 0, max: 256 }, Initial::Integer(1)).reset_by_batch(),
    attribute("backup", ValueCheck::Flag, Initial::Flag(false)).since(1).reset_by_batch(),
    attribute("subnet_id", ValueCheck::Uuid, Initial::Null).fixed(),
    attribute("monitor_address", ValueCheck::Address, Initial::Null).reset_by_batch(),
    attribute("monitor_port", PORT, Initial::Null).reset_by_batch(),
    attribute("tags", ValueCheck::Tags, Initial::EmptyList).since(5),
    attribute("vnic_type", ValueCheck::ReadOnly, Initial::Text("normal")).since(30),
    attribute("request_sriov", ValueCheck::Flag, Initial::Null).link().since(30),
    attribute("project_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
    attribute("tenant_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
];

const MONITOR_TYPES: &[(&str, u8)] =
    &[("HTTP", 0), ("HTTPS", 0), ("PING", 0), ("SCTP", 23), ("TCP", 0), ("TLS-HELLO", 0), ("UDP-CONNECT", 0)];
const HTTP_METHODS: &[(&str, u8)] = &[
    ("GET", 0),
    ("HEAD", 0),
    ("POST", 0),
    ("PUT", 0),
    ("DELETE", 0),
    ("TRACE", 0),
    ("OPTIONS", 0),
    ("CONNECT", 0),
    ("PATCH", 0),
];

const HEALTH_MONITOR: &[Attribute] = &[
    attribute("name", NAME, Initial::EmptyText),
    attribute("type", ValueCheck::OneOf(MONITOR_TYPES), Initial::Null).fixed().required(),
    attribute("delay", ValueCheck::Integer { min: 0, max: 2_147_483_647 }, Initial::Null).required(),
    attribute("timeout", ValueCheck::Integer { min: 0, max: 2_147_483_647 }, Initial::Null).required(),
    attribute("max_retries", ValueCheck::Integer { min: 1, max: 10 }, Initial::Null).required(),
    attribute("max_retries_down", ValueCheck::Integer { min: 1, max: 10 }, Initial::Integer(3)),
    attribute("http_method", ValueCheck::OneOf(HTTP_METHODS), Initial::Null),
    attribute("url_path", NAME, Initial::Null),
    attribute("expected_codes", ValueCheck::Text { max: 64 }, Initial::Null),
    attribute("admin_state_up", ValueCheck::Flag, Initial::Flag(true)),
    attribute("tags", ValueCheck::Tags, Initial::EmptyList).since(5),
    attribute("http_version", ValueCheck::HttpVersion, Initial::Null).since(10),
    attribute("domain_name", NAME, Initial::Null).since(10),
    attribute("pool_id", ValueCheck::Uuid, Initial::Null).link(),
    attribute("project_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
    attribute("tenant_id", ValueCheck::Text { max: 36 }, Initial::Null).link(),
];
