//! Services, as they are listed and watched.

use k8s_openapi::api::core::v1::{
    self as k8s, LoadBalancerIngress, LoadBalancerStatus, ServicePort, ServiceSpec, ServiceStatus,
    SessionAffinityConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::Deserialize;

use super::at_most::{AtMost, kept};
use super::limits::{
    MAX_EXTERNAL_IPS, MAX_FAMILIES, MAX_LONG_LIST, MAX_PORTS, MAX_SHORT_LIST, MAX_SOURCE_RANGES,
};
use super::metadata;

/// A Service with the fields that any program here reads.
#[derive(Clone, Debug, Deserialize)]
pub struct Service {
    #[serde(deserialize_with = "metadata", default)]
    metadata: ObjectMeta,
    spec: Option<ListedServiceSpec>,
    status: Option<ListedServiceStatus>,
}

crate::listed_as!(Service, k8s::Service);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedServiceSpec {
    #[serde(rename = "type")]
    type_: Option<String>,
    load_balancer_class: Option<String>,
    #[serde(rename = "loadBalancerIP")]
    load_balancer_ip: Option<String>,
    load_balancer_source_ranges: Option<AtMost<{ MAX_SOURCE_RANGES + 1 }, String>>,
    ports: Option<AtMost<{ MAX_PORTS + 1 }, ServicePort>>,
    ip_families: Option<AtMost<MAX_FAMILIES, String>>,
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<String>,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Option<AtMost<MAX_FAMILIES, String>>,
    #[serde(rename = "externalIPs")]
    external_ips: Option<AtMost<MAX_EXTERNAL_IPS, String>>,
    session_affinity: Option<String>,
    session_affinity_config: Option<SessionAffinityConfig>,
    external_traffic_policy: Option<String>,
    health_check_node_port: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedServiceStatus {
    load_balancer: Option<LoadBalancer>,
    conditions: Option<AtMost<MAX_SHORT_LIST, Condition>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LoadBalancer {
    ingress: Option<AtMost<MAX_LONG_LIST, LoadBalancerIngress>>,
}

impl From<Service> for k8s::Service {
    fn from(service: Service) -> Self {
        Self {
            metadata: service.metadata,
            spec: service.spec.map(ServiceSpec::from),
            status: service.status.map(|status| ServiceStatus {
                conditions: kept(status.conditions),
                load_balancer: status
                    .load_balancer
                    .map(|status| LoadBalancerStatus { ingress: kept(status.ingress) }),
            }),
        }
    }
}

impl From<ListedServiceSpec> for ServiceSpec {
    fn from(spec: ListedServiceSpec) -> Self {
        Self {
            type_: spec.type_,
            load_balancer_class: spec.load_balancer_class,
            load_balancer_ip: spec.load_balancer_ip,
            load_balancer_source_ranges: kept(spec.load_balancer_source_ranges),
            ports: kept(spec.ports),
            ip_families: kept(spec.ip_families),
            cluster_ip: spec.cluster_ip,
            cluster_ips: kept(spec.cluster_ips),
            external_ips: kept(spec.external_ips),
            session_affinity: spec.session_affinity,
            session_affinity_config: spec.session_affinity_config,
            external_traffic_policy: spec.external_traffic_policy,
            health_check_node_port: spec.health_check_node_port,
            ..Self::default()
        }
    }
}
