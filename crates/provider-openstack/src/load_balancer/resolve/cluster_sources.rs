//! Finds the source addresses of the cluster itself: for `allow-cluster-sources`, and to find out whether source ranges without it
//! exclude the cluster's own pods.
//!
//! Nodes and pods that connect to the VIP directly use the subnets of the nodes. Connections to its floating IP pass a router and
//! have translated sources: the floating IP of the node, or the router's own address.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::try_join_all;
use ipnet::IpNet;
use openstack_ccm_core::advertise::{ClusterAccess, Path};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{Port, PortFilter, Router};

use super::Resolver;
use super::lookup::Lookup;
use super::subnets::Places;
use crate::load_balancer::failure::Answered as _;
use crate::load_balancer::objects::Ownership;
use crate::load_balancer::settings::Exposure;
use crate::load_balancer::settings::node_address::family_of;

impl Resolver {
    /// Returns the networks from which the cluster connects; none unless the Service allows them.
    pub(super) async fn cluster_sources(
        &self,
        lookup: &Lookup<'_>,
        places: &Places,
    ) -> Result<BTreeSet<IpNet>, Failure> {
        let settings = lookup.settings;
        if !settings.allow_cluster_sources || !settings.source_ranges.requested {
            return Ok(BTreeSet::new());
        }
        let Some(network_id) = self.network_of_nodes(lookup, places).await? else {
            return Ok(BTreeSet::new());
        };
        let nodes: BTreeSet<IpAddr> = lookup.intent.addresses_of_nodes().collect();
        let mut sources = self.subnets_with_nodes(&network_id, &nodes).await?;
        sources.extend(self.sources_beyond_routers(&network_id, &nodes).await?);
        Ok(sources)
    }

    /// Returns whether the source ranges allow the cluster itself. A failed lookup is no failure: it affects only the publication
    /// of the address.
    pub(super) async fn cluster_access(&self, lookup: &Lookup<'_>, places: &Places) -> ClusterAccess {
        let settings = lookup.settings;
        let shared = lookup.existing.is_some_and(|existing| existing.ownership != Ownership::Sole);
        let led_there = shared || settings.path(&lookup.intent.service.ports) != Path::Direct;
        if !led_there
            || settings.allow_cluster_sources
            || !settings.source_ranges.requested
            || !lookup.features.allowed_cidrs
        {
            return ClusterAccess::Open;
        }
        match self.shut_out_sources(lookup, places).await {
            Ok(networks) if networks.is_empty() => ClusterAccess::Open,
            Ok(networks) => ClusterAccess::Without(networks.iter().map(IpNet::to_string).collect()),
            Err(failure) => ClusterAccess::Unknown(failure.message),
        }
    }

    /// Returns the networks from which the cluster connects to the published address, and that the source ranges lack.
    async fn shut_out_sources(
        &self,
        lookup: &Lookup<'_>,
        places: &Places,
    ) -> Result<BTreeSet<IpNet>, Failure> {
        let settings = lookup.settings;
        let Some(network_id) = self.network_of_nodes(lookup, places).await? else {
            return Err(Failure::user_input("the network of the nodes is not known"));
        };
        let ranges: Vec<IpNet> = settings.source_ranges.networks.iter().copied().collect();
        let ranges = IpNet::aggregate(&ranges);
        let nodes: BTreeSet<IpAddr> = lookup.intent.addresses_of_nodes().collect();
        let outside: BTreeSet<IpAddr> =
            nodes.iter().copied().filter(|node| !ranges.iter().any(|range| range.contains(node))).collect();
        let mut missing = self.subnets_with_nodes(&network_id, &outside).await?;
        // No router translates connections to the VIP itself.
        if settings.exposure != Exposure::Internal {
            let beyond = self.sources_beyond_routers(&network_id, &nodes).await?;
            missing.extend(beyond.filter(|source| !ranges.iter().any(|range| range.contains(source))));
        }
        let families: Vec<IpFamily> = std::iter::once(places.vip_family)
            .chain(places.additional_vips.iter().map(|vip| vip.family))
            .collect();
        missing.retain(|network| families.contains(&family_of(network.addr())));
        Ok(missing)
    }

    /// Returns the subnets of the network that contain any of these addresses.
    async fn subnets_with_nodes(
        &self,
        network_id: &str,
        nodes: &BTreeSet<IpAddr>,
    ) -> Result<BTreeSet<IpNet>, Failure> {
        let subnets = self.subnets_of(network_id).await?;
        let networks = subnets.iter().filter_map(|subnet| subnet.cidr.parse::<IpNet>().ok());
        Ok(networks.filter(|network| nodes.iter().any(|node| network.contains(node))).collect())
    }

    /// Returns the network of the members, else that of the VIP.
    async fn network_of_nodes(
        &self,
        lookup: &Lookup<'_>,
        places: &Places,
    ) -> Result<Option<String>, Failure> {
        let member_subnet = places.member_subnet_id.as_deref();
        if let Some(subnet) = member_subnet.or(places.vip_subnet_id.as_deref()) {
            return Ok(Some(self.subnet(subnet, lookup.settings.member_subnet_key).await?.network_id));
        }
        let existing = lookup.existing.and_then(|existing| existing.made_with.vip_network_id.clone());
        Ok(places.vip_network_id.clone().or(existing))
    }

    /// Returns the external addresses of the routers, and the floating IPs of nodes.
    async fn sources_beyond_routers(
        &self,
        network_id: &str,
        nodes: &BTreeSet<IpAddr>,
    ) -> Result<impl Iterator<Item = IpNet> + use<>, Failure> {
        let beyond = self.ask_beyond_routers(network_id, nodes).await;
        Ok(beyond.while_doing("looking for the addresses of the cluster")?.into_iter().map(IpNet::from))
    }

    /// Returns the routers that own any of these ports.
    pub(super) async fn routers_behind(&self, ports: &[Port]) -> Result<Vec<Router>, Arc<ApiError>> {
        let neutron = &self.openstack.neutron;
        let ids: BTreeSet<&str> =
            ports.iter().filter(|port| is_of_router(port)).map(|port| port.device_id.as_str()).collect();
        try_join_all(ids.into_iter().map(|id| self.routers.get_or_fetch(id, neutron.get_router(id)))).await
    }

    async fn ask_beyond_routers(
        &self,
        network_id: &str,
        nodes: &BTreeSet<IpAddr>,
    ) -> Result<BTreeSet<IpAddr>, Arc<ApiError>> {
        let neutron = &self.openstack.neutron;
        let on_network = PortFilter { network_id: Some(network_id.to_owned()), ..PortFilter::default() };
        let project_id = self.openstack.project_id.as_deref();
        let list = async {
            tokio::try_join!(
                neutron.list_ports(&on_network),
                neutron.list_floating_ips_of_project(project_id)
            )
        };
        let (ports, floating_ips) = self.cluster_sources.get_or_fetch(network_id, list).await?;
        let routers = self.routers_behind(&ports).await?;
        let gateways = routers.iter().filter_map(|router| router.external_gateway_info.as_ref());
        let gateways =
            gateways.flat_map(|gateway| &gateway.external_fixed_ips).map(|fixed| fixed.ip_address.as_str());
        let of_node = |address: &Option<String>| {
            address
                .as_deref()
                .and_then(|text| text.parse().ok())
                .is_some_and(|address| nodes.contains(&address))
        };
        let floating = floating_ips.iter().filter(|one| of_node(&one.fixed_ip_address));
        let floating = floating.map(|one| one.floating_ip_address.as_str());
        Ok(gateways.chain(floating).filter_map(|text| text.parse().ok()).collect())
    }
}

/// Returns whether a port belongs to a router: plain, distributed, highly available, or its SNAT port.
fn is_of_router(port: &Port) -> bool {
    port.device_owner.starts_with("network:router") || port.device_owner.starts_with("network:ha_router")
}
