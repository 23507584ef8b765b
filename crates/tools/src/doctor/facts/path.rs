//! Gathers the requirements of the path to an application, and how its address would be published, by the program's own rules.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use openstack_ccm_advertise::Publication;
use openstack_ccm_advertise::cluster::Cluster;
use openstack_ccm_advertise::decision::compare;
use openstack_ccm_advertise::entry::entries;
use openstack_ccm_controllers::service::checked_facts;
use openstack_ccm_core::advertise::{ClusterAccess, Needs, Path, Preference};
use openstack_ccm_core::service::Protocol;
use openstack_ccm_doctor::facts::{Looked, PathFact, WantedStatus};
use openstack_ccm_overlay::cloud::CLOUDS;
use openstack_ccm_provider_openstack::config::Config;
use openstack_ccm_provider_openstack::load_balancer::PROVIDER_NAMES;
use openstack_ccm_provider_openstack::load_balancer::settings::{Exposure, Faults, Settings};

/// The path to an application.
pub(super) struct PathRead {
    pub(super) fact: PathFact,
    path: Path,
    preference: Preference,
}

/// Reads the Service as the service controller does, or, with an annotation of another cloud, as the overlay does.
pub(super) fn of(service: &Service, config: &Config, nodes: &[IpAddr]) -> Looked<PathRead> {
    let facts = checked_facts(service).map_err(|failure| failure.to_string())?;
    if let Some((key, value)) = of_another_cloud(service) {
        let path = Path::ThroughLoadBalancer(Needs::ProxyProtocol);
        let needs = Some(Needs::ProxyProtocol.to_string());
        let fact = PathFact { needs, header: true, source: format!("{key}: {value}"), ..PathFact::default() };
        return Ok(PathRead { fact, path, preference: Preference::default() });
    }
    let (settings, _) = Settings::read(&facts, config);
    let settings = settings.map_err(|faults: Faults| faults.messages().join("; "))?;
    let path = settings.path_in(nodes.iter().copied(), &facts.ports);
    let needs = match path {
        Path::Direct => None,
        Path::ThroughLoadBalancer(needs) => Some(needs.to_string()),
    };
    let of_tcp = facts.ports.iter().filter(|port| port.protocol == Protocol::Tcp);
    let fact = PathFact {
        needs,
        header: path == Path::ThroughLoadBalancer(Needs::ProxyProtocol),
        pools: of_tcp.map(|port| (port.port, settings.pool_protocol(port))).collect(),
        source: source(service),
        external: matches!(settings.exposure, Exposure::External(_)),
    };
    Ok(PathRead { fact, path, preference: settings.preference })
}

/// Returns the annotation of another cloud by which a Service asks for the PROXY protocol.
fn of_another_cloud(service: &Service) -> Option<(&String, &String)> {
    let rules =
        || CLOUDS.iter().filter(|cloud| cloud.name != "openstack").flat_map(|cloud| cloud.annotations);
    let annotations = service.metadata.annotations.iter().flatten();
    annotations.into_iter().find(|(key, value)| rules().any(|rule| rule.applies(key, value)))
}

/// Returns the source of the path's requirements: annotations, or cloud.conf.
fn source(service: &Service) -> String {
    let with = |start: &&str| {
        let mut annotations = service.metadata.annotations.iter().flatten();
        annotations.find(|(key, _)| {
            key.strip_prefix("loadbalancer.openstack.org/").is_some_and(|name| name.starts_with(start))
        })
    };
    let decisive = ["proxy-protocol", "default-tls-container-ref", "x-forwarded-", "allow-cluster-sources"];
    match decisive.iter().find_map(with) {
        Some((key, value)) => format!("{key}: {value}"),
        None => "cloud.conf or the default (the Service has no annotation)".to_owned(),
    }
}

/// Returns how the published addresses would be published.
pub(super) fn wanted(
    service: &Service,
    path: &Looked<PathRead>,
    cluster: &Looked<Cluster>,
) -> Looked<WantedStatus> {
    let published = entries(service);
    let addresses: Vec<IpAddr> =
        published.iter().filter_map(|entry| entry.ip.as_ref()?.parse().ok()).collect();
    if addresses.is_empty() {
        // A hostname does not show the address behind it.
        return Ok(WantedStatus { published: true, ..WantedStatus::default() });
    }
    let PathRead { path, preference, .. } = path.as_ref().map_err(Clone::clone)?;
    let cluster = cluster.as_ref().map_err(Clone::clone)?;
    let publication = Publication {
        addresses: &addresses,
        path: *path,
        preference,
        access: &ClusterAccess::Open,
        published: &published,
        settings: &PROVIDER_NAMES.settings,
    };
    let (wanted, same) = compare(&published, &publication, cluster);
    let warnings = [wanted.warning, wanted.shut_out, wanted.bypassed].into_iter().flatten().collect();
    Ok(WantedStatus { reason: wanted.reason.to_string(), entries: wanted.entries, warnings, published: same })
}
