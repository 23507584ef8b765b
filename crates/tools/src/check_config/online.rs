//! Checks whether the cloud has the resources that the configuration names, and lets the user read what the controllers read.
//! Changes nothing.

use openstack_ccm_core::cloud::Provider as _;
use openstack_ccm_manager::args::PersonArgs;
use openstack_ccm_manager::args::controllers::{ControllerName, ControllerSelection};
use openstack_ccm_manager::wiring::missing_parts::{MissingParts, part_of};
use openstack_ccm_openstack_api::barbican::Reference;
use openstack_ccm_openstack_api::neutron::{FloatingIpFilter, PortFilter, SecurityGroupFilter, SubnetFilter};
use openstack_ccm_openstack_api::octavia::LoadBalancerFilter;
use openstack_ccm_openstack_api::optional::OptionalPart;
use openstack_ccm_openstack_api::transport::Service;
use openstack_ccm_openstack_api::{ApiError, ErrorKind, OpenStack};
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::{Config, KNOWN_METHODS, LoadBalancerClass};

use super::{Section, parts};
use crate::cloud::log_in;

/// A name that no object has, so that the list with this filter is short.
const NOTHING: &str = "openstack-ccm-check-config";

/// The kind of a resource that the configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResourceKind {
    Network,
    ExternalNetwork,
    Subnet,
    Flavor,
    AvailabilityZone,
    Router,
    Certificate,
    Provider,
    Method,
}

impl ResourceKind {
    fn name(self) -> &'static str {
        match self {
            Self::Network | Self::ExternalNetwork => "network",
            Self::Subnet => "subnet",
            Self::Flavor => "flavor of load balancers",
            Self::AvailabilityZone => "availability zone of load balancers",
            Self::Router => "router",
            Self::Certificate => "certificate in Barbican",
            Self::Provider => "provider of load balancers",
            Self::Method => "method of pools",
        }
    }
}

/// The place of a name in the configuration, the kind of the resource, and the name.
type NamedResource = (String, ResourceKind, String);

/// Logs in, looks up all resources, and reports those that are missing or refused.
pub(super) async fn check(
    provider: &OpenStackProvider,
    person: &PersonArgs,
    selection: &ControllerSelection,
    findings: &mut Section,
) -> anyhow::Result<()> {
    let openstack = log_in(provider, person, |transport, _| transport).await?;
    findings.ok("login to Keystone")?;
    for (service, address) in &provider.config().global.endpoints {
        findings.ok(format_args!("{service} is at {address}, as configured"))?;
    }
    let runs = |controller| selection.runs(controller) && provider.left_out(part_of(controller)).is_none();
    match MissingParts::check(&provider.cloud(openstack.clone()), runs) {
        Err(lacks) => findings.error("", lacks)?,
        Ok(()) => findings.ok("the catalog has all services that the controllers require")?,
    }
    for (place, kind, name) in named(provider.config(), runs) {
        if !has_service(&openstack, kind) {
            continue;
        }
        let what = kind.name();
        let problem = match look_up(&openstack, kind, &name).await {
            Ok(Found::Yes) => {
                findings.ok(format_args!("{place}: {what} {name}"))?;
                continue;
            }
            Ok(Found::Hidden) => {
                findings.not_tried(format!("{place}: the cloud does not show the {what} {name}"))?;
                continue;
            }
            Ok(Found::NotExternal) => {
                format!("the network {name:?} is not external, so it has no floating IPs")
            }
            Ok(Found::No) => format!("the {what} {name:?} does not exist, or the user cannot see it"),
            Err(error) => explained(&format!("the {what} {name:?} could not be looked up"), &error),
        };
        findings.error("", format_args!("{place}: {problem}"))?;
    }
    rights(&openstack, provider.config(), runs, findings).await?;
    if runs(ControllerName::ServiceLb) {
        parts::check(&openstack, findings).await?;
    }
    Ok(())
}

/// A key of cloud.conf, the kind of the resource that its value names, and the value.
type NamedByKey<'a> = (&'static str, ResourceKind, &'a Option<String>);

/// Returns the resources that both `[LoadBalancer]` and its classes can name.
fn placement(section: &LoadBalancerClass) -> [NamedByKey<'_>; 5] {
    use ResourceKind::{ExternalNetwork, Network, Subnet};
    [
        ("subnet-id", Subnet, &section.subnet_id),
        ("network-id", Network, &section.network_id),
        ("member-subnet-id", Subnet, &section.member_subnet_id),
        ("floating-network-id", ExternalNetwork, &section.floating_network_id),
        ("floating-subnet-id", Subnet, &section.floating_subnet_id),
    ]
}

fn named(config: &Config, runs: impl Fn(ControllerName) -> bool) -> Vec<NamedResource> {
    use ResourceKind::{AvailabilityZone, Certificate, Flavor, Method, Provider, Router};
    let mut named = Vec::new();
    let mut add = |section: &str, names: &[NamedByKey<'_>]| {
        for (key, kind, name) in names {
            if let Some(name) = name.as_deref().filter(|name| !name.is_empty()) {
                named.push((format!("{key} in [{section}] of cloud.conf"), *kind, name.to_owned()));
            }
        }
    };
    let section = &config.load_balancer;
    if runs(ControllerName::ServiceLb) {
        let verified = section.verifies_tls_containers();
        let certificate = if verified { &section.default_tls_container_ref } else { &None };
        add("LoadBalancer", &placement(&section.placement));
        let method = Some(section.lb_method.clone());
        let others = [
            ("lb-provider", Provider, &section.lb_provider),
            ("lb-method", Method, &method),
            ("flavor-id", Flavor, &section.flavor_id),
            ("availability-zone", AvailabilityZone, &section.availability_zone),
            ("default-tls-container-ref", Certificate, certificate),
        ];
        add("LoadBalancer", &others);
        for provider in &section.lb_providers {
            add("LoadBalancer", &[("lb-providers", Provider, &Some(provider.clone()))]);
        }
        for (name, class) in &config.classes {
            add(&format!("LoadBalancerClass {name:?}"), &placement(class));
        }
    }
    if runs(ControllerName::NodeRoute) {
        add("Route", &[("router-id", Router, &config.route.router_id)]);
    }
    named
}

/// The result of a look-up.
enum Found {
    Yes,
    No,
    NotExternal,
    /// A policy hides it.
    Hidden,
}

async fn look_up(openstack: &OpenStack, kind: ResourceKind, name: &str) -> Result<Found, ApiError> {
    let OpenStack { neutron, octavia, barbican, .. } = openstack;
    let among = |is_there: bool| if is_there { Found::Yes } else { Found::No };
    let found = match kind {
        ResourceKind::Network => neutron.get_network(name).await.map(|_| Found::Yes),
        ResourceKind::ExternalNetwork => {
            let network = neutron.get_network(name).await;
            network.map(|network| match network.external {
                Some(false) => Found::NotExternal,
                Some(true) | None => Found::Yes,
            })
        }
        ResourceKind::Subnet => {
            let filter = SubnetFilter { ids: vec![name.to_owned()], ..SubnetFilter::default() };
            neutron.list_subnets(&filter).await.map(|subnets| among(!subnets.is_empty()))
        }
        ResourceKind::Flavor => octavia.get_flavor(name).await.map(|_| Found::Yes),
        ResourceKind::AvailabilityZone => {
            let zones = octavia.list_availability_zones().await;
            zones.map(|zones| among(zones.iter().any(|zone| zone.name == name)))
        }
        ResourceKind::Router => neutron.get_router(name).await.map(|_| Found::Yes),
        ResourceKind::Provider => {
            let providers = octavia.list_providers().await;
            providers.map(|providers| among(providers.iter().any(|provider| provider.name == name)))
        }
        ResourceKind::Method => Ok(among(KNOWN_METHODS.contains(&name))),
        ResourceKind::Certificate => match (barbican, Reference::parse(name)) {
            (Some(barbican), Some(Reference::Container(id))) => {
                barbican.get_container(&id).await.map(|_| Found::Yes)
            }
            (Some(barbican), Some(Reference::Secret(id))) => {
                barbican.get_secret(&id).await.map(|_| Found::Yes)
            }
            (None, _) | (_, None) => Ok(Found::No),
        },
    };
    let hides_networks = || {
        let is_network = matches!(kind, ResourceKind::Network | ResourceKind::ExternalNetwork);
        is_network && openstack.client.lacks(OptionalPart::NetworkById)
    };
    match found {
        Err(_) if hides_networks() => Ok(Found::Hidden),
        // A list that is not shown says nothing of what would be in it.
        Err(_) if kind == ResourceKind::Provider => Ok(Found::Hidden),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::No),
        found => found,
    }
}

/// Returns whether the cloud has the service for resources of this kind; a missing service is reported once.
fn has_service(openstack: &OpenStack, kind: ResourceKind) -> bool {
    match kind {
        ResourceKind::Network
        | ResourceKind::ExternalNetwork
        | ResourceKind::Subnet
        | ResourceKind::Router => openstack.has(Service::Network),
        ResourceKind::Flavor | ResourceKind::AvailabilityZone | ResourceKind::Provider => {
            openstack.has(Service::LoadBalancer)
        }
        ResourceKind::Certificate | ResourceKind::Method => true,
    }
}

/// Makes each kind of read that the controllers make, in its smallest form.
async fn rights(
    openstack: &OpenStack,
    config: &Config,
    runs: impl Fn(ControllerName) -> bool,
    findings: &mut Section,
) -> anyhow::Result<()> {
    let balances = runs(ControllerName::ServiceLb);
    let reads_servers = runs(ControllerName::CloudNode) || runs(ControllerName::CloudNodeLifecycle);
    let mut results = Vec::new();
    let name = || Some(NOTHING.to_owned());
    if balances && openstack.has(Service::LoadBalancer) {
        let filter = LoadBalancerFilter::name(NOTHING);
        results.push(("list load balancers", openstack.octavia.list_load_balancers(&filter).await.err()));
    }
    if openstack.has(Service::Network) {
        let ports = PortFilter { name: name(), ..PortFilter::default() };
        results.push(("list ports", openstack.neutron.list_ports(&ports).await.err()));
        if balances {
            let filter = FloatingIpFilter { description: name(), ..FloatingIpFilter::default() };
            results.push(("list floating IPs", openstack.neutron.list_floating_ips(&filter).await.err()));
        }
        if balances && config.load_balancer.manage_security_groups {
            let filter = SecurityGroupFilter { name: name(), ..SecurityGroupFilter::default() };
            results
                .push(("list security groups", openstack.neutron.list_security_groups(&filter).await.err()));
        }
    }
    if let Some(nova) = openstack.nova.as_ref().filter(|_| reads_servers) {
        results.push(("list servers", nova.list_servers_named(NOTHING).await.err()));
    }
    for (what, error) in results {
        let Some(error) = error else {
            findings.ok(format_args!("the user may {what}"))?;
            continue;
        };
        let problem = if error.kind() == ErrorKind::Policy { "may not" } else { "could not" };
        findings.error("", explained(&format!("the user {problem} {what}"), &error))?;
    }
    Ok(())
}

/// Returns the error as text, with advice.
fn explained(what: &str, error: &ApiError) -> String {
    let advice = match error.kind() {
        ErrorKind::Policy => {
            "; give the user a role that allows it: member in the project, and load-balancer_member where Octavia has its own roles"
        }
        ErrorKind::BadRequest => "; write the id as OpenStack shows it: a name is not enough",
        _ => "",
    };
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{what}: {error}{cause}{advice}")
}
