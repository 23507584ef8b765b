//! Looks up what is not configured and the desired tree depends on: subnets, networks, Octavia's features.
//!
//! Reads only. What changes slowly is cached, and what only a new load balancer or floating IP needs is looked up only then, so
//! that an unchanged Service costs nothing here.

mod certificate;
mod cluster_sources;
mod families;
mod floating;
mod lookup;
mod node_ports;
mod provider;
mod refused_creation;
mod room;
mod subnets;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use ipnet::IpNet;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::cache::Cache;
use openstack_ccm_openstack_api::neutron::{FloatingIp, Network, Port, Router, Subnet};
use openstack_ccm_openstack_api::octavia::Provider;
use openstack_ccm_openstack_api::optional::OptionalPart;

use super::failure::Answered as _;
use super::settings::node_address::family_of;
use super::settings::{Aspect, Fault, Faults};
use crate::load_balancer::objects::{Facts, Features, FloatingIpMarks};
use floating::FloatingIpSource;
use node_ports::NodePort;

pub(super) use lookup::Lookup;
pub(super) use node_ports::NodePorts;
pub(super) use provider::counts_connections;
pub(super) use refused_creation::Refusal;

/// How long networks, subnets, routers, providers, certificates, and that a quota is unlimited, are cached.
const PLACE_LIFETIME: Duration = Duration::from_secs(600);
/// How long subnet and port of a node's address are cached.
const NODE_LIFETIME: Duration = Duration::from_secs(3600);

/// Looks up facts about the cloud.
pub(super) struct Resolver {
    openstack: OpenStack,
    subnets: Cache<String, Subnet>,
    /// Key: the ids of all subnets in a query. Results are not kept.
    listed_subnets: Cache<String, Vec<Subnet>>,
    networks: Cache<String, Network>,
    subnets_of_network: Cache<String, Vec<Subnet>>,
    /// Key: network of the VIP.
    external_network: Cache<String, String>,
    node_ports: Cache<String, NodePort>,
    /// Ports of servers. Key: the ids of all servers in a query. Results are not kept.
    ports_of_servers: Cache<String, Vec<Port>>,
    certificates: Cache<String, ()>,
    /// Ports of a network, and all floating IPs.
    cluster_sources: Cache<String, (Vec<Port>, Vec<FloatingIp>)>,
    routers: Cache<String, Router>,
    /// The ids of projects that may have any number of listeners.
    unlimited: Cache<String, ()>,
    providers: Cache<String, Vec<Provider>>,
    flavors_of_provider: Cache<String, bool>,
    /// Octavia's default provider, if a refusal named it.
    default_provider: Mutex<Option<String>>,
}

impl Resolver {
    pub(super) fn new(openstack: OpenStack) -> Self {
        Self {
            openstack,
            subnets: Cache::new(PLACE_LIFETIME),
            listed_subnets: Cache::new(Duration::ZERO),
            networks: Cache::new(PLACE_LIFETIME),
            subnets_of_network: Cache::new(PLACE_LIFETIME),
            external_network: Cache::new(PLACE_LIFETIME),
            node_ports: Cache::new(NODE_LIFETIME),
            ports_of_servers: Cache::new(Duration::ZERO),
            certificates: Cache::new(PLACE_LIFETIME),
            cluster_sources: Cache::new(PLACE_LIFETIME),
            routers: Cache::new(PLACE_LIFETIME),
            unlimited: Cache::new(PLACE_LIFETIME),
            providers: Cache::new(PLACE_LIFETIME),
            flavors_of_provider: Cache::new(PLACE_LIFETIME),
            default_provider: Mutex::default(),
        }
    }

    /// Returns Octavia's features for a provider. A failed query is a failure, and never means that there are none.
    pub(super) async fn features(&self, provider: Option<&str>) -> Result<Features, Failure> {
        let versions = self.openstack.octavia.api_versions().await;
        let versions = versions.while_doing("asking for Octavia's API versions")?;
        let mut features = Features::of(versions, provider);
        let client = &self.openstack.client;
        let lacks_tags = client.lacks(OptionalPart::LoadBalancerTags);
        features.tags = client.has_shown(OptionalPart::LoadBalancerTags) || (features.tags && !lacks_tags);
        features.additive_batches &= !client.lacks(OptionalPart::AdditiveBatches);
        features.floating_ip_marks = FloatingIpMarks::of(client);
        Ok(features)
    }

    /// Returns all facts of a Service, and faults for which an existing load balancer keeps its current values. Notices about how
    /// the facts were found are added to `notices`.
    ///
    /// # Errors
    /// Any failed call; without a load balancer, all faults at once.
    pub(super) async fn facts(
        &self,
        lookup: &Lookup<'_>,
        notices: &mut Vec<Notice>,
    ) -> Result<(Facts, Vec<Fault>), Failure> {
        let places = self.places(lookup).await;
        let floating = self.floating_ip(lookup, places.as_ref().ok()).await;
        let mut faults = Vec::new();
        let places = match lookup.existing {
            Some(_) => places?,
            None => both(places, &floating)?,
        };
        faults.extend(places.faults.iter().cloned());
        let floating = match floating {
            Err(failure) if lookup.existing.is_some() && failure.class != FailureClass::Bug => {
                faults.push(Fault::new([Aspect::FloatingIp], failure.message));
                FloatingIpSource::none()
            }
            floating => floating?,
        };
        let node_addresses = self.node_addresses(lookup, &places).await?;
        let cluster_sources = match self.cluster_sources(lookup, &places).await {
            // The networks that may connect stay as they are.
            Err(failure) if lookup.existing.is_some() && failure.class != FailureClass::Bug => {
                faults.push(Fault::new([Aspect::SourceRanges], failure.message));
                BTreeSet::new()
            }
            found => found?,
        };
        let cluster_access = Box::pin(self.cluster_access(lookup, &places)).await;
        notices.extend(places.notices);
        notices.extend(floating.notice);
        let mut previous = lookup.previous_vip_addresses.iter().copied();
        let previous_vip_address = previous.find(|previous| {
            family_of(*previous) == places.vip_family && is_in(places.vip_addresses, *previous)
        });
        let facts = Facts {
            features: lookup.features,
            vip_subnet_id: places.vip_subnet_id,
            vip_network_id: places.vip_network_id,
            vip_family: places.vip_family,
            additional_vips: places.additional_vips,
            previous_vip_address,
            member_subnet_id: places.member_subnet_id,
            node_addresses,
            cluster_sources,
            cluster_access,
            floating_network_id: floating.network_id,
            floating_subnet: floating.subnet,
        };
        Ok((facts, faults))
    }
}

/// Returns the first result; if the user's input caused both failures, returns both.
fn both<T, U>(first: Result<T, Failure>, second: &Result<U, Failure>) -> Result<T, Failure> {
    let is_input = |failure: &Failure| failure.class == FailureClass::UserInput;
    first.map_err(|failure| match second {
        Err(other) if is_input(&failure) && is_input(other) && failure.message != other.message => {
            let mut faults = Faults::default();
            faults.extend([&failure, other].map(|failure| Fault::new([], &failure.message)));
            faults.failure().unwrap_or(failure)
        }
        Ok(_) | Err(_) => failure,
    })
}

/// Returns whether an address may be in a subnet; `true` if the subnet is not known.
fn is_in(subnet: Option<IpNet>, address: IpAddr) -> bool {
    subnet.is_none_or(|subnet| subnet.contains(&address))
}
