//! The cloud objects of a Service, as Octavia and Neutron show them, and what the controller would change.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::LoadBalancerIngress;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange};
use openstack_ccm_openstack_api::neutron::{self, FloatingIp, SecurityGroup, Subnet};
use openstack_ccm_openstack_api::octavia::{
    HealthMonitor, Listener, LoadBalancer, Member, OperatingStatus, Pool,
};
use serde::{Deserialize, Serialize};

use super::Looked;
use crate::hop::Port;

/// How far the controller would get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "cause", rename_all = "kebab-case")]
pub enum Forecast {
    /// The controller would finish.
    #[default]
    Settled,
    /// The controller would wait for the cloud.
    Waits(String),
    /// A user has to change a setting; until then the load balancer keeps its present one.
    Keeps(String),
    /// A user has to change something first.
    Refused(String),
    /// Something could not be read, or a call failed.
    Unknown(String),
}

/// The objects of a Service in the cloud.
#[derive(Clone, Debug)]
pub struct CloudFacts {
    /// The load balancer; absent where there is none.
    pub load_balancer: Option<LoadBalancer>,
    /// The objects below it.
    pub children: Looked<Children>,
    /// How far the controller would get.
    pub forecast: Forecast,
    /// What the controller would change, each object once.
    pub changes: Vec<ObjectChange>,
    /// What the controller would warn of: reason and message.
    pub warnings: Vec<(String, String)>,
    /// The objects of Neutron, which all Services share.
    pub network: Arc<Network>,
    /// The source addresses of nodes at a floating IP, after SNAT by a router or by their own floating IPs; absent where they were
    /// not looked up.
    pub translated: Option<Looked<Vec<IpAddr>>>,
    /// Addresses that the Service publishes, or that the controller noted for it.
    pub claimed: Vec<IpAddr>,
    /// The entries that the controller would publish, if they differ from the published ones.
    pub would_publish: Option<Vec<LoadBalancerIngress>>,
}

/// The objects below a load balancer.
#[derive(Clone, Debug, Default)]
pub struct Children {
    pub listeners: Vec<Listener>,
    pub pools: Vec<PoolFact>,
}

/// A pool, with the objects below it.
#[derive(Clone, Debug)]
pub struct PoolFact {
    pub pool: Pool,
    pub members: Vec<MemberFact>,
    pub monitor: Option<HealthMonitor>,
}

/// A member, with its health.
#[derive(Clone, Debug, Deserialize)]
pub struct MemberFact {
    #[serde(flatten)]
    pub member: Member,
    pub operating_status: OperatingStatus,
}

impl MemberFact {
    /// Returns its address and port.
    pub fn name(&self) -> String {
        format!("{}:{}", self.member.address, self.member.protocol_port)
    }

    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.member.address.parse().ok()
    }

    /// Returns why it gets no connections; absent where it gets some.
    pub(crate) fn idle(&self) -> Option<&'static str> {
        if !self.member.admin_state_up {
            Some("disabled")
        } else if self.member.weight == 0 {
            Some("of weight 0")
        } else if matches!(self.operating_status, OperatingStatus::Error | OperatingStatus::Offline) {
            Some("down")
        } else {
            None
        }
    }
}

/// The objects of Neutron that matter to load balancers.
#[derive(Clone, Debug)]
pub struct Network {
    pub ports: Looked<Vec<neutron::Port>>,
    pub groups: Looked<Vec<SecurityGroup>>,
    pub subnets: Looked<Vec<Subnet>>,
    pub floating_ips: Looked<Vec<FloatingIp>>,
}

impl Network {
    /// Returns a network of which nothing is known.
    pub fn unknown(cause: &str) -> Self {
        let cause = || cause.to_owned();
        Self { ports: Err(cause()), groups: Err(cause()), subnets: Err(cause()), floating_ips: Err(cause()) }
    }

    /// Returns the port with an address.
    pub fn port_at(&self, address: IpAddr) -> Option<&neutron::Port> {
        let has = |port: &&neutron::Port| {
            port.fixed_ips.iter().any(|fixed| fixed.ip_address.parse() == Ok(address))
        };
        self.ports.iter().flatten().find(has)
    }

    fn subnet(&self, id: Option<&str>) -> Option<IpNet> {
        let mut subnets = self.subnets.iter().flatten();
        subnets.find(|subnet| Some(subnet.id.as_str()) == id)?.cidr.parse().ok()
    }
}

impl CloudFacts {
    pub(crate) fn listeners(&self) -> &[Listener] {
        self.children.as_ref().map_or(&[], |children| &children.listeners)
    }

    pub(crate) fn pools(&self) -> &[PoolFact] {
        self.children.as_ref().map_or(&[], |children| &children.pools)
    }

    /// Returns the listener of a port.
    pub(crate) fn listener(&self, port: Port) -> Option<&Listener> {
        let serves = |listener: &&Listener| {
            listener.protocol_port == port.number && transport(listener.protocol.as_str()) == port.protocol
        };
        self.listeners().iter().find(serves)
    }

    /// Returns the default pool of the listener of a port.
    pub(crate) fn pool(&self, port: Port) -> Option<&PoolFact> {
        let id = self.listener(port)?.default_pool_id.as_deref()?;
        self.pools().iter().find(|pool| pool.pool.id == id)
    }

    /// Returns the changes of objects of a kind.
    pub(crate) fn changes_of(&self, kind: Kind) -> impl Iterator<Item = &ObjectChange> {
        self.changes.iter().filter(move |change| change.kind == kind)
    }

    /// Returns the floating IPs that lead to the load balancer, as far as they are known.
    pub(crate) fn floating(&self) -> Vec<IpAddr> {
        let vip = self.load_balancer.as_ref().and_then(|one| one.vip_port_id.as_deref());
        let mut found = Vec::new();
        for floating in self.network.floating_ips.iter().flatten() {
            if vip.is_some() && floating.port_id.as_deref() == vip {
                found.extend(floating.floating_ip_address.parse::<IpAddr>());
            }
        }
        found
    }

    /// Returns the addresses of the load balancer's VIPs, and the floating IPs that lead to them.
    pub(crate) fn addresses(&self) -> Looked<Vec<IpAddr>> {
        let Some(one) = &self.load_balancer else { return Ok(Vec::new()) };
        self.network.floating_ips.as_ref().map_err(Clone::clone)?;
        let further = one.additional_vips.iter().filter_map(|vip| vip.ip_address.as_ref());
        let vips = one.vip_address.iter().chain(further).filter_map(|address| address.parse().ok());
        Ok(vips.chain(self.floating()).collect())
    }

    /// Returns floating IPs of the Service that do not lead to its load balancer, each with where it leads.
    pub(crate) fn astray(&self) -> BTreeMap<IpAddr, String> {
        let Ok(own) = self.addresses() else { return BTreeMap::new() };
        let of_others = self.claimed.iter().filter(|address| !own.contains(address));
        of_others.filter_map(|address| Some((*address, self.leads_to(*address)?))).collect()
    }

    /// Returns where a floating IP leads; absent for addresses that were never one of the Service.
    fn leads_to(&self, address: IpAddr) -> Option<String> {
        let mut all = self.network.floating_ips.iter().flatten();
        match all.find(|one| one.floating_ip_address.parse() == Ok(address)).map(|one| &one.port_id) {
            Some(None) => Some("the floating IP is not attached to a port".to_owned()),
            Some(Some(port)) => Some(format!("the floating IP is attached to port {port}")),
            // The controller would create a new floating IP in its place.
            None => self
                .changes_of(Kind::FloatingIp)
                .any(|change| change.before.is_none())
                .then(|| "the project has no such floating IP".to_owned()),
        }
    }

    /// Returns the network of the VIP.
    pub(crate) fn subnet(&self) -> Option<IpNet> {
        self.network.subnet(self.load_balancer.as_ref()?.vip_subnet_id.as_deref())
    }

    /// Returns the network from which the load balancer sends to a member: an amphora has an address of its own in the member's
    /// subnet, or else in that of the VIP.
    pub(crate) fn sends_from(&self, member: &Member) -> Option<IpNet> {
        match member.subnet_id.as_deref() {
            Some(id) => self.network.subnet(Some(id)),
            None => self.subnet(),
        }
    }
}

/// Returns the transport protocol of a listener or a pool.
pub(crate) fn transport(protocol: &str) -> Protocol {
    match protocol {
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        _ => Protocol::Tcp,
    }
}
