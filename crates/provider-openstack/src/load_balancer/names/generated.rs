//! Generates and parses names and descriptions.

use openstack_ccm_core::service::ServiceKey;
use uuid::Uuid;

use crate::user_tag::MAX_OCTAVIA_LENGTH;

/// Prefix of every name that OCCM generates for a load balancer.
const SERVICE_PREFIX: &str = "kube_service_";

/// Prefix of every description that OCCM generates for a load balancer.
pub(super) const DESCRIPTION: &str = "Kubernetes external service ";

/// Prefix of every description that OCCM generates for a floating IP.
const FLOATING_IP_DESCRIPTION: &str = "Floating IP for Kubernetes external service ";

/// Prefix of every name that OCCM generates for a security group.
pub(super) const SECURITY_GROUP_PREFIX: &str = "lb-sg-";

/// Prefix of the description of a load balancer that outlives its Service.
const RETAINED: &str = "Retained: ";

/// Returns the text if Octavia can store it; a longer one is truncated, and made unique by `~` and a digest. The length is counted in
/// bytes, which is never less than in characters. Kubernetes names never contain `~`.
pub(super) fn fit(text: &str) -> String {
    if text.len() <= MAX_OCTAVIA_LENGTH {
        return text.to_owned();
    }
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string();
    let mark = format!("~{}", &digest[..16]);
    format!("{}{mark}", cut(text, MAX_OCTAVIA_LENGTH - mark.len()))
}

/// Truncates a text to this many bytes, at a character boundary.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

pub(super) fn generated_name(cluster: &str, service: &ServiceKey) -> String {
    format!("{SERVICE_PREFIX}{cluster}_{}_{}", service.namespace, service.name)
}

pub(super) fn floating_ip_description(service: &ServiceKey, cluster: &str) -> String {
    fit(&format!("{FLOATING_IP_DESCRIPTION}{service} from cluster {cluster}"))
}

/// Returns whether OCCM or this controller generated this description for a floating IP.
pub fn describes_floating_ip(description: &str) -> bool {
    description.starts_with(FLOATING_IP_DESCRIPTION)
}

/// Returns the name of a child after its load balancer was renamed from `previous` to `present`; `None` unless it is
/// `<kind>_<index>_<previous>`. Built from its parts, so that no cluster name can break it.
pub fn renamed_child(name: &str, kind: &str, previous: &str, present: &str) -> Option<String> {
    let (index, parent) = name.strip_prefix(kind)?.strip_prefix('_')?.split_once('_')?;
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    (is_index && parent == previous).then(|| fit(&format!("{kind}_{index}_{present}")))
}

/// The parts of a generated load balancer name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedName {
    /// Name of the cluster.
    pub cluster: String,
    pub service: ServiceKey,
}

impl GeneratedName {
    /// Parses `kube_service_<cluster>_<namespace>_<service>`. `None` for any other text, and for truncated names.
    pub fn parse(name: &str) -> Option<Self> {
        // Only the cluster's name may contain `_`.
        let mut parts = name.strip_prefix(SERVICE_PREFIX)?.rsplitn(3, '_');
        let (service, namespace, cluster) = (parts.next()?, parts.next()?, parts.next()?);
        (is_object_name(service) && is_object_name(namespace))
            .then(|| Self { cluster: cluster.to_owned(), service: ServiceKey::new(namespace, service) })
    }

    /// Returns the description of such a load balancer's floating IP.
    pub fn floating_ip_description(&self) -> String {
        floating_ip_description(&self.service, &self.cluster)
    }
}

/// Returns whether an object of Kubernetes may have this name.
pub(crate) fn is_object_name(name: &str) -> bool {
    let is_name_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    !name.is_empty() && name.bytes().all(is_name_byte)
}

/// Returns the description of a load balancer that has outlived its Service (`reclaim-policy: retain`), made from its former one.
/// Every Octavia version has descriptions, and they explain to operators why the load balancer exists.
pub fn retained_description(description: &str) -> String {
    if is_retained(description) { description.to_owned() } else { fit(&format!("{RETAINED}{description}")) }
}

/// Returns whether the description says that the load balancer has outlived its Service, and no Service has taken it over.
pub fn is_retained(description: &str) -> bool {
    description.starts_with(RETAINED)
}

/// Returns whether a load balancer was made for a Service of any cluster, by its name or description. One that a user made has
/// neither, even while a Service uses it and has set tags.
pub fn is_made_for_service(name: &str, description: &str) -> bool {
    let description = description.strip_prefix(RETAINED).unwrap_or(description);
    is_generated(name) || description.starts_with(DESCRIPTION)
}

/// Returns whether OCCM or this controller generated this name for a security group.
pub fn is_generated_security_group(name: &str) -> bool {
    name.starts_with(SECURITY_GROUP_PREFIX)
}

/// Returns whether a name was generated for a cluster of another name. Of a truncated name only the beginning is compared.
pub fn is_generated_elsewhere(name: &str, cluster: &str) -> bool {
    match GeneratedName::parse(name) {
        Some(parsed) => parsed.cluster != cluster,
        None => is_generated(name) && !name.starts_with(&format!("{SERVICE_PREFIX}{cluster}_")),
    }
}

/// Describes a load balancer, or what is on it, for the Event of a Service. Who has access to its namespace only (`seen_from`) learns
/// neither name nor id of what was generated for a Service of another one.
pub fn shown(kind: &str, name: &str, id: &str, seen_from: Option<&str>) -> String {
    let generated = name.find(SERVICE_PREFIX).map(|begin| GeneratedName::parse(&name[begin..]));
    let made_in = generated.map(|parsed| parsed.map(|parsed| parsed.service.namespace));
    match (seen_from, made_in) {
        (Some(seen_from), Some(made_in)) if made_in.as_deref() != Some(seen_from) => {
            format!("a {kind} of another namespace")
        }
        _ => format!("{kind} {name} ({id})"),
    }
}

/// Returns whether OCCM or this controller generated this name, for any cluster.
pub fn is_generated(name: &str) -> bool {
    name.starts_with(SERVICE_PREFIX)
}
