//! The part of the settings that depends on a value.
//!
//! An invalid value must affect nothing else: on an existing load balancer its aspect keeps the current state
//! ([`Settings::keeping`](super::Settings::keeping)), and all other aspects follow the Service.

use std::collections::BTreeSet;

use openstack_ccm_openstack_api::octavia::ListenerLimit;

use super::origin::Origin;
use crate::load_balancer::objects::header::InsertedHeader;

/// One part of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aspect {
    /// Which load balancer is used.
    LoadBalancer,
    /// What has an effect only when a load balancer is created: location of the VIP, flavor, zone.
    Creation,
    /// Whether clients outside the network reach the load balancer.
    Exposure,
    /// Network, subnet and address of a new floating IP.
    FloatingIp,
    MemberSubnet,
    /// How the address of a member is chosen among those of its node.
    NodeAddress,
    /// Which nodes become members.
    NodeSelector,
    /// Which ports speak the PROXY protocol.
    ProxyProtocol,
    /// Which ports insert a header.
    Header(InsertedHeader),
    /// Whether TLS ends at the load balancer, and with which certificate.
    Certificate,
    FurtherCertificates,
    TlsVersions,
    TlsCiphers,
    AlpnProtocols,
    /// The revision of what is behind references to certificates.
    TlsRevision,
    /// A limit of listeners.
    Limit(ListenerLimit),
    /// Algorithm of pools.
    Algorithm,
    /// Whether there are health monitors.
    Monitor,
    /// Time between two checks.
    MonitorDelay,
    /// Time for one check.
    MonitorTimeout,
    /// Successful checks until a member is ONLINE.
    MonitorMaxRetries,
    /// Failed checks until a member is in ERROR.
    MonitorMaxRetriesDown,
    /// How members of TCP ports are checked.
    MonitorCheck,
    /// Source ranges: the networks that may connect.
    SourceRanges,
    /// Whether the cluster itself may connect in addition to the source ranges.
    ClusterSources,
    /// The load balancer's metrics.
    Metrics,
    /// SCTP ports.
    Sctp,
    /// How the address is published.
    Publication,
    /// Tags of the user.
    Tags,
    /// What happens to the load balancer when the Service is deleted.
    Release,
}

/// Several aspects.
pub type Aspects = BTreeSet<Aspect>;

impl Aspect {
    /// Returns the aspects that determine the protocols of TCP listeners and their pools.
    pub(crate) fn of_protocols() -> Aspects {
        let headers = InsertedHeader::ALL.map(Self::Header);
        headers.into_iter().chain([Self::ProxyProtocol, Self::Certificate]).collect()
    }

    /// Returns the aspects that depend on the value from this origin.
    pub fn of(origin: &Origin) -> &'static [Self] {
        let key = match origin {
            Origin::Annotation(key) => key.rsplit_once('/').map_or(*key, |(_, name)| name),
            Origin::Field(key) | Origin::Config(key) | Origin::Class { key, .. } => key,
        };
        Self::of_name(key)
    }

    /// Returns the same for the name of an annotation without its prefix, of a field, or of a key of cloud.conf.
    fn of_name(name: &str) -> &'static [Self] {
        match name {
            "load-balancer-id" | "allow-foreign-cluster" | "share-by-address" => &[Self::LoadBalancer],
            "lb-provider" | "flavor-id" | "availability-zone" | "port-id" | "subnet-id" | "network-id" => {
                &[Self::Creation]
            }
            "openstack-internal-load-balancer" => &[Self::Exposure],
            "floating-network-id" | "floating-subnet-id" | "floating-subnet" | "floating-subnet-tags" => {
                &[Self::FloatingIp]
            }
            "spec.loadBalancerIP" => &[Self::FloatingIp, Self::Creation],
            "floating-ip" => &[Self::FloatingIp],
            "vip-address" => &[Self::Creation],
            "class" => &[Self::Creation, Self::FloatingIp, Self::MemberSubnet],
            "member-subnet-id" => &[Self::MemberSubnet],
            "node-address-type" => &[Self::NodeAddress],
            "node-selector" => &[Self::NodeSelector],
            "proxy-protocol" => &[Self::ProxyProtocol],
            "x-forwarded-for" => &[Self::Header(InsertedHeader::ForwardedFor)],
            "x-forwarded-port" => &[Self::Header(InsertedHeader::ForwardedPort)],
            "x-forwarded-proto" => &[Self::Header(InsertedHeader::ForwardedProto)],
            "default-tls-container-ref" => &[Self::Certificate],
            "sni-container-refs" => &[Self::FurtherCertificates],
            "tls-versions" => &[Self::TlsVersions],
            "tls-ciphers" => &[Self::TlsCiphers],
            "alpn-protocols" => &[Self::AlpnProtocols],
            "tls-revision" => &[Self::TlsRevision],
            "connection-limit" => &[Self::Limit(ListenerLimit::Connections)],
            "timeout-client-data" => &[Self::Limit(ListenerLimit::ClientData)],
            "timeout-member-connect" => &[Self::Limit(ListenerLimit::MemberConnect)],
            "timeout-member-data" => &[Self::Limit(ListenerLimit::MemberData)],
            "timeout-tcp-inspect" => &[Self::Limit(ListenerLimit::TcpInspect)],
            "lb-method" => &[Self::Algorithm],
            "enable-health-monitor" => &[Self::Monitor],
            "health-monitor-delay" | "monitor-delay" => &[Self::MonitorDelay],
            "health-monitor-timeout" | "monitor-timeout" => &[Self::MonitorTimeout],
            "health-monitor-max-retries" | "monitor-max-retries" => &[Self::MonitorMaxRetries],
            "health-monitor-max-retries-down" | "monitor-max-retries-down" => &[Self::MonitorMaxRetriesDown],
            "health-monitor-type"
            | "health-monitor-path"
            | "health-monitor-method"
            | "health-monitor-expected-codes" => &[Self::MonitorCheck],
            "load-balancer-source-ranges" | "spec.loadBalancerSourceRanges" => &[Self::SourceRanges],
            "allow-cluster-sources" => &[Self::ClusterSources],
            "metrics-enable" | "metrics-port" | "metrics-allow-cidrs" => &[Self::Metrics],
            "ip-mode" | "hostname" | "enable-ingress-hostname" => &[Self::Publication],
            "tags" | "load-balancer-tags" | "listener-tags" | "pool-tags" => &[Self::Tags],
            "keep-floatingip" | "reclaim-policy" => &[Self::Release],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancer::annotations::{ALL, Form};

    #[test]
    fn every_annotation_that_is_read_decides_about_something() {
        for annotation in ALL.iter().filter(|annotation| !matches!(annotation.form, Form::Output(_))) {
            assert!(!Aspect::of(&Origin::Annotation(annotation.key)).is_empty(), "{}", annotation.key);
        }
        for field in ["spec.loadBalancerIP", "spec.loadBalancerSourceRanges"] {
            assert!(!Aspect::of(&Origin::Field(field)).is_empty(), "{field}");
        }
    }
}
