//! Reads all settings of one Service.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::Service;

use super::fault::{Fault, Faults};
use super::reader::{SettingsReader, WITHOUT_EFFECT};
use super::{Settings, address_as_wish, allowed, network};
use crate::config::{Config, suggestion};
use crate::load_balancer::annotations::{ALL, Aspect, INTERNAL, PREFIX, is_known, is_of_ovhcloud, is_ours};

/// The result of reading one Service's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The settings. If there are faults, they may only be used for an existing load balancer, with `Settings::keeping`.
    pub settings: Settings,
    /// All faults.
    pub faults: Faults,
    /// Notices for the user.
    pub notices: Vec<Notice>,
}

impl Reading {
    /// Reads all settings of a Service from its fields, its annotations and cloud.conf.
    pub fn of(service: &Service, config: &Config) -> Self {
        let mut reader = SettingsReader::new(service, config);
        reader.class = network::choose_class(&mut reader, config);
        let mut settings = Settings::assemble(&mut reader);
        settings.allowed_load_balancers = allowed::check(&mut reader, config);
        settings.annotated_address = allowed::annotated_address(&reader, config);
        misspelt_internal(service, &mut reader.faults);
        let SettingsReader { faults, mut notices, odd, .. } = reader;
        notices.extend(unknown_annotations(service));
        notices.extend(of_ovhcloud(service));
        notices.extend(address_as_wish(service, None));
        settings.odd = odd;
        settings.unreadable.clone_from(faults.unreadable());
        settings.drop_rejected_addresses();
        if faults.failure().is_some() {
            // Settings without effect do not matter as long as others are invalid.
            notices.retain(|notice| notice.reason != WITHOUT_EFFECT);
        } else {
            notices.extend(settings.port_notices(&service.ports));
        }
        Self { settings, faults, notices }
    }
}

const REASON: &str = "UnknownAnnotation";

/// The likely meaning of annotations that no controller knows, or that belong elsewhere. Names are in lower case, without prefix,
/// `-` and `_`.
const MEANINGS: [(&[&str], &str); 9] = [
    (
        &["internal", "internalloadbalancer", "openstackinternal"],
        "for an internal load balancer set service.beta.kubernetes.io/openstack-internal-load-balancer: \"true\"",
    ),
    (
        &["floatingip", "floatingaddress", "externalip", "loadbalancerip", "ip", "address"],
        "set loadbalancer.openstack.org/floating-ip, or loadbalancer.openstack.org/vip-address for an internal load balancer, to the address",
    ),
    (
        &["loadbalancerprovider", "lbprovider", "provider"],
        "set loadbalancer.openstack.org/lb-provider, if the operator allows it with lb-providers in [LoadBalancer] of cloud.conf",
    ),
    (
        &["enableingresshostname", "ingresshostname", "ingresshostnamesuffix"],
        "to publish a name instead of the address, set loadbalancer.openstack.org/enable-ingress-hostname: \"true\", or set \
         loadbalancer.openstack.org/hostname to your own name",
    ),
    (
        &["floatingtag", "floatingtags"],
        "set loadbalancer.openstack.org/floating-subnet-tags, or choose a class with loadbalancer.openstack.org/class",
    ),
    (
        &["healthcheck", "healthmonitor", "createmonitor"],
        "set loadbalancer.openstack.org/enable-health-monitor: \"true\"",
    ),
    (
        &["sslcert", "tlscontainerref", "certificate"],
        "set loadbalancer.openstack.org/default-tls-container-ref",
    ),
    (
        &["proxyprotocolhostnamesuffix"],
        "to publish names under a suffix, set loadbalancer.openstack.org/enable-ingress-hostname: \"true\"; the suffix is \
         ingress-hostname-suffix in [LoadBalancer] of cloud.conf",
    ),
    (&["sourceranges", "allowedcidrs", "whitelist"], "set spec.loadBalancerSourceRanges"),
];

/// Returns whether an unknown annotation asks for an internal Service.
fn asks_to_be_internal(key: &str, value: &str) -> bool {
    MEANINGS[0].0.contains(&plain(key).as_str()) && value.eq_ignore_ascii_case("true")
}

/// Returns the name of an annotation, normalised for comparison.
fn plain(key: &str) -> String {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect::<String>().to_ascii_lowercase()
}

fn unknown(service: &Service) -> impl Iterator<Item = (&String, &String)> {
    service.annotations.iter().filter(|(key, _)| is_ours(key) && !is_known(key))
}

/// Refuses a misspelt request for an internal Service, which could expose a database to the internet: a new load balancer is not
/// created.
fn misspelt_internal(service: &Service, faults: &mut Faults) {
    if service.annotations.contains_key(INTERNAL.key) {
        return;
    }
    for (key, value) in unknown(service).filter(|(key, value)| asks_to_be_internal(key, value)) {
        let message = format!(
            "annotation {key}: {value:?} is unknown, so the load balancer would be public and is not created; {}, or remove the \
             annotation",
            MEANINGS[0].1
        );
        faults.add(Fault::new([Aspect::Exposure], message));
    }
}

/// Returns a warning for each unknown annotation with one of our prefixes.
fn unknown_annotations(service: &Service) -> impl Iterator<Item = Notice> + '_ {
    unknown(service).map(|(key, _)| {
        let name = plain(key);
        let meaning =
            MEANINGS.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, advice)| *advice);
        let advice = meaning.map_or_else(
            || {
                let known = ALL.iter().map(|annotation| annotation.key);
                let meant = suggestion::nearest(key, known);
                meant.map_or_else(|| "remove it".to_owned(), |meant| format!("did you mean {meant}?"))
            },
            str::to_owned,
        );
        Notice::warning(REASON, format!("annotation {key} is unknown and has no effect; {advice}"))
    })
}

/// Returns the warning about annotations of OVHcloud's managed Kubernetes.
fn of_ovhcloud(service: &Service) -> Option<Notice> {
    let keys: Vec<&str> =
        service.annotations.keys().map(String::as_str).filter(|key| is_of_ovhcloud(key)).collect();
    (!keys.is_empty()).then(|| {
        let message = format!(
            "only the managed Kubernetes of OVHcloud reads {}; here annotations begin with {PREFIX}, such as {PREFIX}proxy-protocol: v2, \
             {PREFIX}flavor-id or {PREFIX}keep-floatingip; replace or remove them",
            keys.join(", ")
        );
        Notice::warning(REASON, message)
    })
}
