//! The cloud objects of a Service, and what the controller would change.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::LoadBalancerIngress;

use super::Looked;

/// How far the controller would get with a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// It is not known how far.
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
    /// The addresses of its VIPs, and the floating IPs that lead to them; absent where they were not looked up.
    pub addresses: Option<Looked<Vec<IpAddr>>>,
    /// Those of its addresses that are floating IPs.
    pub floating: Vec<IpAddr>,
    /// The source addresses of nodes at a floating IP, after SNAT by a router or by their own floating IPs; absent where they were
    /// not looked up.
    pub translated: Option<Looked<Vec<IpAddr>>>,
    /// Floating IPs of the project that the Service publishes, or that the controller noted for it, but that do not lead to it;
    /// each with where it leads.
    pub astray: BTreeMap<IpAddr, String>,
    /// The entries that the controller would publish, if they differ from the published ones.
    pub would_publish: Option<Vec<LoadBalancerIngress>>,
    /// The CIDR of the VIP's subnet.
    pub subnet: Option<String>,
    /// What the security groups of the members let in, or why that is not known.
    pub doors: Option<Looked<Vec<Door>>>,
}

/// Objects, and why some of them could not be read.
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
    /// Its name, or the address and port of a member.
    pub name: String,
    /// `provisioning_status`
    pub provisioning: String,
    /// `operating_status`
    pub operating: String,
    /// Whether `admin_state_up` is false.
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
    /// The name that distinguishes the object from others of its kind.
    pub name: String,
    /// The pool of the members.
    pub parent: Option<String>,
    /// The attributes that would change.
    pub fields: Vec<ChangedField>,
}

/// An attribute that the controller would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedField {
    pub name: String,
    /// The change in words.
    pub text: String,
    /// Values that a list would lose.
    pub removed: Vec<String>,
    /// Values that a list would gain.
    pub added: Vec<String>,
}

impl Change {
    /// Returns the change as a line of `plan`.
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
    /// A security group of this member alone, to which a rule can be added.
    pub group: Option<String>,
    /// Whether the server's port has port security at all.
    pub guarded: bool,
    /// Whether the user cannot see one of its groups, for example a group of another project.
    pub hidden: bool,
    /// The rules that let packets in.
    pub rules: Vec<DoorRule>,
    /// The network from which the load balancer sends, by an unknown address; absent where the network is not known.
    pub from: Option<IpNet>,
}

/// Whether the load balancer is in the remote group of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSource {
    /// The load balancer is in the group.
    Holds,
    /// The load balancer is not in the group.
    Lacks,
    /// The members of the group cannot be seen.
    Unknown,
}

/// A security group rule that lets packets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorRule {
    /// `tcp`; absent for any protocol.
    pub protocol: Option<String>,
    /// First and last port; absent for all ports.
    pub ports: Option<(u16, u16)>,
    /// The source network; absent for any source.
    pub from: Option<IpNet>,
    /// Whether the rule is for IPv6, not for IPv4.
    pub ipv6: bool,
    /// Whether the load balancer is in the remote group; absent where the rule names none.
    pub from_group: Option<GroupSource>,
}
