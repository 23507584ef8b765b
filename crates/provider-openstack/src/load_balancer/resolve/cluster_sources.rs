//! From which addresses the cluster itself comes, for `allow-cluster-sources`.
//!
//! Nodes and pods that reach the load balancer directly come from the subnets of the nodes. Those that reach its floating
//! IP go through a router and come back translated: to the floating IP of the node, or to the router's own address.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::try_join_all;
use ipnet::IpNet;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::neutron::{FloatingIpFilter, Port, PortFilter};

use super::subnets::Places;
use super::{Question, Resolver};
use crate::load_balancer::failure::{self, Missing};
use crate::load_balancer::model::facts::MemberSubnets;

impl Resolver {
    /// The networks from which the cluster connects; none where nobody asked for them.
    pub(super) async fn cluster_sources(
        &self,
        question: &Question<'_>,
        places: &Places,
    ) -> Result<BTreeSet<IpNet>, Failure> {
        let settings = question.settings;
        if !settings.allow_cluster_sources || !settings.source_ranges.requested {
            return Ok(BTreeSet::new());
        }
        let Some(network_id) = self.network_of_nodes(question, places).await? else {
            return Ok(BTreeSet::new());
        };
        let nodes: BTreeSet<IpAddr> = question
            .intent
            .nodes
            .iter()
            .flat_map(|node| &node.addresses)
            .filter_map(|address| address.address.parse().ok())
            .collect();
        let mut sources = BTreeSet::new();
        for subnet in self.subnets_of(&network_id).await? {
            let network: Option<IpNet> = subnet.cidr.parse().ok();
            sources.extend(network.filter(|network| nodes.iter().any(|node| network.contains(node))));
        }
        let beyond = self.sources_beyond_routers(&network_id, &nodes).await;
        let beyond = beyond.map_err(|error| {
            failure::of_call(&error, "looking for the addresses of the cluster", Missing::Race)
        })?;
        sources.extend(beyond.into_iter().map(IpNet::from));
        Ok(sources)
    }

    /// The network of the members, else that of the VIP.
    async fn network_of_nodes(
        &self,
        question: &Question<'_>,
        places: &Places,
    ) -> Result<Option<String>, Failure> {
        let member_subnet = match &places.member_subnets {
            MemberSubnets::Common(subnet) => subnet.as_deref(),
            MemberSubnets::PerNode(subnets) => subnets.values().next().map(String::as_str),
        };
        if let Some(subnet) = member_subnet.or(places.vip_subnet_id.as_deref()) {
            return Ok(Some(self.subnet(subnet, "member-subnet-id").await?.network_id));
        }
        let existing = question.existing.and_then(|existing| existing.made_with.vip_network_id.clone());
        Ok(places.vip_network_id.clone().or(existing))
    }

    /// Addresses of the routers on the network outside, and floating IPs of nodes.
    async fn sources_beyond_routers(
        &self,
        network_id: &str,
        nodes: &BTreeSet<IpAddr>,
    ) -> Result<BTreeSet<IpAddr>, Arc<ApiError>> {
        let neutron = &self.openstack.neutron;
        let on_network = PortFilter { network_id: Some(network_id.to_owned()), ..PortFilter::default() };
        let all = FloatingIpFilter::default();
        let list =
            async { tokio::try_join!(neutron.list_ports(&on_network), neutron.list_floating_ips(&all)) };
        let (ports, floating_ips) = self.cluster_sources.get_or_ask(network_id, list).await?;
        let ids: BTreeSet<&str> =
            ports.iter().filter(|port| is_of_router(port)).map(|port| port.device_id.as_str()).collect();
        let routers =
            try_join_all(ids.into_iter().map(|id| self.routers.get_or_ask(id, neutron.get_router(id))))
                .await?;
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

/// Whether a port belongs to a router: plain, distributed, highly available, or its translation.
fn is_of_router(port: &Port) -> bool {
    port.device_owner.starts_with("network:router") || port.device_owner.starts_with("network:ha_router")
}
