//! The facts that are looked up before the desired tree is built.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::advertise::ClusterAccess;
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_api::octavia::OctaviaFeatures;
use openstack_ccm_openstack_api::optional::OptionalPart;

use super::Tags;
use super::address_choice::AddressChoice;
use super::floating_ip::SubnetChoice;

/// Looked-up facts about one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) features: Features,
    /// Subnet of the VIP, configured or found; absent if only the network is known.
    pub(crate) vip_subnet_id: Option<String>,
    pub(crate) vip_network_id: Option<String>,
    /// Family of the primary VIP.
    pub(crate) vip_family: IpFamily,
    /// The additional VIPs: those to request, or those of the existing load balancer.
    pub(crate) additional_vips: Vec<ResolvedVip>,
    /// Primary VIP of the Service's previous load balancer, which broke and was deleted: it is requested again.
    pub(crate) previous_vip_address: Option<IpAddr>,
    /// Subnet through which the load balancer reaches the members; absent, Octavia uses the VIP's. It is known to exist, since
    /// Octavia accepts an unknown subnet and then fails.
    pub(crate) member_subnet_id: Option<String>,
    /// How the address of each member is chosen.
    pub(crate) node_addresses: AddressChoice,
    /// Networks from which the cluster itself connects, if the Service allows them in any case; otherwise empty.
    pub(crate) cluster_sources: BTreeSet<IpNet>,
    /// Whether the source ranges allow the cluster itself. Looked up only where the Service's clients in the cluster may have to
    /// use the load balancer.
    pub(crate) cluster_access: ClusterAccess,
    /// External network for a new floating IP, configured or found.
    pub(crate) floating_network_id: Option<String>,
    /// Subnet for a new floating IP, configured or found by pattern and tags.
    pub(crate) floating_subnet: SubnetChoice,
}

impl Facts {
    /// Returns whether an address of the previous load balancer is requested.
    pub(crate) fn asks_for_previous(&self) -> bool {
        self.previous_vip_address.is_some()
            || self.additional_vips.iter().any(|vip| vip.previous_address.is_some())
    }

    /// Returns the families of all VIPs, the primary one first.
    pub(crate) fn vip_families(&self) -> impl Iterator<Item = IpFamily> + '_ {
        std::iter::once(self.vip_family).chain(self.additional_vips.iter().map(|vip| vip.family))
    }
}

/// An additional VIP. Octavia cannot add or remove one later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedVip {
    /// Subnet of this VIP, on the network of the primary VIP.
    pub(crate) subnet_id: String,
    pub(crate) family: IpFamily,
    /// Address of this VIP on the Service's previous load balancer, which broke and was deleted: it is requested again.
    pub(crate) previous_address: Option<IpAddr>,
}

/// What Octavia supports with this provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// Octavia's API.
    pub(crate) version: (u32, u32),
    pub(crate) timeouts: bool,
    pub(crate) tags: bool,
    pub(crate) flavors: bool,
    pub(crate) allowed_cidrs: bool,
    pub(crate) additive_batches: bool,
    pub(crate) availability_zones: bool,
    pub(crate) http_monitor: bool,
    pub(crate) http_monitor_on_udp: bool,
    /// Layer 7 and more: HTTP, TLS termination, PROXY protocol, a choice of algorithms.
    pub(crate) layer_7: bool,
    pub(crate) proxy_v2: bool,
    pub(crate) sctp: bool,
    pub(crate) additional_vips: bool,
    pub(crate) prometheus: bool,
    pub(crate) source_ip_port: bool,
    pub(crate) floating_ip_marks: FloatingIpMarks,
}

/// What marks the owner of a floating IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FloatingIpMarks {
    #[default]
    Tags,
    /// The description, because the cloud has no tags of floating IPs.
    Description,
    /// Neither: the cloud does not allow changes of the description either.
    Nothing,
}

impl FloatingIpMarks {
    pub(crate) fn of(client: &Client) -> Self {
        match (client.lacks(OptionalPart::FloatingIpTags), client.lacks(OptionalPart::FloatingIpDescription))
        {
            (false, _) => Self::Tags,
            (true, false) => Self::Description,
            (true, true) => Self::Nothing,
        }
    }

    /// Returns the tags for a floating IP: those that name the owner, and the user's, as far as the cloud supports them.
    pub(crate) fn of_tags(self, identity: Tags, of_user: &Tags) -> Tags {
        match self {
            Self::Tags => &identity | of_user,
            Self::Description => identity,
            Self::Nothing => Tags::new(),
        }
    }
}

/// The provider driver that only forwards packets.
pub(crate) const OVN: &str = "ovn";

impl Features {
    /// Returns whether members see the clients' source addresses, because the load balancer only forwards packets.
    pub(crate) fn keeps_client_addresses(self) -> bool {
        !self.layer_7
    }

    /// Returns why a feature is missing that requires this API version and a provider other than ovn.
    pub(crate) fn lack(self, version: &str) -> String {
        if self.layer_7 {
            format!("it requires Octavia API {version}, which this cloud does not have")
        } else {
            "provider ovn does not support it".to_owned()
        }
    }

    /// Returns the features of an API version with a provider. They follow from the provider's name, since Octavia does not report
    /// them; any provider but ovn is assumed to support what amphora does.
    pub(crate) fn of(api: OctaviaFeatures, provider: Option<&str>) -> Self {
        let proxies = provider != Some(OVN);
        Self {
            timeouts: api.timeouts() && proxies,
            tags: api.tags(),
            flavors: api.flavors() && proxies,
            allowed_cidrs: api.allowed_cidrs() && proxies,
            additive_batches: api.additive_batches(),
            availability_zones: api.availability_zones() && proxies,
            http_monitor: proxies,
            http_monitor_on_udp: api.http_monitor_on_udp() && proxies,
            layer_7: proxies,
            proxy_v2: api.version >= (2, 22) && proxies,
            sctp: api.version >= (2, 23),
            version: api.version,
            additional_vips: api.additional_vips(),
            prometheus: api.version >= (2, 25) && proxies,
            source_ip_port: api.source_ip_port(),
            floating_ip_marks: FloatingIpMarks::default(),
        }
    }
}
