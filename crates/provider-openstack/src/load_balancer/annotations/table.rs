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
    use super::*;
    use crate::load_balancer::annotations::Form;

    #[test]
    fn every_annotation_that_is_read_decides_about_something() {
        for annotation in ALL.iter().filter(|annotation| !matches!(annotation.form, Form::Output(_))) {
            assert!(!annotation.aspects.is_empty(), "{}", annotation.key);
        }
    }
}
