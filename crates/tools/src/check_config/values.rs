//! Checks values of cloud.conf for which Services would be refused, with the same check as for annotations.

use std::collections::BTreeSet;

use openstack_ccm_core::service::{IpFamily, Protocol, Service, ServiceKey, ServicePort};
use openstack_ccm_openstack_api::octavia::OctaviaFeatures;
use openstack_ccm_provider_openstack::config::Config;
use openstack_ccm_provider_openstack::load_balancer::annotations;
use openstack_ccm_provider_openstack::load_balancer::settings::Settings;
use uuid::Uuid;

use super::Section;

/// Reports each value once.
pub(super) fn check(config: &Config, findings: &mut Section) -> anyhow::Result<()> {
    for fault in faults(config) {
        findings.error("", fault)?;
    }
    Ok(())
}

fn faults(config: &Config) -> BTreeSet<String> {
    let mut faults = BTreeSet::new();
    if config.load_balancer.enabled {
        for service in plain_services(config) {
            let refused = Settings::read(&service, config).0.err();
            faults.extend(refused.iter().flat_map(|refused| refused.messages().to_vec()));
        }
    }
    let newest = OctaviaFeatures::NEWEST;
    if let Some((major, minor)) =
        config.load_balancer.octavia_api_version.filter(|stated| *stated > newest.version)
    {
        faults.insert(format!(
            "octavia-api-version in [LoadBalancer] of cloud.conf: {major}.{minor} is newer than {}.{}, the newest version that this \
             program supports; set this version, or remove the key so that the version is read from Octavia",
            newest.version.0, newest.version.1
        ));
    }
    let router = config.route.router_id.as_deref();
    if let Some(router) = router.filter(|id| Uuid::try_parse(id).is_err()) {
        faults.insert(format!(
            "router-id in [Route] of cloud.conf: {router:?} is not a UUID; write the id as OpenStack shows it: a name is not enough"
        ));
    }
    faults
}

/// Returns Services that ask for nothing by themselves, so that every refusal is about cloud.conf: an external and an internal
/// Service, without class and of each class.
fn plain_services(config: &Config) -> Vec<Service> {
    let classes = config.classes.keys().map(|class| Some(class.as_str()));
    let mut services = Vec::new();
    for class in std::iter::once(None).chain(classes) {
        for internal in ["false", "true"] {
            let mut service =
                Service::new(ServiceKey::new("default", "check-config"), Uuid::nil().to_string());
            service.ports.push(ServicePort {
                name: None,
                protocol: Protocol::Tcp,
                port: 443,
                node_port: Some(30443),
                app_protocol: None,
            });
            service.ip_families.push(IpFamily::V4);
            service.annotations.insert(annotations::INTERNAL.key.to_owned(), internal.to_owned());
            if let Some(class) = class {
                service.annotations.insert(annotations::CLASS.key.to_owned(), class.to_owned());
            }
            services.push(service);
        }
    }
    services
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "6a61a5c8-0a57-4f5b-9c3e-0d6f1f9d2a11";

    #[test]
    fn a_value_that_services_are_refused_for_is_reported_once_with_its_place() {
        let mut config = Config::default();
        config.load_balancer.placement.subnet_id = Some("foo".to_owned());
        config.load_balancer.placement.floating_network_id = Some("public".to_owned());
        config.load_balancer.placement.network_id = Some(ID.to_owned());
        config.route.router_id = Some("r1".to_owned());
        let class = config.classes.entry("dmz".to_owned()).or_default();
        class.floating_network_id = Some("provider-net".to_owned());
        let faults: Vec<String> = faults(&config).into_iter().collect();
        let begins = [
            "floating-network-id in [LoadBalancerClass \"dmz\"] of cloud.conf: \"provider-net\" is not a UUID",
            "floating-network-id in [LoadBalancer] of cloud.conf: \"public\" is not a UUID",
            "router-id in [Route] of cloud.conf: \"r1\" is not a UUID",
            "subnet-id in [LoadBalancer] of cloud.conf: \"foo\" is not a UUID",
        ];
        assert_eq!(faults.len(), begins.len(), "{faults:#?}");
        for (fault, begin) in faults.iter().zip(begins) {
            assert!(fault.starts_with(begin), "{fault}");
        }
    }

    #[test]
    fn a_configuration_without_faults_has_none() {
        let mut config = Config::default();
        config.load_balancer.placement.floating_network_id = Some(ID.to_owned());
        config.route.router_id = Some(ID.to_owned());
        assert_eq!(faults(&config), BTreeSet::new());
        config.load_balancer.octavia_api_version = Some((2, 99));
        assert!(faults(&config).iter().any(|fault| fault.contains("2.99 is newer than 2.30")));
        config.load_balancer.octavia_api_version = None;
        // A switched-off load balancer section refuses no Service.
        config.load_balancer.placement.subnet_id = Some("foo".to_owned());
        config.load_balancer.enabled = false;
        assert_eq!(faults(&config), BTreeSet::new());
    }
}
