//! What one Service wants of its load balancer, resolved from its fields, its annotations, its class and cloud.conf.
//!
//! Pure: nothing is asked of the cloud. Each annotation is read once; everything that is wrong is reported together.
//! No default takes the place of a value that is wrong: a load balancer that is not there yet is not made, and on one
//! that exists the faulty aspect keeps what is there.
//!
//! | module | reads |
//! | --- | --- |
//! | `reader` | single values, and remembers what is wrong with them |
//! | `aspect` | which part of the wish a value decides about |
//! | `current` | what is there in place of what cannot be read |
//! | `network` | class, VIP, member subnet, floating IP |
//! | `listener` | PROXY protocol, headers, TLS, limits, source ranges |
//! | `metrics` | the load balancer's own metrics |
//! | `proxy_protocol`, `tls`, `monitor_check` | what of these the user chooses in detail |
//! | `pool` | algorithm, health monitor, node selector |
//! | [`floating_subnet`] | which subnets a floating IP may come from |
//! | `publication` | mode and hostname |
//! | `ports` | what follows for single ports, and the path of clients inside the cluster |
//! | `user_tags` | tags in addition to our own |
//! | `release` | what matters when the Service goes |
//! | `written_address` | who writes the address as if it asked for one |
//! | [`node_address`] | by which address a node becomes a member |

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use openstack_ccm_core::advertise::Preference;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{IpFamily, Service};
use openstack_ccm_openstack_api::octavia::{LbAlgorithm, ListenerLimits};

use super::annotations::{
    ALLOW_CLUSTER_SOURCES, ALLOW_FOREIGN_CLUSTER, AVAILABILITY_ZONE, FLAVOR_ID, KEEP_FLOATING_IP,
    LB_PROVIDER, LOAD_BALANCER_ID, RECLAIM_POLICY, SHARE_BY_ADDRESS,
};
use crate::config::Config;
use crate::load_balancer::identity::ids::WrittenId;
pub use crate::load_balancer::objects::header::InsertedHeader;
pub use crate::load_balancer::objects::monitor::HttpCheck;
pub use openstack_ccm_core::node_selector::NodeSelector;

mod allowed;
mod aspect;
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
mod release;
mod tls;
mod user_tags;
mod written_address;

pub use aspect::{Aspect, Aspects};
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
pub use release::ReleaseSettings;
pub use tls::TlsOptions;
pub use user_tags::UserTags;
pub(super) use written_address::address_as_wish;

/// What one Service wants of its load balancer. Every value in here is valid by itself; whether the objects behind
/// the ids exist is not known yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The load balancer that the annotation `load-balancer-id` names: the user's choice, or what an earlier reconciliation
    /// wrote there. Which of the two shows only on the load balancer.
    pub load_balancer_id: Option<WrittenId>,
    /// `allow-foreign-cluster`: the Service may be a guest on a load balancer with another cluster's identity.
    pub allow_foreign_cluster: bool,
    /// `share-by-address`: the Service may share a load balancer with one that has the address that it asks for.
    pub shares_by_address: bool,
    /// `lb-provider`: the Octavia provider; absent, Octavia chooses.
    pub provider: Option<String>,
    /// Flavor of a new load balancer. Only for providers and Octavia versions with flavors.
    pub flavor_id: Option<String>,
    /// Availability zone of a new load balancer. Only for providers and Octavia versions with zones.
    pub availability_zone: Option<String>,
    /// Where the VIP of a new load balancer is.
    pub vip: VipSettings,
    /// Subnet of the members: `member-subnet-id`, else `subnet-id` of cloud.conf, else the subnet of the VIP. Absent,
    /// no subnet is configured anywhere: with a network the members follow the VIP of the load balancer, without
    /// one the subnet of the nodes is looked up.
    pub member_subnet_id: Option<String>,
    /// `spec.ipFamilies[0]`: the family of member addresses. Absent, any.
    pub family: Option<IpFamily>,
    /// The families in which the Service wants an address, the primary one first: `spec.ipFamilies`, or only the first
    /// of them with `dual-stack = false`. Empty, any will do.
    pub families: Vec<IpFamily>,
    /// Whether clients outside the network reach the load balancer, and how.
    pub exposure: Exposure,
    /// `keep-floatingip`: the floating IP outlives the load balancer.
    pub keep_floating_ip: bool,
    /// `node-address-type`: by which kind of address a node becomes a member.
    pub node_address_kind: Option<NodeAddressKind>,
    /// Labels of the nodes that become members.
    pub node_selector: NodeSelector,
    /// `proxy-protocol`; applies to TCP ports only, see [`Settings::pool_protocol`].
    pub proxy_protocol: Option<ProxyVersion>,
    /// `proxy-protocol` for single TCP ports, by port; then `proxy_protocol` is absent.
    pub proxy_ports: BTreeMap<u16, ProxyVersion>,
    /// Headers that listeners insert; applies to TCP ports only. Beside `proxy_protocol` only those that go with it.
    pub headers: BTreeSet<InsertedHeader>,
    /// The certificate, where TLS ends at the load balancer; applies to TCP ports only.
    pub tls: Option<TlsContainer>,
    /// What TLS looks like beyond its certificate. Nothing where TLS does not end at the load balancer.
    pub tls_options: TlsOptions,
    /// Numbers of each listener.
    pub limits: ListenerLimits,
    /// Algorithm of pools.
    pub lb_algorithm: LbAlgorithm,
    /// Whether it is what stands there when nobody chose, so that a provider that refuses it may have its own.
    pub lb_algorithm_is_default: bool,
    /// The health monitor that each pool gets; absent, none.
    pub health_monitor: Option<HealthMonitorSettings>,
    /// Who may connect.
    pub source_ranges: SourceRanges,
    /// `allow-cluster-sources`: the cluster itself may connect too.
    pub allow_cluster_sources: bool,
    /// The load balancer's own metrics, where it shows them.
    pub metrics: Option<MetricsSettings>,
    /// How the address is to be published.
    pub preference: Preference,
    /// `max-shared-lb`: how many Services one load balancer may serve.
    pub max_shared_load_balancer: u32,
    /// `provider-requires-serial-api-calls`: neither whole trees nor member batches.
    pub serial_api_calls: bool,
    /// `cascade-delete`: a load balancer is deleted with its children in one call.
    pub cascade_delete: bool,
    /// `manage-security-groups`: node ports are opened by a security group per Service.
    pub manage_security_groups: bool,
    /// Load balancers of others that the namespace may use; absent, any.
    pub allowed_load_balancers: Option<BTreeSet<String>>,
    /// `load-balancer-address`: the address that the Service had, as its annotation says, which anybody may write who may write the Service. So it
    /// is only what the Service asks for, and absent where its namespace may not.
    pub annotated_address: Option<IpAddr>,
    /// Tags in addition to our own.
    pub user_tags: UserTags,
    /// The aspects that follow from a value that is wrong.
    pub unreadable: Aspects,
    /// The aspects that follow from a bool that is neither `true` nor `false`: it counts as absent, except where that would
    /// remove or open something on a load balancer that exists.
    pub odd: Aspects,
    /// What TCP ports keep that cannot be read, by port.
    pub current_ports: BTreeMap<u16, CurrentPort>,
    /// Whether `health_monitor` says what a new load balancer gets, and one that exists keeps what it has.
    pub monitor_only_if_new: bool,
    /// What a health monitor is like, also where there is to be none.
    pub monitor_if_any: HealthMonitorSettings,
}

impl Settings {
    /// Reads everything that a Service and cloud.conf say, with what the user should know besides.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub fn read(service: &Service, config: &Config) -> (Result<Self, Faults>, Vec<Notice>) {
        let Reading { settings, faults, notices } = Reading::of(service, config);
        (if faults.failure().is_some() { Err(faults) } else { Ok(settings) }, notices)
    }

    fn assemble(reader: &mut SettingsReader<'_>) -> Self {
        let config = reader.config;
        let network::Placement { vip, member_subnet_id, exposure } = network::placement(reader);
        let proxy_protocol = proxy_protocol::proxy_protocol(reader);
        let tls = listener::tls(reader);
        let monitor = pool::health_monitor(reader);
        // Read when the Service goes; a mistake is reported while it can be mended.
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
            lb_algorithm: pool::lb_algorithm(reader),
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

    /// The addresses that the load balancer, or its floating IP, is to have.
    pub(crate) fn asked_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let floating = match &self.exposure {
            Exposure::External(floating_ip) => floating_ip.address,
            Exposure::Internal => None,
        };
        self.vip.addresses().chain(floating)
    }

    /// Whether what is there stands in for the wish, as far as there is something: its value is wrong, or so odd that it
    /// counts as none.
    pub fn keeps(&self, aspect: Aspect) -> bool {
        self.is_unreadable(aspect) || self.odd.contains(&aspect)
    }

    /// Whether a value is wrong that the aspect follows from.
    pub fn is_unreadable(&self, aspect: Aspect) -> bool {
        self.unreadable.contains(&aspect)
    }
}

/// The provider that cloud.conf names, or one that it lets the Service choose.
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

/// A value that is neither keeps: what is kept can still be deleted.
fn keep_floating_ip(reader: &mut SettingsReader<'_>) -> bool {
    let keeps = reader.bool(&KEEP_FLOATING_IP, false);
    keeps || reader.odd.contains(&Aspect::Release)
}
