//! The part of the settings that depends on a value.
//!
//! An invalid value must affect nothing else: on an existing load balancer its aspect keeps the current state
//! (`Settings::keeping`), and all other aspects follow the Service. The row of an annotation names the aspects that depend on it.

use std::collections::BTreeSet;

/// A header that a Service may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InsertedHeader {
    /// The client's address.
    ForwardedFor,
    /// The port that the client connected to.
    ForwardedPort,
    /// Whether the client speaks HTTP or HTTPS.
    ForwardedProto,
}

impl InsertedHeader {
    /// All headers.
    pub const ALL: [Self; 3] = [Self::ForwardedFor, Self::ForwardedPort, Self::ForwardedProto];
}

/// What has attributes, each of which is an aspect by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The numbers of listeners.
    Limit,
    /// The end of TLS at listeners, beside the certificates.
    Tls,
    Pool,
    Monitor,
}

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
    /// The revision of what is behind references to certificates.
    TlsRevision,
    /// An attribute, by Octavia's name.
    Of(Kind, &'static str),
    /// Whether there are health monitors.
    Monitor,
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
    /// Returns whether this is an attribute with this name.
    pub(crate) fn is_of(self, kind: Kind, name: &str) -> bool {
        matches!(self, Self::Of(of, one) if (of, one) == (kind, name))
    }

    /// Returns the aspects that determine the protocols of TCP listeners and their pools.
    pub(crate) fn of_protocols() -> Aspects {
        let headers = InsertedHeader::ALL.map(Self::Header);
        headers.into_iter().chain([Self::ProxyProtocol, Self::Certificate]).collect()
    }
}
