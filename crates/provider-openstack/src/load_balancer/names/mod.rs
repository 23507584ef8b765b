//! Names, descriptions and tags of what is made for a Service, and how to read them.
//!
//! Names and descriptions are those of OCCM, so that either program finds what the other made. The two tags of our own
//! tell what a name cannot: which of several clusters of one name, and which of several Services of one name in the
//! course of time.
//!
//! | tag | on | value |
//! | --- | --- | --- |
//! | `kube_service_<cluster>_<namespace>_<service>` | load balancer and its children | OCCM's: the generated name. Those on a load balancer count as its users. |
//! | `openstack-ccm-cluster=<uid>` | everything | uid of the cluster's namespace `kube-system` |
//! | `openstack-ccm-service=<uid>` | everything | uid of the Service |
//! | `kube_cluster_id_<uid>` | load balancer, floating IP | proposed for OCCM: uid of the namespace `kube-system`. Read, never written. |
//! | `openstack-ccm-former-vip=<address>` | floating IP | where it led, while its load balancer is made anew |
//!
//! With a uid of 36 characters ours have 58 at most; Neutron takes 60, Octavia 255.
//!
//! The description of a load balancer that outlives its Service begins with `Retained: `, see [`is_retained`].

use std::collections::BTreeSet;
use std::net::IpAddr;

use openstack_ccm_core::service::{Service, ServiceKey};
use uuid::Uuid;

/// Tags of an object. Neither Octavia nor Neutron keeps an order.
pub type Tags = BTreeSet<String>;

/// Longest name and longest description, in bytes. Octavia and Neutron count characters, which is never more.
const LONGEST: usize = 255;

/// Every name that OCCM generates for a load balancer starts so.
const SERVICE_PREFIX: &str = "kube_service_";

/// Every description that OCCM generates for a floating IP starts so.
const FLOATING_IP_DESCRIPTION: &str = "Floating IP for Kubernetes external service ";

/// Every name that OCCM generates for a security group starts so.
const SECURITY_GROUP_PREFIX: &str = "lb-sg-";

/// What the description of a load balancer begins with that outlives its Service.
const RETAINED: &str = "Retained: ";

const CLUSTER_TAG: &str = "openstack-ccm-cluster=";
/// What OCCM may say in its place one day.
const OCCM_CLUSTER_TAG: &str = "kube_cluster_id_";
const SERVICE_TAG: &str = "openstack-ccm-service=";
const PREVIOUS_VIP_TAG: &str = "openstack-ccm-former-vip=";

/// Which cluster this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// `--cluster-name`: part of all names. Not unique; many clusters are called `kubernetes`.
    pub name: String,
    /// Uid of the namespace `kube-system`: unique, and the same as long as the cluster lives.
    pub uid: String,
}

impl ClusterIdentity {
    /// The tag of everything that is made for this cluster.
    pub fn tag(&self) -> String {
        format!("{CLUSTER_TAG}{}", self.uid)
    }
}

/// The names, descriptions and tags of one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    cluster: ClusterIdentity,
    service: ServiceKey,
    service_uid: String,
    /// The generated name of the load balancer before it is shortened.
    whole: String,
    load_balancer: String,
}

impl Names {
    /// Names of a Service in a cluster.
    pub fn new(cluster: &ClusterIdentity, service: &Service) -> Self {
        let whole = generated_name(&cluster.name, &service.key);
        Self {
            cluster: cluster.clone(),
            service: service.key.clone(),
            service_uid: service.uid.clone(),
            load_balancer: fit(&whole),
            whole,
        }
    }

    /// Name of the load balancer. Also the tag by which OCCM knows the Service's users and listeners.
    pub fn load_balancer(&self) -> &str {
        &self.load_balancer
    }

    /// Name of the load balancer if the cluster had another name.
    pub fn load_balancer_under(&self, cluster: &str) -> String {
        fit(&generated_name(cluster, &self.service))
    }

    /// The name that OCCM gives, where it is another one: it cuts names that are too long, so that two Services may get
    /// the same. A load balancer of this name is ours only if its description says so.
    pub fn cut_load_balancer(&self) -> Option<String> {
        (self.whole.len() > LONGEST).then(|| cut(&self.whole, LONGEST).to_owned())
    }

    /// The name that Kubernetes gave before OCCM had names of its own: `a` and the Service's uid without dashes, 32
    /// characters in all.
    pub fn legacy_load_balancer(&self) -> String {
        let digits = self.service_uid.chars().filter(|letter| *letter != '-');
        std::iter::once('a').chain(digits).take(32).collect()
    }

    /// Name of the listener of the port with this index in `spec.ports`.
    pub fn listener(&self, index: usize) -> String {
        self.child("listener", index)
    }

    /// Name of the pool of the port with this index.
    pub fn pool(&self, index: usize) -> String {
        self.child("pool", index)
    }

    /// Name of the health monitor of the port with this index.
    pub fn monitor(&self, index: usize) -> String {
        self.child("monitor", index)
    }

    fn child(&self, kind: &str, index: usize) -> String {
        fit(&format!("{kind}_{index}_{}", self.load_balancer))
    }

    /// Description of the load balancer. It says "external" for internal ones too.
    pub fn description(&self) -> String {
        fit(&format!("Kubernetes external service {} from cluster {}", self.service, self.cluster.name))
    }

    /// Description of the floating IP.
    pub fn floating_ip_description(&self) -> String {
        floating_ip_description(&self.service, &self.cluster.name)
    }

    /// Name of the security group. Its uid makes it unique, whatever the cluster's name.
    pub fn security_group(&self) -> String {
        let ServiceKey { namespace, name } = &self.service;
        cut(&format!("{SECURITY_GROUP_PREFIX}{}-{namespace}-{name}", self.service_uid), LONGEST).to_owned()
    }

    /// Description of the security group.
    pub fn security_group_description(&self) -> String {
        fit(&format!("{}{}", self.security_group_description_stem(), self.cluster.name))
    }

    /// What the description of the Service's security group begins with, whatever the cluster was called then.
    pub fn security_group_description_stem(&self) -> String {
        format!("Security Group for {} Service LoadBalancer in cluster ", self.service)
    }

    /// Tags of the load balancer and its children.
    pub fn tags(&self) -> Tags {
        let mut tags = self.identity_tags();
        tags.insert(self.load_balancer.clone());
        tags
    }

    /// Tags of what Neutron keeps, where the generated name would be too long a tag.
    pub fn identity_tags(&self) -> Tags {
        Tags::from([self.cluster.tag(), self.service_tag()])
    }

    /// The tag that only this Service's objects carry.
    pub fn service_tag(&self) -> String {
        format!("{SERVICE_TAG}{}", self.service_uid)
    }
}

/// Name of a member where members are made one by one. In batches it is the name of the node.
pub fn serial_member(node: &str, address: IpAddr, port: u16) -> String {
    fit(&format!("member_{node}_{address}_{port}"))
}

/// A text that fits as it is; of one that does not, the beginning and a mark that tells it from every other. The `~`
/// occurs in no name of Kubernetes.
fn fit(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string();
    let mark = format!("~{}", &digest[..16]);
    format!("{}{mark}", cut(text, LONGEST - mark.len()))
}

/// The beginning of a text, up to so many bytes, and never half a character.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn generated_name(cluster: &str, service: &ServiceKey) -> String {
    format!("{SERVICE_PREFIX}{cluster}_{}_{}", service.namespace, service.name)
}

fn floating_ip_description(service: &ServiceKey, cluster: &str) -> String {
    fit(&format!("{FLOATING_IP_DESCRIPTION}{service} from cluster {cluster}"))
}

/// Whether a description is one that OCCM or this program generated for a floating IP.
pub fn describes_floating_ip(description: &str) -> bool {
    description.starts_with(FLOATING_IP_DESCRIPTION)
}

/// The name of a child when that of its load balancer has changed from `previous` to `present`; absent for names that
/// are not `<kind>_<index>_<previous>`. Built anew from its parts, so that no name of a cluster can spoil it.
pub fn renamed_child(name: &str, kind: &str, previous: &str, present: &str) -> Option<String> {
    let (index, parent) = name.strip_prefix(kind)?.strip_prefix('_')?.split_once('_')?;
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    (is_index && parent == previous).then(|| fit(&format!("{kind}_{index}_{present}")))
}

/// What a generated load balancer name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedName {
    /// The cluster's name.
    pub cluster: String,
    /// The Service.
    pub service: ServiceKey,
}

impl GeneratedName {
    /// Reads `kube_service_<cluster>_<namespace>_<service>`. `None` for any other text, and for generated names that
    /// had to be shortened.
    pub fn parse(name: &str) -> Option<Self> {
        // Only the cluster's name may hold a `_`.
        let mut parts = name.strip_prefix(SERVICE_PREFIX)?.rsplitn(3, '_');
        let (service, namespace, cluster) = (parts.next()?, parts.next()?, parts.next()?);
        let valid = |part: &str| !part.is_empty() && part.bytes().all(is_name_byte);
        (valid(service) && valid(namespace))
            .then(|| Self { cluster: cluster.to_owned(), service: ServiceKey::new(namespace, service) })
    }
}

impl GeneratedName {
    /// Description of the floating IP of such a load balancer.
    pub fn floating_ip_description(&self) -> String {
        floating_ip_description(&self.service, &self.cluster)
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
}

/// Uids of the clusters that the tags name. None: what was made by OCCM or by hand.
pub fn cluster_uids(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().filter_map(|tag| tag.strip_prefix(CLUSTER_TAG).or_else(|| tag.strip_prefix(OCCM_CLUSTER_TAG)))
}

/// Whether a tag names a cluster by its uid.
pub fn is_cluster_tag(tag: &str) -> bool {
    tag.starts_with(CLUSTER_TAG) || tag.starts_with(OCCM_CLUSTER_TAG)
}

/// Whether a tag names a Service by its uid.
pub fn is_service_tag(tag: &str) -> bool {
    tag.starts_with(SERVICE_TAG)
}

/// Uids of the Services that the tags name.
pub fn service_uids(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().filter_map(|tag| tag.strip_prefix(SERVICE_TAG))
}

/// Whether a tag does nothing but tell whose an object is.
pub fn tells_owner(tag: &str) -> bool {
    is_generated(tag) || [CLUSTER_TAG, SERVICE_TAG].iter().any(|prefix| tag.starts_with(prefix))
}

/// Whether only this program gives such tags, so that it also takes them away.
pub fn is_own_tag(tag: &str) -> bool {
    [CLUSTER_TAG, SERVICE_TAG, PREVIOUS_VIP_TAG].iter().any(|prefix| tag.starts_with(prefix))
}

/// The tag of a floating IP whose load balancer is deleted to be made anew: the VIP that it led to. Nothing else tells
/// it by then to a program that was started in between.
pub fn previous_vip_tag(vip: IpAddr) -> String {
    format!("{PREVIOUS_VIP_TAG}{vip}")
}

/// The VIPs that the tags of a floating IP name.
pub fn previous_vips(tags: &Tags) -> impl Iterator<Item = IpAddr> {
    tags.iter().filter_map(|tag| tag.strip_prefix(PREVIOUS_VIP_TAG)?.parse().ok())
}

/// The description of a load balancer that has outlived its Service (`reclaim-policy: retain`), made of the one that it
/// had. Every Octavia has descriptions, and whoever looks at the load balancer reads why it is there.
pub fn retained_description(description: &str) -> String {
    if is_retained(description) { description.to_owned() } else { fit(&format!("{RETAINED}{description}")) }
}

/// Whether a description says that the load balancer has outlived its Service, and nobody has taken it over yet.
pub fn is_retained(description: &str) -> bool {
    description.starts_with(RETAINED)
}

/// Generated names among the tags: on a load balancer one for each Service that uses it.
pub fn user_names(tags: &Tags) -> impl Iterator<Item = &str> {
    tags.iter().map(String::as_str).filter(|tag| is_generated(tag))
}

/// Whether a name is one that OCCM or this program generated for a security group.
pub fn is_generated_security_group(name: &str) -> bool {
    name.starts_with(SECURITY_GROUP_PREFIX)
}

/// Whether a name was generated for a cluster of another name. Of one that had to be shortened only its begin is left.
pub fn is_generated_elsewhere(name: &str, cluster: &str) -> bool {
    match GeneratedName::parse(name) {
        Some(parsed) => parsed.cluster != cluster,
        None => is_generated(name) && !name.starts_with(&format!("{SERVICE_PREFIX}{cluster}_")),
    }
}

/// Whether a name is one that OCCM or this program generated, for any cluster.
pub fn is_generated(name: &str) -> bool {
    name.starts_with(SERVICE_PREFIX)
}

#[cfg(test)]
mod tests;
