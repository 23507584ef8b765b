//! The settings of one Service's load balancer, from its fields, its annotations, its class and cloud.conf.
//!
//! Pure: nothing is asked of the cloud. Each annotation is read once; all faults are reported together. No default replaces an
//! invalid value: a new load balancer is not created, and on an existing one the faulty aspect keeps its current state.
//!
//! | module | reads |
//! | --- | --- |
//! | `reader` | single values, and collects their faults |
//! | `current` | current values in place of invalid ones |
//! | `network` | class, VIP, member subnet, floating IP |
//! | `listener` | PROXY protocol, headers, TLS, limits, source ranges |
//! | `metrics` | the load balancer's metrics |
//! | `proxy_protocol`, `tls`, `monitor_check` | their details |
//! | `pool` | algorithm, health monitor, node selector |
//! | [`floating_subnet`] | which subnets a floating IP may come from |
//! | `publication` | mode and hostname |
//! | `ports` | the effect on single ports, and the path of clients inside the cluster |
//! | `user_tags` | tags in addition to this controller's |
//! | `release` | what matters when the Service is deleted |
//! | `written_address` | an address that the user wrote to an output annotation |
//! | [`node_address`] | the address with which a node becomes a member |

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use openstack_ccm_core::advertise::Preference;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{IpFamily, Service};
use openstack_ccm_openstack_api::octavia::{ListenerLimits, PoolAttributes};

use super::annotations::{
    ALLOW_CLUSTER_SOURCES, ALLOW_FOREIGN_CLUSTER, AVAILABILITY_ZONE, FLAVOR_ID, KEEP_FLOATING_IP,
    LB_PROVIDER, LOAD_BALANCER_ID, RECLAIM_POLICY, SHARE_BY_ADDRESS,
};
pub use super::annotations::{Aspect, Aspects, InsertedHeader, Kind};
use crate::config::Config;
use crate::load_balancer::identity::ids::WrittenId;
pub use openstack_ccm_core::node_selector::NodeSelector;
pub use openstack_ccm_openstack_api::octavia::HttpCheck;

mod allowed;
mod current;
mod fault;
pub mod floating_subnet;
mod listener;
mod metrics;
mod monitor_check;
mod network;
pub mod node_address;
mod origin;
mod pool;
mod ports;
mod proxy_protocol;
mod publication;
mod reader;
mod reading;
mod release_settings;
mod tls;
mod user_tags;
mod written_address;

pub use current::CurrentPort;
pub(super) use current::unanimous;
pub use fault::{Fault, Faults};
pub use listener::{SourceRanges, TlsContainer};
pub use metrics::MetricsSettings;
pub use monitor_check::MonitorCheck;
pub use network::{Exposure, FloatingIpSettings, FloatingSubnet, VipSettings};
use node_address::NodeAddressKind;
pub use origin::Origin;
pub use pool::HealthMonitorSettings;
pub(super) use ports::names_of;
pub use proxy_protocol::ProxyVersion;
use reader::SettingsReader;
pub(super) use reader::WITHOUT_EFFECT;
pub use reading::Reading;
pub use release_settings::ReleaseSettings;
pub use tls::TlsOptions;
pub use user_tags::UserTags;
pub(super) use written_address::address_as_wish;

/// The settings of one Service's load balancer. Every value is valid by itself; whether the objects with these ids exist is not
/// known yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The load balancer in the annotation `load-balancer-id`, which the user or an earlier reconciliation wrote. Which of the two
    /// is visible only on the load balancer.
    pub load_balancer_id: Option<WrittenId>,
    /// `allow-foreign-cluster`: the Service may be a guest on a load balancer with another cluster's identity.
    pub allow_foreign_cluster: bool,
    /// `share-by-address`: the Service may share the load balancer of a Service that has the requested address.
    pub shares_by_address: bool,
    /// `lb-provider`: the Octavia provider; absent, Octavia chooses.
    pub provider: Option<String>,
    /// Flavor of a new load balancer. Only for providers and Octavia versions with flavors.
    pub flavor_id: Option<String>,
    /// Availability zone of a new load balancer. Only for providers and Octavia versions with zones.
    pub availability_zone: Option<String>,
    /// Location of the VIP of a new load balancer.
    pub vip: VipSettings,
    /// Subnet of the members: `member-subnet-id`, else `subnet-id` of cloud.conf, else the subnet of the VIP. If none is
    /// configured: with a network, the members follow the VIP of the load balancer; without one, the subnet of the nodes is looked
    /// up.
    pub member_subnet_id: Option<String>,
    /// The key that names it, `member-subnet-id` or `subnet-id`, for messages.
    pub member_subnet_key: &'static str,
    /// `spec.ipFamilies[0]`: the family of member addresses. Absent, any.
    pub family: Option<IpFamily>,
    /// The IP families of the Service's addresses, the primary one first: `spec.ipFamilies`, or only its first entry with
    /// `dual-stack = false`. Empty allows any.
    pub families: Vec<IpFamily>,
    /// Whether clients outside the network reach the load balancer, and how.
    pub exposure: Exposure,
    /// `keep-floatingip`: the floating IP outlives the load balancer.
    pub keep_floating_ip: bool,
    /// `node-address-type`: the address type with which a node becomes a member.
    pub node_address_kind: Option<NodeAddressKind>,
    /// Labels of the nodes that become members.
    pub node_selector: NodeSelector,
    /// `proxy-protocol`; applies to TCP ports only, see [`Settings::pool_protocol`].
    pub proxy_protocol: Option<ProxyVersion>,
    /// `proxy-protocol` for single TCP ports, by port; then `proxy_protocol` is absent.
    pub proxy_ports: BTreeMap<u16, ProxyVersion>,
    /// Headers that listeners insert; applies to TCP ports only. With `proxy_protocol`, only headers that work with it.
    pub headers: BTreeSet<InsertedHeader>,
    /// The certificate, if the load balancer terminates TLS; applies to TCP ports only.
    pub tls: Option<TlsContainer>,
    /// TLS options other than the certificate. Empty if the load balancer does not terminate TLS.
    pub tls_options: TlsOptions,
    /// Limits of each listener.
    pub limits: ListenerLimits,
    /// Attributes of each pool, without session persistence, which differs by protocol.
    pub pool: PoolAttributes,
    /// Whether the algorithm of pools is only the default, so that a provider that refuses it may use its own.
    pub lb_algorithm_is_default: bool,
    /// The health monitor of each pool; absent, pools get none.
    pub health_monitor: Option<HealthMonitorSettings>,
    /// The networks that may connect.
    pub source_ranges: SourceRanges,
    /// `allow-cluster-sources`: the cluster itself may connect too.
    pub allow_cluster_sources: bool,
    /// The load balancer's metrics, if it serves them.
    pub metrics: Option<MetricsSettings>,
    /// The preferred publication of the address.
    pub preference: Preference,
    /// `max-shared-lb`: how many Services one load balancer may serve.
    pub max_shared_load_balancer: u32,
    /// `provider-requires-serial-api-calls`: neither whole trees nor member batches.
    pub serial_api_calls: bool,
    /// `cascade-delete`: a load balancer is deleted with its children in one call.
    pub cascade_delete: bool,
    /// `manage-security-groups`: node ports are opened by a security group per Service.
    pub manage_security_groups: bool,
    /// Foreign load balancers that the namespace may use; absent, any.
    pub allowed_load_balancers: Option<BTreeSet<String>>,
    /// `load-balancer-address`: the Service's former address from its annotation. Any user who may write the Service may set it, so
    /// it only counts as a request, and is absent if the namespace may not ask for it.
    pub annotated_address: Option<IpAddr>,
    /// Tags in addition to this controller's.
    pub user_tags: UserTags,
    /// The aspects that depend on an invalid value.
    pub unreadable: Aspects,
    /// The aspects that depend on a bool that is neither `true` nor `false`: it counts as absent, except where that would remove or
    /// expose something on an existing load balancer.
    pub odd: Aspects,
    /// Current values that TCP ports keep instead of invalid settings, by port.
    pub current_ports: BTreeMap<u16, CurrentPort>,
    /// Whether `health_monitor` applies to new load balancers only, and an existing one keeps what it has.
    pub monitor_only_if_new: bool,
    /// The settings of a health monitor, even if pools get none.
    pub monitor_if_any: HealthMonitorSettings,
}

impl Settings {
    /// Reads all settings of a Service, with notices for the user.
    ///
    /// # Errors
    /// All faults of the settings.
    pub fn read(service: &Service, config: &Config) -> (Result<Self, Faults>, Vec<Notice>) {
        let Reading { settings, faults, notices } = Reading::of(service, config);
        (if faults.failure().is_some() { Err(faults) } else { Ok(settings) }, notices)
    }

    fn assemble(reader: &mut SettingsReader<'_>) -> Self {
        let config = reader.config;
        let network::Placement { vip, member_subnet: (member_subnet_id, member_subnet_key), exposure } =
            network::placement(reader);
        let proxy_protocol = proxy_protocol::proxy_protocol(reader);
        let tls = listener::tls(reader);
        let monitor = pool::health_monitor(reader);
        // Used when the Service is deleted, but checked now, while the user can still correct it.
        reader.word(&RECLAIM_POLICY);
        let flavor = reader.annotation_or_config(&FLAVOR_ID, "flavor-id", config.flavor_id.as_deref());
        let zone = config.availability_zone.as_deref();
        let zone = reader.annotation_or_config(&AVAILABILITY_ZONE, "availability-zone", zone);
        Self {
            load_balancer_id: reader.uuid(reader.annotation(&LOAD_BALANCER_ID)).map(WrittenId::new),
            allow_foreign_cluster: reader.bool(&ALLOW_FOREIGN_CLUSTER, false),
            shares_by_address: reader.bool(&SHARE_BY_ADDRESS, false),
            provider: provider(reader),
            flavor_id: reader.uuid(flavor),
            availability_zone: reader.text(zone),
            vip,
            member_subnet_id,
            member_subnet_key,
            family: reader.service.ip_families.first().copied(),
            families: publication::families(reader),
            exposure,
            keep_floating_ip: keep_floating_ip(reader),
            node_address_kind: pool::node_address_kind(reader),
            node_selector: pool::node_selector(reader),
            headers: listener::headers(reader, &proxy_protocol),
            proxy_protocol: proxy_protocol.all,
            proxy_ports: proxy_protocol.ports,
            tls_options: tls::options(reader, tls.as_ref()),
            tls,
            limits: listener::limits(reader),
            pool: pool::attributes(reader),
            lb_algorithm_is_default: pool::lb_algorithm_is_default(reader),
            health_monitor: monitor.enabled.then(|| monitor.settings.clone()),
            monitor_only_if_new: monitor.only_if_new,
            monitor_if_any: monitor.settings,
            source_ranges: listener::source_ranges(reader),
            allow_cluster_sources: reader.bool(&ALLOW_CLUSTER_SOURCES, false),
            metrics: metrics::metrics(reader),
            preference: publication::preference(reader),
            max_shared_load_balancer: config.max_shared_lb,
            serial_api_calls: config.provider_requires_serial_api_calls,
            cascade_delete: config.cascade_delete,
            manage_security_groups: config.manage_security_groups,
            allowed_load_balancers: None,
            annotated_address: None,
            user_tags: user_tags::user_tags(reader),
            unreadable: Aspects::new(),
            odd: Aspects::new(),
            current_ports: BTreeMap::new(),
        }
    }

    /// Returns the requested addresses of the load balancer and its floating IP.
    pub(crate) fn asked_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let floating = match &self.exposure {
            Exposure::External(floating_ip) => floating_ip.address,
            Exposure::Internal => None,
        };
        self.vip.addresses().chain(floating)
    }

    /// Drops the addresses that rejected values ask for: nothing is looked for, joined or waited for by them.
    fn drop_rejected_addresses(&mut self) {
        if self.is_unreadable(Aspect::Creation) {
            (self.vip.address, self.vip.second_address) = (None, None);
        }
        if self.is_unreadable(Aspect::FloatingIp)
            && let Exposure::External(floating_ip) = &mut self.exposure
        {
            floating_ip.address = None;
        }
    }

    /// Returns whether the aspect keeps an existing state: its value is invalid, or a bool that is neither `true` nor `false`.
    pub fn keeps(&self, aspect: Aspect) -> bool {
        self.is_unreadable(aspect) || self.odd.contains(&aspect)
    }

    /// Returns whether an attribute depends on an invalid value.
    pub(crate) fn is_unreadable_of(&self, kind: Kind, name: &str) -> bool {
        self.unreadable.iter().any(|aspect| aspect.is_of(kind, name))
    }

    /// Returns whether the aspect depends on an invalid value.
    pub fn is_unreadable(&self, aspect: Aspect) -> bool {
        self.unreadable.contains(&aspect)
    }
}

/// Returns the provider of cloud.conf, or the Service's choice among those that cloud.conf allows.
fn provider(reader: &mut SettingsReader<'_>) -> Option<String> {
    let configured = reader.config.lb_provider.clone();
    let Some(value) = reader.annotation(&LB_PROVIDER) else { return configured };
    let allowed = &reader.config.lb_providers;
    if configured.iter().chain(allowed).any(|provider| provider == value.text) {
        return Some(value.text.to_owned());
    }
    let fix = match allowed.as_slice() {
        [] => "remove the annotation, or ask the operator to list the provider in lb-providers in [LoadBalancer] of cloud.conf".to_owned(),
        some => format!(
            "use one of {}, or ask the operator to add it to lb-providers in [LoadBalancer] of cloud.conf",
            some.join(", ")
        ),
    };
    reader.reject(&value, "is not a provider that Services are allowed to choose", fix);
    configured
}

/// A value that is neither `true` nor `false` keeps the floating IP, which the user can still delete.
fn keep_floating_ip(reader: &mut SettingsReader<'_>) -> bool {
    let keeps = reader.bool(&KEEP_FLOATING_IP, false);
    keeps || reader.odd.contains(&Aspect::Release)
}
