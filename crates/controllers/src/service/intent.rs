//! What a Service object asks for. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::service::{
    ExternalTrafficPolicy, IpFamily, Protocol, Service, ServiceKey, ServicePort, SessionAffinity,
};

use openstack_ccm_advertise::entry::entries;
pub use openstack_ccm_runtime::listed::FINALIZER;
use openstack_ccm_runtime::listed::{MAX_PORTS, MAX_SOURCE_RANGES, MAX_VALUES_SIZE, shortened};

/// What is to be done for a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Give the Service a load balancer.
    Serve,
    /// Remove its load balancer.
    Release,
    /// Leave it alone: it is not ours.
    Nothing,
}

/// Namespace and name of a Service object.
pub(crate) fn key(service: &k8s::Service) -> ServiceKey {
    ServiceKey::new(
        service.metadata.namespace.clone().unwrap_or_default(),
        service.metadata.name.clone().unwrap_or_default(),
    )
}

/// `metadata.uid`
pub(crate) fn uid(service: &k8s::Service) -> &str {
    service.metadata.uid.as_deref().unwrap_or_default()
}

/// Whether the Service carries our finalizer.
pub(crate) fn has_finalizer(service: &k8s::Service) -> bool {
    service.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

fn is_load_balancer(service: &k8s::Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
}

/// Which Services of type LoadBalancer belong to this controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ours {
    /// Services without a `loadBalancerClass`. Any class names another controller.
    #[default]
    WithoutClass,
    /// Services of this class. Another controller serves the others, even those without a class.
    OfClass(String),
}

impl Ours {
    fn names(&self, service: &k8s::Service) -> bool {
        let class = service.spec.as_ref().and_then(|spec| spec.load_balancer_class.as_deref());
        match self {
            Self::WithoutClass => class.is_none(),
            Self::OfClass(ours) => class == Some(ours),
        }
    }

    /// Whether the Service asks for a load balancer of this controller.
    pub(crate) fn wants(&self, service: &k8s::Service) -> bool {
        is_load_balancer(service) && self.names(service)
    }

    /// Whether a load balancer of the Service has to be removed before the Service may be deleted or change its type.
    ///
    /// The finalizer has one name for all controllers, and a Service that changed its type names no class any more: the
    /// first controller that sees it removes what must go in any case. A Service that names another controller is
    /// released by that controller, with the finalizer: only if this process has served it (see [`Self::wanted`]) is
    /// something of it ours. Its annotations prove nothing, because another instance of this program writes the same.
    pub(crate) fn needs_cleanup(&self, service: &k8s::Service) -> bool {
        let deleting = service.metadata.deletion_timestamp.is_some();
        has_finalizer(service) && (!is_load_balancer(service) || (deleting && self.names(service)))
    }

    /// Whether the last state of a Service explains that it is gone. Our finalizer keeps a Service until its load balancer is gone: a
    /// Service with the finalizer and without a request to remove it did not go on request. A Service without the finalizer is shown as
    /// before it was served, unless the watch brought its deletion (`deleted`).
    pub(crate) fn lets_go(&self, last: &k8s::Service, deleted: bool) -> bool {
        let without_finalizer = !has_finalizer(last);
        last.metadata.deletion_timestamp.is_some()
            || (without_finalizer && deleted)
            || (!without_finalizer && !self.wants(last))
    }

    /// Decides what is to be done; `served` says whether this process has worked on the Service before: the only evidence
    /// left after another client removed our finalizer.
    pub(crate) fn wanted(&self, service: &k8s::Service, served: bool) -> Wanted {
        let deleting = service.metadata.deletion_timestamp.is_some();
        if self.needs_cleanup(service) {
            Wanted::Release
        } else if self.wants(service) && !deleting {
            Wanted::Serve
        } else if served {
            Wanted::Release
        } else {
            Wanted::Nothing
        }
    }
}

/// Reduces a Service object for a release: values that are not understood are left out, because none of them may keep
/// a Service from being deleted.
pub(crate) fn facts(service: &k8s::Service) -> Service {
    reduce(service).0
}

/// Reduces a Service object, for serving.
///
/// # Errors
/// A value that no API server of today admits.
pub fn checked_facts(service: &k8s::Service) -> Result<Service, Failure> {
    let (facts, problems) = reduce(service);
    if problems.is_empty() {
        Ok(facts)
    } else {
        Err(Failure::new(FailureClass::UserInput, format!("not supported: {}", problems.join(", "))))
    }
}

fn reduce(service: &k8s::Service) -> (Service, Vec<String>) {
    let spec = service.spec.clone().unwrap_or_default();
    let mut problems = Vec::new();
    let ports = spec.ports.unwrap_or_default();
    let source_ranges = spec.load_balancer_source_ranges.unwrap_or_default();
    for (field, length, most) in [
        ("ports", ports.len(), MAX_PORTS),
        ("loadBalancerSourceRanges", source_ranges.len(), MAX_SOURCE_RANGES),
    ] {
        if length > most {
            problems.push(format!("spec.{field} with more than {most} entries"));
        }
    }
    let ports = ports
        .into_iter()
        .enumerate()
        .filter_map(|(index, port)| {
            reduce_port(port).map_err(|problem| problems.push(format!("spec.ports[{index}].{problem}"))).ok()
        })
        .collect();
    let facts = Service {
        key: key(service),
        uid: uid(service).to_owned(),
        created: service.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
        annotations: service.metadata.annotations.clone().map(short_enough).unwrap_or_default(),
        ports,
        ip_families: spec.ip_families.iter().flatten().filter_map(|family| ip_family(family)).collect(),
        load_balancer_ip: spec.load_balancer_ip.filter(|ip| !ip.is_empty()),
        source_ranges,
        session_affinity: session_affinity(spec.session_affinity.as_deref(), spec.session_affinity_config),
        external_traffic_policy: match spec.external_traffic_policy.as_deref() {
            Some("Local") => ExternalTrafficPolicy::Local,
            _ => ExternalTrafficPolicy::Cluster,
        },
        health_check_node_port: spec.health_check_node_port.and_then(port_number),
        published: entries(service).iter().filter_map(|entry| entry.ip.as_deref()?.parse().ok()).collect(),
        published_hostnames: entries(service).iter().filter_map(|entry| entry.hostname.clone()).collect(),
        is_published: !entries(service).is_empty(),
    };
    (facts, problems)
}

/// Cuts the longest annotation values, to a total length that no meaningful Service exceeds. Cut values are invalid: their settings keep
/// the present state, and the message for the user stays readable.
pub(super) fn short_enough(mut annotations: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all: usize = annotations.values().map(String::len).sum();
    while all > MAX_VALUES_SIZE {
        let Some(longest) = annotations.values_mut().max_by_key(|value| value.len()) else { break };
        let cut = shortened(longest);
        if cut.len() >= longest.len() {
            // Thousands of short values: their keys take the room.
            break;
        }
        all = all - longest.len() + cut.len();
        *longest = cut;
    }
    annotations
}

fn reduce_port(port: k8s::ServicePort) -> Result<ServicePort, String> {
    let protocol = match port.protocol.as_deref() {
        None | Some("" | "TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        Some(other) => return Err(format!("protocol {other:?} (TCP, UDP and SCTP are)")),
    };
    Ok(ServicePort {
        name: port.name.filter(|name| !name.is_empty()),
        protocol,
        port: port_number(port.port).ok_or_else(|| format!("port {} (1 to 65535 are)", port.port))?,
        node_port: port.node_port.and_then(port_number),
        app_protocol: port.app_protocol,
    })
}

/// A port as the API has it; 0 means absent.
fn port_number(number: i32) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| *number != 0)
}

fn ip_family(family: &str) -> Option<IpFamily> {
    match family {
        "IPv4" => Some(IpFamily::V4),
        "IPv6" => Some(IpFamily::V6),
        _ => None,
    }
}

fn session_affinity(kind: Option<&str>, config: Option<k8s::SessionAffinityConfig>) -> SessionAffinity {
    if kind != Some("ClientIP") {
        return SessionAffinity::None;
    }
    let timeout_seconds = config
        .and_then(|config| config.client_ip)
        .and_then(|client_ip| client_ip.timeout_seconds)
        .and_then(|seconds| u32::try_from(seconds).ok());
    SessionAffinity::ClientIp { timeout_seconds }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn service(spec: &Value, finalizers: &[&str], deleting: bool) -> k8s::Service {
        let mut service = json!({
            "metadata": {"namespace": "default", "name": "app", "uid": "u1", "finalizers": finalizers},
            "spec": spec,
        });
        if deleting {
            service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        from_value(service).unwrap()
    }

    const OTHER: &str = "example.org/other";

    /// Which Services are served, which released, and which left alone.
    ///
    /// Framework: S9, same.
    #[rstest]
    #[case::s1_cluster_ip("ClusterIP", None, &[], false, false, Wanted::Nothing)]
    #[case::s2_load_balancer("LoadBalancer", None, &[], false, false, Wanted::Serve)]
    #[case::s4_with_finalizer("LoadBalancer", None, &[FINALIZER], false, true, Wanted::Serve)]
    #[case::s5_class("LoadBalancer", Some("example.org/lb"), &[], false, false, Wanted::Nothing)]
    #[case::s6_type_changed("ClusterIP", None, &[FINALIZER], false, false, Wanted::Release)]
    #[case::s7_deleted("LoadBalancer", None, &[FINALIZER], true, true, Wanted::Release)]
    #[case::s9_no_finalizer("NodePort", None, &[OTHER], false, false, Wanted::Nothing)]
    #[case::s9_class_and_finalizer("LoadBalancer", Some("example.org/lb"), &[FINALIZER], false, false, Wanted::Nothing)]
    #[case::s9_deleted_any_type("ClusterIP", None, &[FINALIZER], true, false, Wanted::Release)]
    #[case::finalizer_taken_away("LoadBalancer", None, &[OTHER], true, true, Wanted::Release)]
    #[case::deleting_and_never_served("LoadBalancer", None, &[OTHER], true, false, Wanted::Nothing)]
    #[case::class_appeared("LoadBalancer", Some("example.org/lb"), &[FINALIZER], false, true, Wanted::Release)]
    #[case::class_and_deleted("LoadBalancer", Some("example.org/lb"), &[FINALIZER], true, false, Wanted::Nothing)]
    #[case::class_appeared_and_deleted("LoadBalancer", Some("example.org/lb"), &[FINALIZER], true, true, Wanted::Release)]
    fn framework_s9_which_services_are_ours(
        #[case] kind: &str,
        #[case] class: Option<&str>,
        #[case] finalizers: &[&str],
        #[case] deleting: bool,
        #[case] served: bool,
        #[case] expected: Wanted,
    ) {
        let service = service(&json!({"type": kind, "loadBalancerClass": class}), finalizers, deleting);
        assert_eq!(Ours::WithoutClass.wanted(&service, served), expected);
    }

    #[rstest]
    #[case::our_class("LoadBalancer", Some("example.org/lb"), &[], false, Wanted::Serve)]
    #[case::our_class_deleted("LoadBalancer", Some("example.org/lb"), &[FINALIZER], true, Wanted::Release)]
    #[case::no_class("LoadBalancer", None, &[], false, Wanted::Nothing)]
    #[case::no_class_deleted("LoadBalancer", None, &[FINALIZER], true, Wanted::Nothing)]
    #[case::another_class("LoadBalancer", Some("example.org/other"), &[FINALIZER], true, Wanted::Nothing)]
    #[case::type_changed("ClusterIP", None, &[FINALIZER], false, Wanted::Release)]
    fn which_services_are_of_our_class(
        #[case] kind: &str,
        #[case] class: Option<&str>,
        #[case] finalizers: &[&str],
        #[case] deleting: bool,
        #[case] expected: Wanted,
    ) {
        let service = service(&json!({"type": kind, "loadBalancerClass": class}), finalizers, deleting);
        assert_eq!(Ours::OfClass("example.org/lb".to_owned()).wanted(&service, false), expected);
    }

    /// Nothing that a load balancer depends on is lost on the way to the provider.
    #[test]
    fn all_that_a_load_balancer_depends_on_is_carried() {
        let object = service(
            &json!({
                "type": "LoadBalancer",
                "ports": [
                    {"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP", "appProtocol": "http"},
                    {"name": "quic", "port": 443, "nodePort": 30443, "protocol": "UDP"},
                    {"name": "sig", "port": 3868, "nodePort": 0, "protocol": "SCTP"},
                ],
                "ipFamilies": ["IPv6", "IPv4"],
                "loadBalancerIP": "203.0.113.5",
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
                "externalTrafficPolicy": "Local",
                "healthCheckNodePort": 31000,
            }),
            &[],
            false,
        );
        let facts = checked_facts(&object).unwrap();
        let protocols: Vec<(Protocol, u16, Option<u16>)> =
            facts.ports.iter().map(|port| (port.protocol, port.port, port.node_port)).collect();
        assert_eq!(
            protocols,
            [
                (Protocol::Tcp, 80, Some(30080)),
                (Protocol::Udp, 443, Some(30443)),
                (Protocol::Sctp, 3868, None)
            ]
        );
        assert_eq!(facts.ip_families, [IpFamily::V6, IpFamily::V4]);
        assert_eq!(facts.load_balancer_ip.as_deref(), Some("203.0.113.5"));
        assert_eq!(facts.source_ranges, ["10.0.0.0/8"]);
        assert_eq!(facts.session_affinity, SessionAffinity::ClientIp { timeout_seconds: Some(60) });
        assert_eq!(facts.external_traffic_policy, ExternalTrafficPolicy::Local);
        assert_eq!(facts.health_check_node_port, Some(31000));
    }

    /// A health check port of 0 is none.
    ///
    /// Framework: H4, same.
    #[test]
    fn framework_h4_no_health_check_port_where_the_api_says_zero() {
        let object = service(&json!({"type": "LoadBalancer", "healthCheckNodePort": 0}), &[], false);
        assert_eq!(facts(&object).health_check_node_port, None);
    }

    #[test]
    fn values_that_are_too_long_are_wrong_can_be_shown_and_take_no_memory() {
        let with = |lengths: &[usize]| {
            let value = |(index, length): (usize, &usize)| (format!("a{index}"), "ü".repeat(length / 2));
            short_enough(lengths.iter().enumerate().map(value).collect())
        };
        assert_eq!(with(&[MAX_VALUES_SIZE])["a0"].len(), MAX_VALUES_SIZE);
        let cut = with(&[10, 200_000]);
        assert_eq!(cut["a0"].len(), 10);
        let expected = format!("{}… (200000 bytes; limit 16384 for all annotations)", "ü".repeat(20));
        assert_eq!(cut["a1"], expected);
        let many = with(&[16_000; 16]);
        assert!(many.values().map(String::len).sum::<usize>() <= MAX_VALUES_SIZE);
        assert_eq!(short_enough(many.clone()), many, "what was cut is not cut again");
        assert_eq!(with(&[100; 2000]), with(&[100; 2000]), "and this ends");
    }

    #[test]
    fn an_unknown_protocol_is_reported_when_serving_and_does_not_keep_a_service_from_going() {
        let object = service(
            &json!({"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "QUIC"}]}),
            &[],
            false,
        );
        let failure = checked_facts(&object).unwrap_err();
        assert_eq!(failure.class, FailureClass::UserInput);
        assert_eq!(failure.message, "not supported: spec.ports[0].protocol \"QUIC\" (TCP, UDP and SCTP are)");
        assert!(facts(&object).ports.is_empty());
    }
}
