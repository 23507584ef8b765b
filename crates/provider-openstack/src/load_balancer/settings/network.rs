//! Location of the load balancer: class, VIP, member subnet, floating IP, address.

use std::net::IpAddr;

use openstack_ccm_core::service::IpFamily;

use super::node_address::{family_name, family_of};
use super::origin::Origin;
use super::publication;
use super::reader::{Class, SettingsReader, Sourced, sourced};
use crate::config::{Config, LoadBalancerClass};
use crate::load_balancer::annotations::{
    Annotation, CLASS, FLOATING_IP, FLOATING_NETWORK_ID, FLOATING_SUBNET, FLOATING_SUBNET_ID,
    FLOATING_SUBNET_TAGS, INTERNAL, MEMBER_SUBNET_ID, NETWORK_ID, PORT_ID, SUBNET_ID, VIP_ADDRESS,
};
use crate::load_balancer::settings::floating_subnet::{NamePattern, SubnetMatch, TagCondition};

/// Location of the VIP of a new load balancer. It has an effect only at creation: a VIP never moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VipSettings {
    /// `port-id`: an existing port, which excludes subnet and network.
    pub port_id: Option<String>,
    /// Subnet. For an external Service the class wins over the annotation, for an internal one the reverse; then
    /// cloud.conf.
    pub subnet_id: Option<String>,
    /// Network, selected like the subnet; both are sent if both are set.
    pub network_id: Option<String>,
    /// Address: `vip-address`; or `spec.loadBalancerIP` of an internal Service, or if it is an IPv6 address.
    pub address: Option<IpAddr>,
    /// The address of the other IP family.
    pub second_address: Option<IpAddr>,
    /// The field or annotation that asks for the addresses.
    pub asked_by: &'static str,
}

impl VipSettings {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.address.into_iter().chain(self.second_address)
    }

    /// Returns the requested address of an IP family.
    pub(crate) fn address_of(&self, family: IpFamily) -> Option<IpAddr> {
        self.addresses().find(|address| family_of(*address) == family)
    }
}

/// Whether clients outside the network reach the load balancer.
#[derive(Clone, Debug, PartialEq)]
pub enum Exposure {
    /// They do not: the Service has no floating IP.
    Internal,
    /// They do: through a floating IP, unless the VIP is IPv6.
    External(FloatingIpSettings),
}

/// The floating IP of an external Service. It has an effect only if one has to be found or created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FloatingIpSettings {
    /// `floating-ip`, or `spec.loadBalancerIP` of an external Service where it is an IPv4 address.
    pub address: Option<IpAddr>,
    /// Whether the annotation asks for it: manifests had the annotation before it had an effect.
    pub is_annotated: bool,
    /// External network: class, else annotation, else cloud.conf. Absent, the external network is looked up.
    pub network_id: Option<String>,
    /// Subnet, from the first of class, annotations and cloud.conf that has any setting for it.
    pub subnet: FloatingSubnet,
}

/// Subnet of a new floating IP.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FloatingSubnet {
    /// Neutron chooses.
    #[default]
    Any,
    /// This subnet, which must belong to the floating network.
    Id(String),
    /// The first subnet that matches and has a free address.
    Matching(SubnetMatch),
}

/// Location of the load balancer.
pub(super) struct Placement {
    pub(super) vip: VipSettings,
    /// With the key that names it.
    pub(super) member_subnet: (Option<String>, &'static str),
    pub(super) exposure: Exposure,
}

/// One setting, in each of its places.
struct Candidates<'a> {
    annotation: Option<Sourced<'a>>,
    class: Option<Sourced<'a>>,
    config: Option<Sourced<'a>>,
}

impl<'a> Candidates<'a> {
    /// Reads the setting of an annotation; classes and `[LoadBalancer]` use its name without the prefix.
    fn of(
        reader: &SettingsReader<'a>,
        annotation: &Annotation,
        value: fn(&LoadBalancerClass) -> &Option<String>,
    ) -> Self {
        let key = annotation.short();
        let of_class = |class: Class<'a>| {
            let origin = Origin::Class { class: class.name.to_owned(), key };
            sourced(value(class.keys).as_deref(), origin, annotation.aspects)
        };
        Self {
            annotation: reader.annotation(annotation),
            class: reader.class.and_then(of_class),
            config: sourced(
                value(&reader.config.placement).as_deref(),
                Origin::Config(key),
                annotation.aspects,
            ),
        }
    }

    fn annotation_first(&self) -> Option<Sourced<'a>> {
        self.annotation.clone().or_else(|| self.class.clone()).or_else(|| self.config.clone())
    }

    /// Returns the value for the VIP. The class overrides the annotation for external Services only, as in OCCM, and manifests rely
    /// on that.
    fn for_vip(&self, internal: bool) -> Option<Sourced<'a>> {
        let class = self.class.clone().filter(|_| !internal);
        class.or_else(|| self.annotation_first())
    }
}

/// Returns the class that the Service names.
pub(super) fn choose_class<'a>(reader: &mut SettingsReader<'a>, config: &'a Config) -> Option<Class<'a>> {
    let value = reader.annotation(&CLASS)?;
    if let Some((name, keys)) = config.classes.get_key_value(value.text) {
        return Some(Class { name, keys });
    }
    let names: Vec<String> = config.classes.keys().map(|name| format!("{name:?}")).collect();
    let fix = if names.is_empty() {
        "cloud.conf has no [LoadBalancerClass] section: remove the annotation, or ask the operator to add the class"
            .to_owned()
    } else {
        format!("use one of {} (case-sensitive), or ask the operator to add the class", names.join(", "))
    };
    reader.reject(&value, "is not a class in cloud.conf", fix);
    None
}

/// Reads the location of the load balancer.
pub(super) fn placement(reader: &mut SettingsReader<'_>) -> Placement {
    let internal = internal(reader);
    let address = load_balancer_ip(reader);
    let of_vip = address.filter(|address| internal || address.is_ipv6());
    let annotated_vip = vip_addresses(reader, of_vip);
    let subnet = Candidates::of(reader, &SUBNET_ID, |class| &class.subnet_id);
    let network = Candidates::of(reader, &NETWORK_ID, |class| &class.network_id);
    let vip = VipSettings {
        port_id: reader.uuid(reader.annotation(&PORT_ID)),
        subnet_id: reader.uuid(subnet.for_vip(internal)),
        network_id: reader.uuid(network.for_vip(internal)),
        address: annotated_vip.first().copied().or(of_vip),
        second_address: annotated_vip.get(1).copied(),
        asked_by: if annotated_vip.is_empty() { "spec.loadBalancerIP" } else { VIP_ADDRESS.key },
    };
    // Invalid annotations are reported even if the class overrides them.
    for hidden in [subnet.annotation.clone(), network.annotation] {
        reader.uuid(hidden);
    }
    let member_subnet = member_subnet(reader, &subnet);
    let floating = address.filter(|address| !internal && address.is_ipv4());
    let annotated = floating_ip(reader, floating);
    if internal && annotated.is_some() {
        let why = "the Service is internal, so it has no floating IP: use vip-address to ask for the address of its load balancer";
        reader.warn_without_effect([&FLOATING_IP], why);
    }
    let exposure = exposure(reader, internal, annotated.or(floating), annotated.is_some());
    Placement { vip, member_subnet, exposure }
}

/// Returns the floating IP that the annotation asks for; `field` is the one of `spec.loadBalancerIP`.
fn floating_ip(reader: &mut SettingsReader<'_>, field: Option<IpAddr>) -> Option<IpAddr> {
    let value = reader.annotation(&FLOATING_IP)?;
    let Some(address) = value.text.parse().ok().filter(IpAddr::is_ipv4) else {
        reader.reject(&value, "is not an IPv4 address", "write an IPv4 address, or remove the annotation");
        return None;
    };
    agreeing(reader, &value, vec![address], field).first().copied()
}

/// Returns the VIP addresses that the annotation asks for, at most one per IP family.
fn vip_addresses(reader: &mut SettingsReader<'_>, field: Option<IpAddr>) -> Vec<IpAddr> {
    let Some(value) = reader.annotation(&VIP_ADDRESS) else { return Vec::new() };
    let addresses: Option<Vec<IpAddr>> = value.items().map(|item| item.text.parse().ok()).collect();
    let has_two_families = publication::families(reader).len() == 2;
    match addresses.as_deref() {
        Some([_]) => {}
        Some([one, other]) if has_two_families && one.is_ipv4() != other.is_ipv4() => {}
        Some([_, _]) => {
            let fix = "write one address, or one of each IP family if spec.ipFamilies has two";
            reader.reject(&value, "has too many addresses", fix);
            return Vec::new();
        }
        _ => {
            let fix = "write an IPv4 or IPv6 address, or remove the annotation";
            reader.reject(&value, "is not an IP address", fix);
            return Vec::new();
        }
    }
    agreeing(reader, &value, addresses.unwrap_or_default(), field)
}

/// Returns the addresses of an annotation, which must include that of `spec.loadBalancerIP`.
fn agreeing(
    reader: &mut SettingsReader<'_>,
    value: &Sourced<'_>,
    addresses: Vec<IpAddr>,
    field: Option<IpAddr>,
) -> Vec<IpAddr> {
    let Some(other) = field.filter(|field| !addresses.contains(field)) else { return addresses };
    let problem = format!("differs from {other}, the address in spec.loadBalancerIP");
    let fix = "remove spec.loadBalancerIP, which Kubernetes has deprecated, or the annotation";
    reader.reject(value, problem, fix);
    vec![other]
}

fn internal(reader: &mut SettingsReader<'_>) -> bool {
    let forced = reader.config.internal_lb;
    let wanted = reader.bool(&INTERNAL, forced);
    if forced && !wanted {
        reader.warn(
            "LoadBalancerForcedInternal",
            format!(
                "annotation {} asks for an external load balancer, but internal-lb in [LoadBalancer] of cloud.conf makes all load \
                 balancers internal; remove the annotation, or ask the operator to change cloud.conf",
                INTERNAL.key
            ),
        );
    }
    forced || wanted
}

fn load_balancer_ip(reader: &mut SettingsReader<'_>) -> Option<IpAddr> {
    let value = reader.load_balancer_ip()?;
    let Ok(address) = value.text.parse::<IpAddr>() else {
        reader.reject(&value, "is not an IP address", "write an IPv4 or IPv6 address, or remove the field");
        return None;
    };
    let family = reader.service.ip_families.first();
    if let Some(wanted) = family.filter(|family| **family != family_of(address)) {
        let wanted = family_name(*wanted);
        let problem =
            format!("is not an {wanted} address, which the first entry of spec.ipFamilies requires");
        reader.reject(&value, problem, format!("write an {wanted} address, or change spec.ipFamilies"));
    }
    Some(address)
}

/// Returns the subnet of the members, in the same order for creation and node changes: `member-subnet-id` by annotation, class,
/// cloud.conf; `subnet-id` of cloud.conf; `subnet-id` by annotation, class.
fn member_subnet(
    reader: &mut SettingsReader<'_>,
    vip_subnet: &Candidates<'_>,
) -> (Option<String>, &'static str) {
    let own = Candidates::of(reader, &MEMBER_SUBNET_ID, |class| &class.member_subnet_id).annotation_first();
    let key = if own.is_some() { &MEMBER_SUBNET_ID } else { &SUBNET_ID }.short();
    let other = vip_subnet.config.clone().or_else(|| vip_subnet.annotation_first());
    (reader.uuid(own.or(other)), key)
}

fn exposure(
    reader: &mut SettingsReader<'_>,
    internal: bool,
    address: Option<IpAddr>,
    is_annotated: bool,
) -> Exposure {
    let network = Candidates::of(reader, &FLOATING_NETWORK_ID, |class| &class.floating_network_id);
    let id = Candidates::of(reader, &FLOATING_SUBNET_ID, |class| &class.floating_subnet_id);
    let name = Candidates::of(reader, &FLOATING_SUBNET, |class| &class.floating_subnet);
    let tags = Candidates::of(reader, &FLOATING_SUBNET_TAGS, |class| &class.floating_subnet_tags);
    // Annotations are checked even for internal Services, to which class and cloud.conf do not apply.
    reader.uuid(network.annotation.clone());
    let annotated = floating_subnet(reader, id.annotation, name.annotation, tags.annotation);
    if internal {
        return Exposure::Internal;
    }
    // An empty annotation overrides cloud.conf.
    let configured = network.config.filter(|_| !reader.has(&FLOATING_NETWORK_ID));
    let network = network.class.or(network.annotation).or(configured);
    let subnet = floating_subnet(reader, id.class, name.class, tags.class)
        .or(annotated)
        .or_else(|| floating_subnet(reader, id.config, name.config, tags.config))
        .unwrap_or_default();
    Exposure::External(FloatingIpSettings { address, is_annotated, network_id: reader.uuid(network), subnet })
}

/// Reads the floating IP's subnet from one place; `None` without a setting. The first place with any setting decides alone. An id
/// overrides name and tags.
fn floating_subnet(
    reader: &mut SettingsReader<'_>,
    id: Option<Sourced<'_>>,
    name: Option<Sourced<'_>>,
    tags: Option<Sourced<'_>>,
) -> Option<FloatingSubnet> {
    if id.is_some() {
        return reader.uuid(id).map(FloatingSubnet::Id);
    }
    if name.is_none() && tags.is_none() {
        return None;
    }
    let name = name.and_then(|value| name_pattern(reader, &value));
    let tags = tags.and_then(|value| tag_condition(reader, &value));
    Some(FloatingSubnet::Matching(SubnetMatch { name, tags }))
}

fn name_pattern(reader: &mut SettingsReader<'_>, value: &Sourced<'_>) -> Option<NamePattern> {
    NamePattern::parse(value.text)
        .map_err(|error| {
            let fix = "write a name, a glob such as \"pool-*\", or ~ and a regular expression such as \"~pool-[0-9]+\"";
            reader.reject(value, format!("is not a pattern: {error}"), fix);
        })
        .ok()
}

fn tag_condition(reader: &mut SettingsReader<'_>, value: &Sourced<'_>) -> Option<TagCondition> {
    TagCondition::parse(value.text)
        .map_err(|error| {
            let fix = "write tags separated by commas, such as \"a,b\" (one of them), \"&a,b\" (all), \"!a,b\" (none) or \"!&a,b\" (not all)";
            reader.reject(value, format!("is not a condition for tags: {error}"), fix);
        })
        .ok()
}
