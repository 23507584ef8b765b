//! The annotations, as one table.

use super::extensions::*;
use super::kind::Annotation;
use super::shared::*;

/// Every annotation, in the order of the reference page.
pub const ALL: &[Annotation] = &[
    INTERNAL,
    CLASS,
    LOAD_BALANCER_ID,
    SHARE_BY_ADDRESS,
    ALLOW_FOREIGN_CLUSTER,
    LB_PROVIDER,
    FLAVOR_ID,
    AVAILABILITY_ZONE,
    PORT_ID,
    SUBNET_ID,
    NETWORK_ID,
    FLOATING_NETWORK_ID,
    FLOATING_SUBNET_ID,
    FLOATING_SUBNET,
    FLOATING_SUBNET_TAGS,
    FLOATING_IP,
    VIP_ADDRESS,
    KEEP_FLOATING_IP,
    RECLAIM_POLICY,
    TAGS,
    LOAD_BALANCER_TAGS,
    LISTENER_TAGS,
    POOL_TAGS,
    PROXY_PROTOCOL,
    X_FORWARDED_FOR,
    X_FORWARDED_PORT,
    X_FORWARDED_PROTO,
    DEFAULT_TLS_CONTAINER_REF,
    SNI_CONTAINER_REFS,
    TLS_VERSIONS,
    TLS_CIPHERS,
    ALPN_PROTOCOLS,
    TLS_REVISION,
    CONNECTION_LIMIT,
    TIMEOUT_CLIENT_DATA,
    TIMEOUT_MEMBER_CONNECT,
    TIMEOUT_MEMBER_DATA,
    TIMEOUT_TCP_INSPECT,
    SOURCE_RANGES,
    ALLOW_CLUSTER_SOURCES,
    METRICS_ENABLE,
    METRICS_PORT,
    METRICS_ALLOW_CIDRS,
    LB_METHOD,
    MEMBER_SUBNET_ID,
    NODE_ADDRESS_TYPE,
    NODE_SELECTOR,
    ENABLE_HEALTH_MONITOR,
    HEALTH_MONITOR_DELAY,
    HEALTH_MONITOR_TIMEOUT,
    HEALTH_MONITOR_MAX_RETRIES,
    HEALTH_MONITOR_MAX_RETRIES_DOWN,
    HEALTH_MONITOR_TYPE,
    HEALTH_MONITOR_PATH,
    HEALTH_MONITOR_METHOD,
    HEALTH_MONITOR_EXPECTED_CODES,
    IP_MODE,
    ENABLE_INGRESS_HOSTNAME,
    HOSTNAME,
    LOAD_BALANCER_ADDRESS,
    OWNED_LOAD_BALANCER_ID,
    CONVERGED_DIGEST,
];

#[cfg(test)]
mod tests {
    use openstack_ccm_openstack_api::octavia::{
        Fields as _, LbAlgorithm, ListenerLimits, MonitorAttributes, PoolAttributes, TlsAttributes, Values,
    };

    use super::*;
    use crate::load_balancer::annotations::{Aspect, Form, Kind};

    #[test]
    fn every_annotation_that_is_read_decides_about_something() {
        for annotation in ALL.iter().filter(|annotation| !matches!(annotation.form, Form::Output(_))) {
            assert!(!annotation.aspects.is_empty(), "{}", annotation.key);
        }
    }

    fn names(kind: Kind) -> Values {
        match kind {
            Kind::Limit => ListenerLimits::default().all(),
            Kind::Tls => TlsAttributes::default().all(),
            Kind::Pool => {
                let lb_algorithm = LbAlgorithm::RoundRobin;
                PoolAttributes { lb_algorithm, session_persistence: None }.all()
            }
            Kind::Monitor => {
                MonitorAttributes { delay: 1, timeout: 1, max_retries: 1, max_retries_down: 1, http: None }
                    .all()
            }
        }
    }

    #[test]
    fn an_aspect_names_an_attribute_that_exists() {
        for aspect in ALL.iter().flat_map(|annotation| annotation.aspects) {
            if let Aspect::Of(kind, name) = aspect {
                assert!(names(*kind).get(name).is_some(), "{name}");
            }
        }
    }
}
