//! What had to be looked up before the tree could be built.

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
    /// Subnet of the VIP, configured or found; absent where only the network is known.
    pub(crate) vip_subnet_id: Option<String>,
    pub(crate) vip_network_id: Option<String>,
    /// Family of the primary VIP.
    pub(crate) vip_family: IpFamily,
    /// The other VIPs: those to ask for, or those that the load balancer has.
    pub(crate) additional_vips: Vec<ResolvedVip>,
    /// VIP address of the Service's previous load balancer, which broke and was deleted: it is asked for again.
    pub(crate) previous_vip_address: Option<IpAddr>,
    /// Subnet through which the load balancer reaches the members; absent, Octavia uses that of the VIP. Octavia accepts an
    /// unknown one and then fails, so this one exists.
    pub(crate) member_subnet_id: Option<String>,
    /// By which of its addresses a node becomes a member.
    pub(crate) node_addresses: AddressChoice,
    /// Networks from which the cluster itself connects, where it may in any case. Empty where nobody asks for that.
    pub(crate) cluster_sources: BTreeSet<IpNet>,
    /// Whether the source ranges let the cluster itself in. Looked up only where the Service's clients in the cluster may
    /// have to go through the load balancer.
    pub(crate) cluster_access: ClusterAccess,
    /// External network for a new floating IP, configured or found.
    pub(crate) floating_network_id: Option<String>,
    /// Subnet for a new floating IP, configured or found by pattern and tags.
    pub(crate) floating_subnet: SubnetChoice,
}

impl Facts {
    /// Whether an address of the previous load balancer is asked for.
    pub(crate) fn asks_for_previous(&self) -> bool {
        self.previous_vip_address.is_some()
            || self.additional_vips.iter().any(|vip| vip.previous_address.is_some())
    }

    /// Families of all VIPs, that of the primary one first.
    pub(crate) fn vip_families(&self) -> impl Iterator<Item = IpFamily> + '_ {
        std::iter::once(self.vip_family).chain(self.additional_vips.iter().map(|vip| vip.family))
    }
}

/// A VIP in addition to the primary one. Octavia cannot add one later, nor take one away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedVip {
    /// Its subnet, on the network of the primary VIP.
    pub(crate) subnet_id: String,
    pub(crate) family: IpFamily,
    /// Its address on the Service's previous load balancer, which broke and was deleted: it is asked for again.
    pub(crate) previous_address: Option<IpAddr>,
}

/// What Octavia can do for this provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) timeouts: bool,
    pub(crate) tags: bool,
    pub(crate) flavors: bool,
    pub(crate) allowed_cidrs: bool,
    pub(crate) additive_batches: bool,
    pub(crate) availability_zones: bool,
    pub(crate) http_monitor: bool,
    pub(crate) http_monitor_on_udp: bool,
    /// Everything above the transport: HTTP, TLS termination, PROXY protocol, a choice of algorithms.
    pub(crate) layer_7: bool,
    pub(crate) proxy_v2: bool,
    pub(crate) sctp: bool,
    pub(crate) tls_versions: bool,
    pub(crate) tls_ciphers: bool,
    pub(crate) alpn_protocols: bool,
    pub(crate) additional_vips: bool,
    pub(crate) prometheus: bool,
    pub(crate) source_ip_port: bool,
    pub(crate) floating_ip_marks: FloatingIpMarks,
}

/// What says on a floating IP whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FloatingIpMarks {
    #[default]
    Tags,
    /// The cloud has no tags of floating IPs.
    Description,
    /// Nor does it let a description be changed.
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

    /// What a floating IP is to carry of the tags that say whose it is, and of the user's.
    pub(crate) fn of_tags(self, identity: Tags, of_user: &Tags) -> Tags {
        match self {
            Self::Tags => &identity | of_user,
            Self::Description => identity,
            Self::Nothing => Tags::new(),
        }
    }
}

/// The provider driver that forwards packets and terminates nothing.
pub(crate) const OVN: &str = "ovn";

impl Features {
    /// Whether members see the clients' addresses as senders, because the load balancer only forwards packets.
    pub(crate) fn keeps_client_addresses(self) -> bool {
        !self.layer_7
    }

    /// Why what needs a version of the API, and a provider other than ovn, is not there.
    pub(crate) fn lack(self, version: &str) -> String {
        if self.layer_7 {
            format!("it requires Octavia API {version}, which this cloud does not have")
        } else {
            "provider ovn does not support it".to_owned()
        }
    }

    /// Features of an API version with a provider, by its name: Octavia has no question for what a provider can do.
    /// Providers other than ovn are taken to do what amphora does.
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
            tls_versions: api.version >= (2, 17) && proxies,
            tls_ciphers: api.version >= (2, 15) && proxies,
            alpn_protocols: api.version >= (2, 20) && proxies,
            additional_vips: api.additional_vips(),
            prometheus: api.version >= (2, 25) && proxies,
            source_ip_port: api.source_ip_port(),
            floating_ip_marks: FloatingIpMarks::default(),
        }
    }
}
