//! What a Service has in the cloud, and what the controller would do to it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::LoadBalancerIngress;

use super::Looked;

/// How far the controller would get with a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Forecast {
    /// All the way.
    #[default]
    Settled,
    /// The cloud is at work.
    Waits(String),
    /// Somebody has to change a setting, and until then the load balancer keeps the one that it has.
    Keeps(String),
    /// Somebody has to change something.
    Refused(String),
    /// Nobody knows.
    Unknown(String),
}

/// The objects of a Service in the cloud.
#[derive(Clone, Debug, Default)]
pub struct CloudFacts {
    /// The load balancer; absent where there is none.
    pub load_balancer: Option<CloudObject>,
    /// Its Octavia provider.
    pub provider: String,
    /// The listeners, pools, members and monitors below it.
    pub children: Objects<CloudObject>,
    /// How far the controller would get.
    pub forecast: Forecast,
    /// What the controller would change.
    pub changes: Vec<Change>,
    /// What the controller would warn of: reason and message.
    pub warnings: Vec<(String, String)>,
    /// Its addresses: those of its VIPs, and the floating IPs that lead to them; absent where nobody looked.
    pub addresses: Option<Looked<Vec<IpAddr>>>,
    /// Those of them that are floating IPs.
    pub floating: Vec<IpAddr>,
    /// The addresses with which nodes come to a floating IP, through a router or by a floating IP of their own; absent where nobody looked.
    pub translated: Option<Looked<Vec<IpAddr>>>,
    /// Addresses of the Service, published or as the controller has written them beside that, that are floating IPs of the project and do not
    /// lead to it: where they lead.
    pub astray: BTreeMap<IpAddr, String>,
    /// What the controller would publish, where that differs from what is published.
    pub would_publish: Option<Vec<LoadBalancerIngress>>,
    /// The network of its VIP.
    pub subnet: Option<String>,
    /// What the security groups of the members let in; why that is not known.
    pub doors: Option<Looked<Vec<Door>>>,
}

/// Objects, or why they could not be looked at.
#[derive(Clone, Debug, Default)]
pub struct Objects<T> {
    pub objects: Vec<T>,
    /// Why some are missing.
    pub trouble: Option<String>,
}

/// A load balancer, or one of its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudObject {
    /// `load balancer`, `listener`, `pool`, `member`, `health monitor`.
    pub kind: &'static str,
    pub id: String,
    /// Its name, or of a member its address and port.
    pub name: String,
    /// `provisioning_status`
    pub provisioning: String,
    /// `operating_status`
    pub operating: String,
    /// `admin_state_up` is false.
    pub disabled: bool,
    /// Weight of a member.
    pub weight: Option<u16>,
    /// Networks from which a listener accepts connections; empty for all.
    pub allowed: Vec<String>,
    /// `updated_at`
    pub updated: Option<Timestamp>,
    /// Protocol of a listener or pool.
    pub protocol: Option<String>,
    /// Port of a listener or member.
    pub port: Option<u16>,
    /// The pool of a member, or the default pool of a listener.
    pub pool: Option<String>,
}

impl CloudObject {
    /// `pool 1234 (name)`
    pub fn title(&self) -> String {
        if self.name.is_empty() {
            format!("{} {}", self.kind, self.id)
        } else {
            format!("{} {} ({})", self.kind, self.id, self.name)
        }
    }
}

/// Something that the controller would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// `+`, `~`, `-`, `-/+`
    pub mark: String,
    /// `listener`, `members`, `pool`
    pub kind: String,
    /// What distinguishes it from others.
    pub name: String,
    /// The pool of members.
    pub parent: Option<String>,
    /// What would be other.
    pub fields: Vec<ChangedField>,
}

/// An attribute that the controller would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedField {
    pub name: String,
    /// The change in words.
    pub text: String,
    /// What a list would lose.
    pub removed: Vec<String>,
    /// What a list would gain.
    pub added: Vec<String>,
}

impl Change {
    /// As `plan` writes it.
    pub fn line(&self) -> String {
        let fields: Vec<&str> = self.fields.iter().map(|field| field.text.as_str()).collect();
        format!("{} {} {} {}", self.mark, self.kind, self.name, fields.join("; ")).trim_end().to_owned()
    }
}

/// What the security groups of one member let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// Address of the member.
    pub address: IpAddr,
    /// The node port.
    pub port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    /// The pool of the member.
    pub pool: String,
    /// A security group of its own, to which a rule can be added.
    pub group: Option<String>,
    /// Whether the port of the machine has port security at all.
    pub guarded: bool,
    /// Whether one of its groups cannot be seen by whoever asks: that of another project, for example.
    pub hidden: bool,
    /// The rules that let packets in.
    pub rules: Vec<DoorRule>,
    /// The network from which the load balancer sends, by an address that nobody knows; absent where the network is not known.
    pub from: Option<IpNet>,
}

/// Whether the load balancer is in the group whose members a rule lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSource {
    /// It is.
    Holds,
    /// It is not.
    Lacks,
    /// That cannot be seen.
    Unknown,
}

/// A rule of a security group that lets packets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorRule {
    /// `tcp`; absent for any.
    pub protocol: Option<String>,
    /// Ports; absent for all.
    pub ports: Option<(u16, u16)>,
    /// Sources; absent for any.
    pub from: Option<IpNet>,
    /// The rule is for IPv6, not for IPv4.
    pub ipv6: bool,
    /// The sources are the members of a group.
    pub from_group: Option<GroupSource>,
}
