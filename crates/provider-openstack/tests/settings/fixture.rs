//! A Service and a configuration that a test changes.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{IpFamily, Protocol, Service, ServiceKey, ServicePort};
use openstack_ccm_provider_openstack::config::{Config, LoadBalancerClass};
use openstack_ccm_provider_openstack::load_balancer::settings::{Faults, Settings};

pub(crate) const PREFIX: &str = "loadbalancer.openstack.org/";

/// A UUID that is easy to distinguish from others.
pub(crate) fn id(digit: u8) -> String {
    format!("{digit:08}-0000-4000-8000-000000000000")
}

pub(crate) fn port(protocol: Protocol, number: u16) -> ServicePort {
    ServicePort { name: None, protocol, port: number, node_port: Some(30_000 + number), app_protocol: None }
}

/// One Service with its surroundings.
pub(crate) struct Case {
    pub(crate) service: Service,
    pub(crate) config: Config,
}

impl Case {
    pub(crate) fn new() -> Self {
        let service = Service {
            ports: vec![port(Protocol::Tcp, 80)],
            ip_families: vec![IpFamily::V4],
            ..Service::new(ServiceKey::new("default", "web"), id(9))
        };
        Self { service, config: Config::default() }
    }

    /// Sets an annotation; a key without `/` gets our prefix.
    pub(crate) fn annotate(mut self, key: &str, value: impl Into<String>) -> Self {
        let key = if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") };
        self.service.annotations.insert(key, value.into());
        self
    }

    /// Sets an annotation, if there is a value.
    pub(crate) fn maybe(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.annotate(key, value),
            None => self,
        }
    }

    pub(crate) fn service(mut self, change: impl FnOnce(&mut Service)) -> Self {
        change(&mut self.service);
        self
    }

    pub(crate) fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Adds a class and lets the Service name it.
    pub(crate) fn class(mut self, change: impl FnOnce(&mut LoadBalancerClass)) -> Self {
        let mut class = LoadBalancerClass::default();
        change(&mut class);
        self.config.classes.insert("gold".to_owned(), class);
        self.annotate("class", "gold")
    }

    pub(crate) fn internal(self) -> Self {
        self.annotate("service.beta.kubernetes.io/openstack-internal-load-balancer", "true")
    }

    pub(crate) fn read(&self) -> (Result<Settings, Faults>, Vec<Notice>) {
        Settings::read(&self.service, &self.config)
    }

    #[track_caller]
    pub(crate) fn settings(&self) -> Settings {
        self.read().0.unwrap()
    }

    /// The messages of all errors.
    #[track_caller]
    pub(crate) fn errors(&self) -> Vec<String> {
        self.read().0.unwrap_err().messages().to_vec()
    }

    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.read().1
    }
}
