//! What is fed with any input: one function for each kind of it. The fuzz targets in `fuzz/` call the same functions.
//!
//! None may panic, or need time that grows out of proportion. Whatever else has to hold is asserted in each.

use std::io;
use std::path::{Path, PathBuf};

use openstack_ccm_core::service::{IpFamily, Protocol, Service, ServiceKey, ServicePort};
use openstack_ccm_provider_openstack::config::{Config, ConfigErrors, Environment, Loaded, load};
use openstack_ccm_provider_openstack::load_balancer::settings::floating_subnet::{NamePattern, TagCondition};
use openstack_ccm_provider_openstack::load_balancer::settings::{NodeSelector, ReleaseSettings, Settings};

/// What takes any input.
pub type Entry = fn(&[u8]);

/// Names of the functions below, and of the folders of their first inputs.
pub const ENTRIES: [(&str, Entry); 5] = [
    ("annotations", annotations),
    ("floating_subnet", floating_subnet),
    ("cloud_conf", cloud_conf),
    ("clouds_yaml", clouds_yaml),
    ("answers", super::answers::answers),
];

/// Annotations of a Service, a line each: `key: value`. A line without a colon is a source range.
pub fn annotations(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut service = service();
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("loadBalancerIP", address)) => service.load_balancer_ip = Some(address.to_owned()),
            Some((key, value)) => drop(service.annotations.insert(key.to_owned(), value.to_owned())),
            None => service.source_ranges.push(line.to_owned()),
        }
    }
    let config = Config::default();
    let _ = ReleaseSettings::read(&service, &config);
    match Settings::read(&service, &config).0 {
        Ok(settings) => {
            for port in &service.ports {
                let _ = (settings.listener_protocol(port), settings.pool_protocol(port));
            }
            let _ = settings.path(&service.ports);
            assert!(!settings.source_ranges.networks.is_empty(), "nobody could connect");
            assert!(
                settings.proxy_protocol.is_none() || settings.headers.iter().all(|one| one.goes_with_proxy()),
                "two ways to name the client"
            );
        }
        Err(faults) => assert!(faults.messages().iter().all(|message| !message.is_empty())),
    }
}

/// A pattern for names and tags of subnets in the first line, names in the others.
pub fn floating_subnet(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (first, names) = text.split_once('\n').unwrap_or((&text, ""));
    let names: Vec<String> = names.lines().map(str::to_owned).collect();
    if let Ok(pattern) = NamePattern::parse(first) {
        for name in &names {
            pattern.matches(name);
        }
    }
    if let Ok(condition) = TagCondition::parse(first) {
        condition.matches(&names);
    }
    let _ = NodeSelector::parse(first);
}

/// A cloud.conf.
pub fn cloud_conf(input: &[u8]) {
    check(&Files { cloud_conf: input, clouds_yaml: b"clouds: {}" }.load());
}

/// A clouds.yaml that a cloud.conf asks for.
pub fn clouds_yaml(input: &[u8]) {
    let cloud_conf = b"[Global]\nuse-clouds = true\nclouds-file = clouds.yaml\ncloud = lab\n";
    check(&Files { cloud_conf, clouds_yaml: input }.load());
}

fn check(loaded: &Result<Loaded, ConfigErrors>) {
    match loaded {
        Ok(loaded) => assert!(!loaded.auth_options.auth_url.is_empty(), "nowhere to log in"),
        Err(errors) => assert!(!errors.to_string().is_empty(), "an error without a word"),
    }
}

/// The two files, and nothing else.
struct Files<'a> {
    cloud_conf: &'a [u8],
    clouds_yaml: &'a [u8],
}

impl Files<'_> {
    fn load(&self) -> Result<Loaded, ConfigErrors> {
        load(&[PathBuf::from("cloud.conf")], self)
    }
}

impl Environment for Files<'_> {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("cloud.conf") => Ok(self.cloud_conf.to_vec()),
            Some("clouds.yaml") => Ok(self.clouds_yaml.to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn working_directory(&self) -> PathBuf {
        PathBuf::from("/")
    }
}

/// `default/web` with a TCP and a UDP port.
pub(crate) fn service() -> Service {
    let port = |name: &str, protocol: Protocol, port: u16| ServicePort {
        name: Some(name.to_owned()),
        protocol,
        port,
        node_port: Some(30_000 + port),
        app_protocol: None,
    };
    Service {
        ports: vec![port("http", Protocol::Tcp, 80), port("dns", Protocol::Udp, 53)],
        ip_families: vec![IpFamily::V4],
        ..Service::new(ServiceKey::new("default", "web"), "11111111-2222-3333-4444-555555555555")
    }
}
