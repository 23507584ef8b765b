//! Whether a load balancer lets the cluster's own nodes and pods in.
//!
//! With `ipMode: Proxy`, and with a hostname, they come to it as every other client does, so source ranges hold for them
//! too. A Service whose pods reached it by the short circuit must not lose that to a status that is written for their good.

use super::entry::{IngressEntry, IpMode};

/// Whether clients inside the cluster get through the load balancer's source ranges.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ClusterAccess {
    /// There are no source ranges, or they hold all addresses from which the cluster connects.
    #[default]
    Open,
    /// The source ranges lack these networks (CIDRs), from which the cluster connects. Never empty.
    Lacks(Vec<String>),
    /// There are source ranges, and from where the cluster connects could not be found out; the text says why.
    Unknown(String),
}

impl ClusterAccess {
    /// What is wrong with the source ranges and what to do, as the end of a sentence; absent where nothing is.
    pub(super) fn remedy(&self) -> Option<String> {
        let missing = match self {
            Self::Open => return None,
            Self::Lacks(networks) => format!(
                "the source ranges lack addresses from which the cluster itself connects ({})",
                networks.join(", ")
            ),
            Self::Unknown(cause) => {
                format!(
                    "the source ranges may lack addresses from which the cluster itself connects ({cause})"
                )
            }
        };
        Some(format!(
            "{missing}. Add them to spec.loadBalancerSourceRanges, or set the annotation \
             loadbalancer.openstack.org/allow-cluster-sources: \"true\""
        ))
    }
}

/// Whether a status has addresses only, and none that nodes leave alone: that is how OCCM publishes everything but PROXY
/// load balancers.
pub(super) fn is_by_vip(published: &[IngressEntry]) -> bool {
    !published.is_empty()
        && published
            .iter()
            .all(|entry| entry.ip.is_some() && matches!(entry.ip_mode, None | Some(IpMode::Vip)))
}
