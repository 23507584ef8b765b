//! Decides by the cloud which addresses belong to a Service's load balancer: users may have written those in annotations and statuses.

use std::net::IpAddr;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Service;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::neutron::FloatingIp;
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use openstack_ccm_provider_openstack::load_balancer::names::{self, GeneratedName};

const LOAD_BALANCER_ID: &str = "loadbalancer.openstack.org/load-balancer-id";

/// The load balancers and floating IPs of the project.
#[derive(Debug, Default)]
pub struct CloudAddresses {
    load_balancers: Vec<LoadBalancer>,
    floating_ips: Vec<FloatingIp>,
    /// The cluster in the names that count, where somebody gave it.
    cluster: Option<String>,
}

impl CloudAddresses {
    /// Lists the load balancers and floating IPs of the project. With a name, only names of this cluster count.
    pub async fn read(openstack: &OpenStack, cluster: Option<&str>) -> anyhow::Result<Self> {
        let project_id = openstack.project_id.as_deref();
        let load_balancers = openstack.octavia.list_load_balancers_of_project(project_id).await;
        let floating_ips = openstack.neutron.list_floating_ips_of_project(project_id).await;
        let problem = "the addresses of load balancers cannot be read from the cloud";
        Ok(Self {
            load_balancers: load_balancers.context(problem)?,
            floating_ips: floating_ips.context(problem)?,
            cluster: cluster.map(str::to_owned),
        })
    }

    /// Returns whether the cloud has a load balancer of the Service: by tags and names, or by the id that the Service names.
    pub fn serves(&self, service: &Service) -> bool {
        let annotations = service.metadata.annotations.as_ref();
        let named = annotations.and_then(|annotations| annotations.get(LOAD_BALANCER_ID));
        self.load_balancers.iter().any(|one| self.is_for(one, service) || named == Some(&one.id))
    }

    /// Returns whether an address belongs to a load balancer that serves the Service, or to a floating IP on it.
    pub fn is_of(&self, address: &str, service: &Service) -> bool {
        let Ok(address) = address.parse::<IpAddr>() else { return false };
        let is_it = |text: &str| text.parse() == Ok(address);
        self.load_balancers.iter().filter(|one| self.is_for(one, service)).any(|one| {
            let vips = one.vip_address.iter();
            let mut vips = vips.chain(one.additional_vips.iter().filter_map(|vip| vip.ip_address.as_ref()));
            let port = one.vip_port_id.as_deref();
            let mut floating_ips =
                self.floating_ips.iter().filter(|ip| port.is_some() && ip.port_id.as_deref() == port);
            vips.any(|vip| is_it(vip)) || floating_ips.any(|ip| is_it(&ip.floating_ip_address))
        })
    }

    /// Decides by the tags with uids, or, without such tags, by the names that OCCM gives.
    fn is_for(&self, load_balancer: &LoadBalancer, service: &Service) -> bool {
        let tags = &load_balancer.tags;
        let metadata = &service.metadata;
        if names::service_uids(tags).any(|uid| metadata.uid.as_deref() == Some(uid)) {
            return true;
        }
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let key = ServiceKey::new(part(&metadata.namespace), part(&metadata.name));
        let is_named = |name: &str| {
            GeneratedName::parse(name).is_some_and(|parsed| {
                parsed.service == key
                    && self.cluster.as_ref().is_none_or(|cluster| *cluster == parsed.cluster)
            })
        };
        let is_guest = names::user_names(tags).any(|name| name != load_balancer.name && is_named(name));
        is_guest || (names::service_uids(tags).next().is_none() && is_named(&load_balancer.name))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{from_value, json};

    use super::*;

    #[rstest]
    #[case::vip("10.0.0.9", &[], None, true)]
    #[case::floating_ip("203.0.113.9", &[], None, true)]
    #[case::of_nobody("203.0.113.10", &[], None, false)]
    #[case::no_address("web.example.org", &[], None, false)]
    #[case::tagged("203.0.113.9", &["openstack-ccm-service=u"], None, true)]
    #[case::of_a_namesake("203.0.113.9", &["openstack-ccm-service=other"], None, false)]
    #[case::a_guest("203.0.113.9", &["openstack-ccm-service=other", "kube_service_c_shop_web"], None, true)]
    #[case::of_this_cluster("203.0.113.9", &[], Some("c"), true)]
    #[case::of_another_cluster("203.0.113.9", &[], Some("d"), false)]
    #[case::tagged_before_a_rename("203.0.113.9", &["openstack-ccm-service=u"], Some("d"), true)]
    fn an_address_counts_if_it_leads_to_the_services_own_load_balancer(
        #[case] address: &str,
        #[case] tags: &[&str],
        #[case] cluster: Option<&str>,
        #[case] expected: bool,
    ) {
        let name = if tags.len() > 1 { "kube_service_c_shop_owner" } else { "kube_service_c_shop_web" };
        let load_balancer = json!({"id": "lb", "name": name, "tags": tags, "vip_address": "10.0.0.9", "vip_port_id": "port",
            "provisioning_status": "ACTIVE", "operating_status": "ONLINE"});
        let floating_ip = |address: &str, port: &str| {
            json!({"id": address, "floating_ip_address": address,
            "floating_network_id": "n", "port_id": port, "description": "", "tags": []})
        };
        let cloud = CloudAddresses {
            load_balancers: vec![from_value(load_balancer).unwrap()],
            floating_ips: from_value(json!([
                floating_ip("203.0.113.9", "port"),
                floating_ip("203.0.113.10", "another")
            ]))
            .unwrap(),
            cluster: cluster.map(str::to_owned),
        };
        let service = json!({"metadata": {"namespace": "shop", "name": "web", "uid": "u"}});
        assert_eq!(cloud.is_of(address, &from_value(service).unwrap()), expected);
    }
}
